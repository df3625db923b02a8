#include <yolo9/data/fault_tally.h>

#include <algorithm>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>

namespace yolo9 {
namespace {

// COCO's crowds are left out because of what they are; there is nothing to mend.
bool is_mistake(const FaultCount& fault) { return fault.of_pictures || fault.kind != to_string(LabelFaultKind::Crowd); }

std::string what_happened(const FaultCount& fault) {
  const std::string things = fault.of_pictures ? "picture" : "row";
  return std::to_string(fault.count) + " " + things + (fault.count == 1 ? "" : "s") +
         (fault.of_pictures ? " skipped" : " dropped") + " (" + fault.kind + ")";
}

std::string place_of(const std::string& path, int64_t line) {
  return line > 0 ? path + ":" + std::to_string(line) : path;
}

}  // namespace

void FaultTally::note(bool of_pictures, const std::string& kind, int64_t count, const std::string& text,
                      const std::string& place) {
  const auto same = [&](const FaultCount& c) { return c.of_pictures == of_pictures && c.kind == kind; };
  const auto found = std::find_if(counts_.begin(), counts_.end(), same);
  if (found != counts_.end()) {
    found->count += count;
  } else {
    counts_.push_back({of_pictures, kind, count, text, place});
  }
}

bool FaultTally::add(const ScannedImage& image) {
  if (!image.fault.empty()) {
    note(true, to_string(image.fault_kind), 1, image.fault, image.path);
    return false;
  }
  const LabelFault* fault = image.labels.first_error();
  if (fault != nullptr && fault->kind == LabelFaultKind::Unreadable) {
    note(true, "unreadable_labels", 1, fault->text, place_of(image.label_path, fault->line));
    return false;
  }
  add_rows(image.labels, image.label_path);
  return true;
}

void FaultTally::add(const SourceFaults& source) { add_rows(source.labels, source.path); }

void FaultTally::add_rows(const LabelFile& labels, const std::string& path) {
  uint64_t seen = 0;  // kinds: not every fault need be listed, but the first of each kind is
  for (const LabelFault& fault : labels.faults) {
    const uint64_t bit = uint64_t{1} << static_cast<int>(fault.kind);
    if (!drops_row(fault.kind) || (seen & bit) != 0) continue;
    seen |= bit;
    note(false, to_string(fault.kind), labels.count(fault.kind), fault.text, place_of(path, fault.line));
  }
}

int64_t FaultTally::total(bool of_pictures) const {
  int64_t total = 0;
  for (const FaultCount& fault : counts_) total += fault.of_pictures == of_pictures ? fault.count : 0;
  return total;
}

int64_t FaultTally::count(bool of_pictures, const std::string& kind) const {
  for (const FaultCount& fault : counts_) {
    if (fault.of_pictures == of_pictures && fault.kind == kind) return fault.count;
  }
  return 0;
}

const FaultCount* FaultTally::first_row() const {
  const auto found = std::find_if(counts_.begin(), counts_.end(), [](const auto& c) { return !c.of_pictures; });
  return found == counts_.end() ? nullptr : &*found;
}

std::string FaultTally::describe() const {
  std::string text;
  for (const FaultCount& fault : counts_) text += (text.empty() ? "" : ", ") + what_happened(fault);
  return text;
}

void FaultTally::warn() const {
  for (const FaultCount& fault : counts_) {
    log_warn(what_happened(fault) + ", the first at " + fault.place + ": " + fault.text +
             "; yolo9-data check lists them" + (is_mistake(fault) ? ", --strict makes them errors" : ""));
  }
}

void FaultTally::refuse() const {
  const auto found = std::find_if(counts_.begin(), counts_.end(), is_mistake);
  if (found == counts_.end()) return;
  const FaultCount& first = *found;
  throw Error(ErrorKind::Data, first.text + " (strict: " + describe() + ")", first.place,
              "mend the files (yolo9-data check lists every fault) or leave --strict out");
}

}  // namespace yolo9
