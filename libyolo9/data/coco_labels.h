// COCO JSON files. One pass finds where each annotation stands; the annotations of a picture are read when they are
// asked for. So a file costs some 150 bytes a picture and 24 an annotation, however long its outlines are.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <yolo9/data/json_reader.h>
#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

struct CocoImage {
  std::string file_name;
  PixelSize size;  // as the file says; 0 x 0 if it does not
  int64_t line = 0;
};

// What the first pass finds.
struct CocoIndex {
  struct Place {
    int64_t image_id = 0;
    uint64_t begin = 0;  // of the annotation's text in the file
    uint32_t length = 0, line = 0;
  };
  struct Category {
    int64_t id = 0;
    std::string name;
  };
  std::vector<CocoImage> images;
  std::vector<int64_t> image_ids;
  std::vector<Place> annotations;
  std::vector<Category> categories;
  uint64_t hash = 0;  // of the file
};
constexpr int64_t kDeepestJson = 64;
constexpr uint64_t kLargestAnnotation = uint64_t{1} << 26;  // bytes

// Throws Error(Data), with "path:line", if the file is not JSON, nested more than kDeepestJson deep or has no images.
// Entries that cannot be used are faults. Images, annotations and categories may come in any order.
CocoIndex index_coco(const ByteFile& file, const std::string& path, LabelFile& faults, int64_t most_listed_faults);

class CocoLabels {
 public:
  explicit CocoLabels(const std::string& path, int64_t most_listed_faults = kMostListedFaults);
  // `path` is for messages.
  CocoLabels(ByteFile file, std::string path, int64_t most_listed_faults = kMostListedFaults);

  // The classes; categories become classes by name. Before the first parse().
  void set_names(const std::vector<std::string>& names);
  std::vector<std::string> category_names() const;  // by category id, each name once

  const std::string& path() const { return path_; }
  int64_t size() const { return static_cast<int64_t>(index_.images.size()); }
  const CocoImage& image(int64_t index) const { return index_.images.at(static_cast<size_t>(index)); }
  uint64_t hash() const { return index_.hash; }
  // What is wrong with entries that belong to no picture.
  const LabelFile& faults() const { return faults_; }
  // Lines are those of the annotations. The outline of an object is its polygon: parts are joined into one, masks are
  // traced. Without an outline, or with one that cannot be understood, it is the box. May be called from many threads.
  LabelFile parse(int64_t index, PixelSize picture) const;

 private:
  ByteFile file_;
  std::string path_;
  int64_t most_listed_faults_;
  LabelFile faults_;
  CocoIndex index_;                                    // annotations sorted by image, then as in the file
  std::unordered_map<int64_t, int64_t> class_of_;      // by category id; -1: none of the names
  std::unordered_map<int64_t, std::string> category_;  // names by id
};

}  // namespace yolo9
