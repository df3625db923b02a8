// A JSON file as a stream of characters for nlohmann's parser, that knows where it is and mends what many programs
// write though JSON has no word for it: NaN and infinities become null, exponents beyond any number smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace yolo9 {

// Bytes that may be read from many threads: of a file that stays open, or of a text.
class ByteFile {
 public:
  static ByteFile of_text(std::string text);
  // Throws Error(Data) if it cannot be opened or is no file.
  explicit ByteFile(const std::string& path);
  ByteFile(ByteFile&& other) noexcept;
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;
  ~ByteFile();

  uint64_t size() const { return size_; }
  // How many bytes came: fewer than `count` at the end, or if the file was cut short or cannot be read.
  size_t read(uint64_t offset, char* to, size_t count) const;

 private:
  ByteFile() = default;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string text_;
};

class JsonReader {
 public:
  // Throws Error(Data), with "path:line", from within the parser for a string longer than kLongestString.
  JsonReader(const ByteFile& file, std::string path, uint64_t begin, uint64_t end);
  static constexpr size_t kLongestString = size_t{1} << 26;

  uint64_t position() const { return position_; }  // of the byte after the last one taken
  int64_t line() const { return line_; }           // of that byte, counted from 1 at `begin`

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;
    Iterator() = default;  // the end
    explicit Iterator(JsonReader& reader) : reader_(&reader) {}
    char operator*() const { return static_cast<char>(reader_->current()); }
    Iterator& operator++() {
      reader_->has_current_ = false;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return is_end() == other.is_end(); }
    bool operator!=(const Iterator& other) const { return !(*this == other); }

   private:
    bool is_end() const { return reader_ == nullptr || reader_->current() < 0; }
    JsonReader* reader_ = nullptr;
  };
  Iterator begin() { return Iterator(*this); }
  static Iterator end() { return Iterator(); }

 private:
  static constexpr int kEnd = -1;
  int current() {
    if (!has_current_) {
      current_ = produce();
      has_current_ = true;
    }
    return current_;
  }
  int produce();
  int produce_in_string(int byte);
  void mend_word(int first);
  void mend_exponent(int first);
  int peek_byte();
  int take_byte();
  bool refill();

  const ByteFile& file_;
  std::string path_;
  uint64_t position_, end_;
  int64_t line_ = 1;
  std::string buffer_, pending_;  // pending_: mended characters that are still to be given
  size_t buffer_at_ = 0, pending_at_ = 0, string_length_ = 0;
  int current_ = kEnd, before_ = 0;
  bool has_current_ = false, in_string_ = false, escaped_ = false;
};

}  // namespace yolo9
