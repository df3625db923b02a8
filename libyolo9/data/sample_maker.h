// From a plan to a sample: reading the pictures, putting them together, colour, planes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include <yolo9/data/dataset.h>
#include <yolo9/data/epoch_order.h>

namespace yolo9 {

class ItemTable;
class PictureCache;
class RecentPictures;
struct PlannedTile;
struct PartRequest;
struct WarpTile;
struct SamplePlan;
struct ScenePlan;

class SampleMaker {
 public:
  // All must outlive it. `cache` may be null. `rect_shapes`: one a batch, empty unless rectangular.
  SampleMaker(const DatasetOptions& options, const ItemTable& items, const std::vector<PixelSize>& rect_shapes,
              PictureCache* cache);
  ~SampleMaker();

  // `planes`: where the pixels go, 3 x height x width bytes of sample_size(index), R, G, B; Sample::image then is a
  // view of it. Null: into memory of the sample's own.
  Sample make(int64_t index, int64_t epoch, bool mosaic, int64_t repeat, uint8_t* planes = nullptr) const;
  PixelSize sample_size(int64_t index) const;
  int64_t decode_failures() const { return decode_failures_; }

 private:
  // Pictures that could not be decoded: they become grey and have no objects.
  using Failed = std::set<int64_t>;

  cv::Mat read_resized(int64_t index, Failed& failed) const;
  cv::Mat load(int64_t index, Failed& failed) const;
  void note_failure(int64_t index, const char* what, Failed& failed) const;
  cv::Mat loaded_part(int64_t index, const PartRequest& request) const;
  bool read_tile(const PlannedTile& planned, const PartRequest& request, bool whole, WarpTile& tile,
                 Failed& failed) const;
  cv::Mat render(const SamplePlan& plan, Failed& failed) const;
  cv::Mat render_scene(const ScenePlan& scene, Failed& failed) const;
  cv::Mat render_on_canvas(const ScenePlan& scene, Failed& failed) const;
  cv::Mat render_tiles(const ScenePlan& scene, Failed& failed) const;

  const DatasetOptions& options_;
  const ItemTable& items_;
  const std::vector<PixelSize>& rect_shapes_;
  PictureCache* cache_;
  std::unique_ptr<RecentPictures> recent_;
  EpochOrders orders_;
  mutable std::atomic<int64_t> decode_failures_{0};
};

}  // namespace yolo9
