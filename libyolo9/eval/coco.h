// COCO's evaluation of boxes: the same twelve figures as pycocotools gives, to rounding.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace yolo9 {

struct CocoBox {
  double x = 0, y = 0, width = 0, height = 0;  // left, top, width, height in pixels
};

struct CocoAnnotation {
  int64_t id = 0, image_id = 0, category_id = 0;
  CocoBox box;
  double area = 0;  // may differ from the box's: COCO takes it from the outline
  bool crowd = false;
};

struct CocoDetection {
  int64_t image_id = 0, category_id = 0;
  CocoBox box;
  double score = 0;
};

struct CocoTruth {
  std::vector<int64_t> images;
  std::vector<std::pair<int64_t, std::string>> categories;
  std::vector<CocoAnnotation> annotations;
};

// -1 where nothing could be measured (no truth of that size or class).
struct CocoSummary {
  double ap = -1, ap50 = -1, ap75 = -1, ap_small = -1, ap_medium = -1, ap_large = -1;
  double ar1 = -1, ar10 = -1, ar100 = -1, ar_small = -1, ar_medium = -1, ar_large = -1;

  // The names used in JSON: AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl.
  std::vector<std::pair<std::string, double>> figures() const;
};

struct CocoCategoryResult {
  int64_t id = 0;
  std::string name;
  double ap = -1, ap50 = -1, ar = -1;  // all areas, 100 detections an image
};

struct CocoResult {
  CocoSummary summary;
  std::vector<CocoCategoryResult> categories;  // by ascending id
};

// Readers of COCO JSON files. Malformed input is Error(Data) with one line that names file and entry.
CocoTruth read_coco_truth(const std::string& path);
std::vector<CocoDetection> read_coco_detections(const std::string& path);
// "[{"image_id":..,"category_id":..,"bbox":[..],"score":..}, ...]", coordinates to 3 and scores to 5 decimals.
// image_names, when not empty, replaces a detection's image id by a text (picture names that are not numbers).
void write_coco_detections(const std::string& path, const std::vector<CocoDetection>& detections,
                           const std::vector<std::pair<int64_t, std::string>>& image_names = {});

// Throws Error(Data) for a detection of an unknown image. Detections of unknown categories are ignored with a
// warning, and an annotation whose id is 0 can never be matched, both as in pycocotools.
// Uses all intra-op threads; the result does not depend on their number.
CocoResult evaluate_coco(const CocoTruth& truth, const std::vector<CocoDetection>& detections);

}  // namespace yolo9
