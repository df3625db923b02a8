// The records of a scan cache, as bytes: numbers in the byte order of x86 and ARM.
#include <bit>
#include <cstring>
#include <type_traits>

#include <yolo9/data/scan_cache.h>

namespace yolo9 {
namespace {

static_assert(std::endian::native == std::endian::little);

class Packer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<uint32_t>(value.size()));
    bytes_ += value;
  }
  void floats(const std::vector<float>& values) {
    number(static_cast<uint32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once something is missing everything is zero, and `ok` false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }
  std::vector<float> floats() {
    const size_t count = number<uint32_t>();
    const std::string_view bytes = take(count * sizeof(float));
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // A count of things that take `least` bytes each: 0 if so many cannot follow.
  size_t count(size_t least) {
    const size_t value = number<uint32_t>();
    if (value > rest_.size() / least) ok_ = false;
    return ok_ ? value : 0;
  }
  bool ok() const { return ok_; }
  bool is_done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(size_t bytes) {
    if (bytes > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

void pack_labels(Packer& out, const LabelFile& labels) {
  out.number(static_cast<uint32_t>(labels.rows.size()));
  for (const LabelRow& row : labels.rows) {
    out.number(static_cast<int32_t>(row.class_index));
    for (const float value : {row.cx, row.cy, row.w, row.h}) out.number(value);
    out.floats(row.polygon);
  }
  for (const int64_t count : labels.counts) out.number(count);
  out.number(static_cast<uint32_t>(labels.faults.size()));
  for (const LabelFault& fault : labels.faults) {
    out.number(static_cast<uint8_t>(fault.kind));
    out.number(fault.line);
    out.text(fault.text);
  }
}

// False for a kind of fault that there is not.
bool unpack_labels(Unpacker& in, LabelFile& labels) {
  constexpr size_t kLeastRow = 24, kLeastFault = 13;
  labels.rows.resize(in.count(kLeastRow));
  for (LabelRow& row : labels.rows) {
    row.class_index = in.number<int32_t>();
    for (float* value : {&row.cx, &row.cy, &row.w, &row.h}) *value = in.number<float>();
    row.polygon = in.floats();
  }
  for (int64_t& count : labels.counts) count = in.number<int64_t>();
  labels.faults.resize(in.count(kLeastFault));
  bool known = true;
  for (LabelFault& fault : labels.faults) {
    fault.kind = static_cast<LabelFaultKind>(in.number<uint8_t>());
    known = known && to_string(fault.kind) != "unknown";
    fault.line = in.number<int64_t>();
    fault.text = in.text();
  }
  return known;
}

}  // namespace

std::string encode_scan_record(const ScanRecord& record) {
  Packer out;
  const ScannedImage& image = record.image;
  out.text(image.path);
  out.number(record.stamp.size);
  out.number(record.stamp.inode);
  out.number(record.stamp.modified_ns);
  out.number(record.stamp.changed_ns);
  out.number(record.label_hash);
  out.number(image.height);
  out.number(image.width);
  out.number(static_cast<uint8_t>(image.fault_kind));
  out.number(static_cast<uint8_t>(image.format));
  out.number(static_cast<uint8_t>(image.has_label_file));
  out.text(image.fault);
  out.text(image.label_path);
  pack_labels(out, image.labels);
  return out.take();
}

std::optional<ScanRecord> decode_scan_record(std::string_view bytes) {
  Unpacker in(bytes);
  ScanRecord record;
  ScannedImage& image = record.image;
  image.path = in.text();
  record.stamp.size = in.number<uint64_t>();
  record.stamp.inode = in.number<uint64_t>();
  record.stamp.modified_ns = in.number<int64_t>();
  record.stamp.changed_ns = in.number<int64_t>();
  record.label_hash = in.number<uint64_t>();
  image.height = in.number<int64_t>();
  image.width = in.number<int64_t>();
  const auto fault = in.number<uint8_t>(), format = in.number<uint8_t>(), has_label = in.number<uint8_t>();
  if (fault >= kImageFaults || format >= kImageFormats || has_label > 1) return std::nullopt;
  image.fault_kind = static_cast<ImageFault>(fault);
  image.format = static_cast<ImageFormat>(format);
  image.has_label_file = has_label == 1;
  image.fault = in.text();
  image.label_path = in.text();
  if (!unpack_labels(in, image.labels) || !in.is_done()) return std::nullopt;
  return record;
}

}  // namespace yolo9
