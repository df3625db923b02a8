// Everything that is drawn for a sample, and its labels, before any picture is read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/data/augment.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/filters.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

class EpochOrder;
class ItemTable;

struct PlannedTile {
  int64_t index = 0;        // of the picture
  PixelSize size;           // on the canvas
  TilePlacement placement;  // on the canvas
};

// A mosaic, or one letterboxed picture.
struct ScenePlan {
  bool mosaic = false;
  PixelSize canvas;
  std::vector<PlannedTile> tiles;             // later ones cover earlier ones
  std::vector<Polygon> pasted;                // outlines on the canvas whose mirrored copies are pasted
  Matrix3 matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};  // canvas -> output
  bool divide = false;                        // whether the matrix has perspective
  PixelSize output;
};

struct SamplePlan {
  std::vector<ScenePlan> scenes;  // one, or two that are mixed
  double mix_ratio = 1;           // share of the first
  FilterDraws filters;
  HsvGains hsv;
  bool flip_up_down = false, flip_left_right = false;
  Objects objects;  // of the sample as it comes out
  LetterboxInfo letterbox;
};

struct SampleKey {
  int64_t index = 0, epoch = 0, repeat = 0;
  bool mosaic = true;  // false: no mosaic and what needs one
};

// A pure function of options.seed and the key. `order`: of the key's epoch. `has_labels`: pictures for which it says no
// come without objects.
SamplePlan plan_sample(const DatasetOptions& options, const ItemTable& items, const EpochOrder& order, PixelSize shape,
                       const SampleKey& key, const std::function<bool(int64_t)>& has_labels);

}  // namespace yolo9
