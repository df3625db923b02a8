#include <yolo9/data/json_reader.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yolo9/core/error.h>

namespace yolo9 {

ByteFile ByteFile::of_text(std::string text) {
  ByteFile file;
  file.size_ = text.size();
  file.text_ = std::move(text);
  return file;
}

ByteFile::ByteFile(const std::string& path) {
  // Non-blocking, so that a pipe of that name does not stop the run.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw Error(ErrorKind::Data, "the file cannot be read", path);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorKind::Data, "is not a file", path);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

ByteFile::ByteFile(ByteFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_), text_(std::move(other.text_)) {}

ByteFile::~ByteFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t ByteFile::read(uint64_t offset, char* to, size_t count) const {
  if (offset >= size_) return 0;
  count = static_cast<size_t>(std::min<uint64_t>(count, size_ - offset));
  if (descriptor_ < 0) {
    std::memcpy(to, text_.data() + offset, count);
    return count;
  }
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::pread(descriptor_, to + done, count - done, static_cast<off_t>(offset + done));
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

JsonReader::JsonReader(const ByteFile& file, std::string path, uint64_t begin, uint64_t end)
    : file_(file), path_(std::move(path)), position_(begin), end_(std::min(end, file.size())) {}

bool JsonReader::refill() {
  constexpr uint64_t kBlock = 1 << 16;
  if (position_ >= end_) return false;
  buffer_.resize(static_cast<size_t>(std::min(kBlock, end_ - position_)));
  buffer_.resize(file_.read(position_, buffer_.data(), buffer_.size()));
  buffer_at_ = 0;
  return !buffer_.empty();
}

int JsonReader::peek_byte() {
  if (buffer_at_ == buffer_.size() && !refill()) return kEnd;
  return static_cast<unsigned char>(buffer_[buffer_at_]);
}

int JsonReader::take_byte() {
  const int byte = peek_byte();
  if (byte == kEnd) return kEnd;
  ++buffer_at_;
  ++position_;
  if (byte == '\n') ++line_;
  return byte;
}

int JsonReader::produce_in_string(int byte) {
  if (++string_length_ > kLongestString) {
    throw Error(ErrorKind::Data, "a text longer than 64 MiB", path_ + ":" + std::to_string(line_));
  }
  if (escaped_) {
    escaped_ = false;
  } else if (byte == '\\') {
    escaped_ = true;
  } else if (byte == '"') {
    in_string_ = false;
  }
  return byte;
}

int JsonReader::produce() {
  if (pending_at_ < pending_.size()) return static_cast<unsigned char>(pending_[pending_at_++]);
  const int byte = take_byte();
  const int before = std::exchange(before_, byte);
  if (byte == kEnd) return kEnd;
  if (in_string_) return produce_in_string(byte);
  if (byte == '"') {
    in_string_ = true;
    string_length_ = 0;
    return byte;
  }
  if (byte == '-' && peek_byte() == 'I') return ' ';
  pending_.clear();
  if (byte == 'N' || byte == 'I') {
    mend_word(byte);
  } else if ((byte == 'e' || byte == 'E') && std::isdigit(before) != 0) {
    mend_exponent(byte);
  } else {
    return byte;
  }
  pending_at_ = 1;
  return static_cast<unsigned char>(pending_[0]);
}

void JsonReader::mend_word(int first) {
  constexpr size_t kLongestWord = 8;
  pending_ += static_cast<char>(first);
  while (std::isalpha(peek_byte()) != 0 && pending_.size() < kLongestWord) pending_ += static_cast<char>(take_byte());
  if (pending_ == "NaN" || pending_ == "Infinity") pending_ = "null";
}

void JsonReader::mend_exponent(int first) {
  constexpr int kLargest = 280;  // leaves room for digits before the point
  std::string sign;
  if (peek_byte() == '+' || peek_byte() == '-') sign = static_cast<char>(take_byte());
  int exponent = 0;
  bool any = false;
  while (std::isdigit(peek_byte()) != 0) {
    exponent = std::min(kLargest, 10 * exponent + take_byte() - '0');
    any = true;
  }
  pending_ = static_cast<char>(first) + sign + (any ? std::to_string(exponent) : "");
}

}  // namespace yolo9
