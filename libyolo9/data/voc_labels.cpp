#include <yolo9/data/voc_labels.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>

#include <expat.h>
#include <yolo9/data/label_builder.h>

namespace yolo9 {
namespace {

constexpr std::array<const char*, 4> kCorners{"xmin", "ymin", "xmax", "ymax"};

struct VocObject {
  int64_t line = 0;
  std::string name;
  std::array<std::optional<std::string>, 4> corners;  // as kCorners
};

struct VocFile {
  std::vector<VocObject> objects;
  PixelSize size;
  int64_t size_line = 0;
  int64_t fault_line = 0;
  std::string fault;  // why it cannot be read; empty if it can
};

std::string trim(const std::string& text) {
  constexpr const char* kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<double> parse_pixels(const std::string& text) {
  constexpr double kFarthest = 1e9;
  double value = 0;
  const char* begin = text.data() + (text.size() > 1 && text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(begin, end, value);
  if (status != std::errc() || stop != end || !(std::abs(value) < kFarthest)) return std::nullopt;
  return value;
}

class VocReader {
 public:
  VocFile read(const std::string& text) {
    // Without libexpat's handling of namespaces; external entities are not loaded unless one asks for it.
    const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(XML_ParserCreate(nullptr),
                                                                              &XML_ParserFree);
    parser_ = parser.get();
    if (parser_ == nullptr) throw std::bad_alloc();
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(parser_, &on_start, &on_end);
    XML_SetCharacterDataHandler(parser_, &on_text);
    XML_SetEntityDeclHandler(parser_, &on_entity);
    constexpr size_t kBlock = size_t{1} << 24;  // libexpat counts in int
    XML_Status status = XML_STATUS_OK;
    for (size_t at = 0; status == XML_STATUS_OK && (at == 0 || at < text.size()); at += kBlock) {
      const size_t count = std::min(kBlock, text.size() - at);
      status = XML_Parse(parser_, text.data() + at, static_cast<int>(count), at + count == text.size());
    }
    if (status != XML_STATUS_OK && file_.fault.empty()) {
      fail(std::string("is not well-formed XML: ") + XML_ErrorString(XML_GetErrorCode(parser_)));
    }
    return std::move(file_);
  }

 private:
  static VocReader& self(void* data) { return *static_cast<VocReader*>(data); }
  static void on_start(void* data, const XML_Char* name, const XML_Char**) { self(data).start(name); }
  static void on_end(void* data, const XML_Char*) { self(data).end(); }
  static void on_text(void* data, const XML_Char* text, int length) {
    constexpr size_t kLongest = 4096;  // of a name or number
    std::string& to = self(data).text_;
    to.append(text, std::min(static_cast<size_t>(length), kLongest - std::min(kLongest, to.size())));
  }
  static void on_entity(void* data, const XML_Char*, int, const XML_Char*, int, const XML_Char*, const XML_Char*,
                        const XML_Char*, const XML_Char*) {
    self(data).fail("declares entities, which label files have no use for");
  }

  void fail(std::string what) {
    if (!file_.fault.empty()) return;
    file_.fault = std::move(what);
    file_.fault_line = line();
    XML_StopParser(parser_, XML_FALSE);
  }
  int64_t line() const { return static_cast<int64_t>(XML_GetCurrentLineNumber(parser_)); }

  // Where we are, as "annotation/object/bndbox/xmin".
  void start(const std::string& name) {
    if (!file_.fault.empty()) return;  // libexpat may go on for an event or two
    if (depth_ == 0 && name != "annotation") {
      return fail("is not Pascal VOC's: begins with " + quote_word(name) + ", not with \"annotation\"");
    }
    if (++depth_ > kDeepestXml) return fail("is nested more than " + std::to_string(kDeepestXml) + " deep");
    lengths_.push_back(path_.size());
    path_ += (path_.empty() ? "" : "/") + name.substr(0, 64);
    text_.clear();
    if (path_ == "annotation/object") {
      file_.objects.emplace_back();
      file_.objects.back().line = line();
    } else if (path_ == "annotation/size") {
      file_.size_line = line();
    }
  }
  void end() {
    if (!file_.fault.empty()) return;
    const std::string inside = "annotation/object/bndbox/";
    if (path_ == "annotation/object/name") file_.objects.back().name = trim(text_);
    if (path_ == "annotation/size/width") file_.size.width = side(text_);
    if (path_ == "annotation/size/height") file_.size.height = side(text_);
    for (size_t i = 0; i < kCorners.size(); ++i) {
      if (path_ == inside + kCorners[i]) file_.objects.back().corners[i] = trim(text_);
    }
    path_.resize(lengths_.back());
    lengths_.pop_back();
    --depth_;
    text_.clear();
  }
  static int64_t side(const std::string& text) {
    const std::optional<double> value = parse_pixels(trim(text));
    return value && *value > 0 ? std::llround(*value) : 0;
  }

  VocFile file_;
  XML_Parser parser_ = nullptr;
  int depth_ = 0;
  std::string path_, text_;
  std::vector<size_t> lengths_;  // of path_ outside each open element
};

void add_object(const VocObject& object, const std::vector<std::string>& names, PixelSize size, LabelBuilder& builder) {
  const auto found = std::find(names.begin(), names.end(), object.name);
  if (found == names.end()) {
    return builder.fault(LabelFaultKind::UnknownCategory, object.line,
                         quote_word(object.name) + " is none of the data set's classes");
  }
  double pixels[4];
  for (size_t i = 0; i < kCorners.size(); ++i) {
    if (!object.corners[i]) {
      return builder.fault(LabelFaultKind::TokenCount, object.line,
                           std::string("the object has no bndbox with ") + kCorners[i]);
    }
    const std::optional<double> value = parse_pixels(*object.corners[i]);
    if (!value) {
      return builder.fault(
          LabelFaultKind::NotANumber, object.line,
          std::string(kCorners[i]) + " is " + quote_word(*object.corners[i]) + ", no number of pixels");
    }
    pixels[i] = *value;
  }
  if (size.height == 0) {
    return builder.fault(LabelFaultKind::SizeUnknown, object.line, "the picture's size is not known");
  }
  const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
  if (pixels[0] > pixels[2] || pixels[1] > pixels[3]) {
    return builder.fault(LabelFaultKind::InvertedBox, object.line, "the box's first corner is not above and left");
  }
  // One pixel: many programs count from 0.
  builder.add_box(found - names.begin(),
                  {(pixels[0] - 1) / width, (pixels[1] - 1) / height, pixels[2] / width, pixels[3] / height}, 1 / width,
                  1 / height, object.line);
}

}  // namespace

LabelFile parse_voc(const std::string& text, const std::vector<std::string>& names, PixelSize picture,
                    int64_t most_listed_faults) {
  VocFile file = VocReader().read(text);
  if (!file.fault.empty()) return unreadable_labels(file.fault_line, std::move(file.fault));
  LabelBuilder builder(most_listed_faults);
  if (file.objects.empty()) return builder.finish();
  const PixelSize size = reference_size(file.size, picture, file.size_line, builder);
  for (const VocObject& object : file.objects) add_object(object, names, size, builder);
  return builder.finish();
}

std::vector<std::string> voc_names(const std::string& text) {
  std::vector<std::string> names;
  for (VocObject& object : VocReader().read(text).objects) names.push_back(std::move(object.name));
  return names;
}

}  // namespace yolo9
