#include <yolo9/eval/nms.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/Parallel.h>

namespace yolo9 {

namespace {

// Boxes of different classes are moved apart by this many pixels times the class, as the reference does. Suppression
// already looks only inside a class; the shift is kept because it rounds coordinates, which decides close calls.
constexpr float kClassShift = 7680.0f;

struct Candidate {
  float score;
  uint32_t anchor;
  uint32_t label;
};

// Kept boxes as separate arrays, so that the overlap loop vectorises.
struct Kept {
  std::vector<float> x1, y1, x2, y2, area;

  void push(float left, float top, float right, float bottom) {
    x1.push_back(left);
    y1.push_back(top);
    x2.push_back(right);
    y2.push_back(bottom);
    area.push_back((right - left) * (bottom - top));
  }

  // Whether any kept box overlaps by more than `threshold`. 0/0 is not more.
  bool suppresses(float left, float top, float right, float bottom, double threshold) const {
    const float own = (right - left) * (bottom - top);
    constexpr size_t kBlock = 64;
    for (size_t begin = 0; begin < x1.size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, x1.size());
      bool hit = false;
      for (size_t k = begin; k < end; ++k) {
        const float width = std::max(0.0f, std::min(right, x2[k]) - std::max(left, x1[k]));
        const float height = std::max(0.0f, std::min(bottom, y2[k]) - std::max(top, y1[k]));
        const float inter = width * height;
        hit |= static_cast<double>(inter / (area[k] + own - inter)) > threshold;
      }
      if (hit) return true;
    }
    return false;
  }
};

// One image: row r of the prediction is data + r * anchors.
class ImageNms {
 public:
  ImageNms(const float* data, int64_t classes, int64_t anchors, const NmsOptions& options)
      : data_(data), classes_(classes), anchors_(anchors), options_(options) {
    wanted_.assign(static_cast<size_t>(classes), options.classes.empty());
    for (const int64_t c : options.classes) {
      if (c >= 0 && c < classes) wanted_[static_cast<size_t>(c)] = true;
    }
  }

  torch::Tensor run() {
    if (options_.multi_label && classes_ > 1) {
      collect_every_class();
    } else {
      collect_best_class();
    }
    sort_candidates();
    return suppress();
  }

 private:
  bool box_is_finite(uint32_t anchor) const {
    for (int64_t r = 0; r < 4; ++r) {
      if (!std::isfinite(data_[r * anchors_ + anchor])) return false;
    }
    return true;
  }

  void add(float score, uint32_t anchor, uint32_t label) {
    if (std::isfinite(score) && box_is_finite(anchor)) candidates_.push_back({score, anchor, label});
  }

  void collect_every_class() {
    const auto threshold = static_cast<float>(options_.confidence);
    for (int64_t c = 0; c < classes_; ++c) {
      if (!wanted_[static_cast<size_t>(c)]) continue;
      const float* row = data_ + (4 + c) * anchors_;
      constexpr int64_t kBlock = 32;  // most blocks of a trained model hold nothing: one vectorised test each
      for (int64_t begin = 0; begin < anchors_; begin += kBlock) {
        const int64_t end = std::min(begin + kBlock, anchors_);
        int any = 0;
        for (int64_t a = begin; a < end; ++a) any |= row[a] > threshold;
        if (!any) continue;
        for (int64_t a = begin; a < end; ++a) {
          if (row[a] > threshold) add(row[a], static_cast<uint32_t>(a), static_cast<uint32_t>(c));
        }
      }
    }
  }

  void collect_best_class() {
    const auto threshold = static_cast<float>(options_.confidence);
    const auto count = static_cast<size_t>(anchors_);
    std::vector<float> best(count, -std::numeric_limits<float>::infinity());
    std::vector<uint32_t> label(count, 0);
    for (int64_t c = 0; c < classes_; ++c) {
      const float* row = data_ + (4 + c) * anchors_;
      for (size_t a = 0; a < count; ++a) {
        if (row[a] > best[a]) {
          best[a] = row[a];
          label[a] = static_cast<uint32_t>(c);
        }
      }
    }
    for (size_t a = 0; a < count; ++a) {
      if (best[a] > threshold && wanted_[label[a]]) add(best[a], static_cast<uint32_t>(a), label[a]);
    }
  }

  void sort_candidates() {
    const auto before = [](const Candidate& a, const Candidate& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.anchor != b.anchor ? a.anchor < b.anchor : a.label < b.label;
    };
    const auto limit = static_cast<size_t>(std::max<int64_t>(options_.max_candidates, 0));
    if (candidates_.size() > limit) {
      std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(limit),
                       candidates_.end(), before);
      candidates_.resize(limit);
    }
    std::sort(candidates_.begin(), candidates_.end(), before);
  }

  // Candidates by descending score, each against the boxes kept so far: the same result as striking out what a kept
  // box overlaps, and it can stop at the last box that is wanted.
  torch::Tensor suppress() const {
    const auto limit = static_cast<size_t>(std::max<int64_t>(options_.max_detections, 0));
    std::vector<Kept> kept(options_.agnostic ? 1 : static_cast<size_t>(classes_));
    std::vector<float> rows;
    for (const Candidate& candidate : candidates_) {
      if (rows.size() / 6 >= limit) break;
      const float* box = data_ + candidate.anchor;
      const float half_width = box[2 * anchors_] / 2, half_height = box[3 * anchors_] / 2;
      const float x1 = box[0] - half_width, y1 = box[anchors_] - half_height;
      const float x2 = box[0] + half_width, y2 = box[anchors_] + half_height;
      const float shift = options_.agnostic ? 0.0f : kClassShift * static_cast<float>(candidate.label);
      Kept& rivals = kept[options_.agnostic ? 0 : candidate.label];
      if (rivals.suppresses(x1 + shift, y1 + shift, x2 + shift, y2 + shift, options_.iou)) continue;
      rivals.push(x1 + shift, y1 + shift, x2 + shift, y2 + shift);
      rows.insert(rows.end(), {x1, y1, x2, y2, candidate.score, static_cast<float>(candidate.label)});
    }
    torch::Tensor result = torch::empty({static_cast<int64_t>(rows.size() / 6), 6}, torch::kFloat32);
    if (!rows.empty()) std::memcpy(result.data_ptr<float>(), rows.data(), rows.size() * sizeof(float));
    return result;
  }

  const float* data_;
  int64_t classes_, anchors_;
  const NmsOptions& options_;
  std::vector<bool> wanted_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<torch::Tensor> non_max_suppression(const torch::Tensor& prediction, const NmsOptions& options) {
  TORCH_CHECK(prediction.dim() == 3 && prediction.size(1) > 4,
              "[non_max_suppression] expected a prediction of shape [B, 4 + classes, A], got ", prediction.sizes());
  const torch::Tensor data = prediction.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const int64_t images = data.size(0), rows = data.size(1), anchors = data.size(2);
  std::vector<torch::Tensor> result(static_cast<size_t>(images));
  const float* base = data.data_ptr<float>();
  at::parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      result[static_cast<size_t>(i)] = ImageNms(base + i * rows * anchors, rows - 4, anchors, options).run();
    }
  });
  return result;
}

}  // namespace yolo9
