#include <yolo9/core/boxes.h>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace yolo9 {
namespace {

constexpr double kEps = 1e-7;

// Corners and sides of a set of boxes, whichever form they came in.
struct Parts {
  torch::Tensor x1, y1, x2, y2, width, height;
};

Parts corner_parts(const torch::Tensor& boxes) {
  const auto c = boxes.unbind(-1);
  return {c[0], c[1], c[2], c[3], c[2] - c[0], c[3] - c[1] + kEps};
}

Parts centre_parts(const torch::Tensor& boxes) {
  const auto c = boxes.unbind(-1);
  const auto half_width = c[2] / 2, half_height = c[3] / 2;
  return {c[0] - half_width, c[1] - half_height, c[0] + half_width, c[1] + half_height, c[2], c[3]};
}

// Any positive stand-in for a height of zero gives the limit: 0 for an empty box, else a right angle.
torch::Tensor angle_of(const Parts& b) {
  return at::atan(b.width / at::where(b.height == 0, kEps, b.height));
}

struct Overlap {
  torch::Tensor iou, area_union;
};

Overlap plain_iou(const Parts& a, const Parts& b) {
  const auto intersection = (at::minimum(a.x2, b.x2) - at::maximum(a.x1, b.x1)).clamp_min(0) *
                            (at::minimum(a.y2, b.y2) - at::maximum(a.y1, b.y1)).clamp_min(0);
  auto area_union = a.width * a.height + b.width * b.height - intersection + kEps;
  return {intersection / area_union, area_union};
}

torch::Tensor ciou_from(const torch::Tensor& diou, const torch::Tensor& iou, const torch::Tensor& angle1,
                        const torch::Tensor& angle2) {
  const auto v = (angle2 - angle1).square() * (4 / (M_PI * M_PI));
  torch::Tensor weight;
  {
    const at::NoGradGuard no_grad;
    weight = v / (v - iou + (1 + kEps));
  }
  return diou - v * weight;
}

torch::Tensor diou_of(const Parts& a, const Parts& b, const torch::Tensor& iou) {
  const auto enclosing_width = at::maximum(a.x2, b.x2) - at::minimum(a.x1, b.x1);
  const auto enclosing_height = at::maximum(a.y2, b.y2) - at::minimum(a.y1, b.y1);
  const auto diagonal = enclosing_width.square() + enclosing_height.square() + kEps;
  const auto distance = ((b.x1 + b.x2 - a.x1 - a.x2).square() + (b.y1 + b.y2 - a.y1 - a.y2).square()) / 4;
  return iou - distance / diagonal;
}

torch::Tensor iou_of(const Parts& a, const Parts& b, IouKind kind) {
  const auto overlap = plain_iou(a, b);
  if (kind == IouKind::IoU) return overlap.iou;
  if (kind == IouKind::GIoU) {
    const auto enclosing = (at::maximum(a.x2, b.x2) - at::minimum(a.x1, b.x1)) *
                               (at::maximum(a.y2, b.y2) - at::minimum(a.y1, b.y1)) +
                           kEps;
    return overlap.iou - (enclosing - overlap.area_union) / enclosing;
  }
  const auto diou = diou_of(a, b, overlap.iou);
  return kind == IouKind::DIoU ? diou : ciou_from(diou, overlap.iou, angle_of(a), angle_of(b));
}

// Intersection areas [N,M] of corner boxes.
torch::Tensor pairwise_intersection(const torch::Tensor& box1, const torch::Tensor& box2) {
  const auto a = box1.unsqueeze(1), b = box2.unsqueeze(0);
  const auto sides = (at::minimum(a.narrow(2, 2, 2), b.narrow(2, 2, 2)) -
                      at::maximum(a.narrow(2, 0, 2), b.narrow(2, 0, 2)))
                         .clamp_min(0);
  return sides.select(2, 0) * sides.select(2, 1);
}

torch::Tensor area_of(const torch::Tensor& corner) {
  return (corner.select(-1, 2) - corner.select(-1, 0)) * (corner.select(-1, 3) - corner.select(-1, 1));
}

torch::Tensor row_of_four(const torch::Tensor& like, double a, double b, double c, double d) {
  return at::tensor({a, b, c, d}, at::kDouble).to(like.options());
}

}  // namespace

torch::Tensor centre_to_corner(const torch::Tensor& boxes) {
  const auto centre = boxes.narrow(-1, 0, 2), half = boxes.narrow(-1, 2, 2) / 2;
  return at::cat({centre - half, centre + half}, -1);
}

torch::Tensor corner_to_centre(const torch::Tensor& boxes) {
  const auto low = boxes.narrow(-1, 0, 2), high = boxes.narrow(-1, 2, 2);
  return at::cat({(low + high) / 2, high - low}, -1);
}

torch::Tensor denormalise_boxes(const torch::Tensor& centre, double width, double height, double pad_x,
                                double pad_y) {
  return centre_to_corner(centre) * row_of_four(centre, width, height, width, height) +
         row_of_four(centre, pad_x, pad_y, pad_x, pad_y);
}

torch::Tensor normalise_boxes(const torch::Tensor& corner, double width, double height) {
  return corner_to_centre(corner) / row_of_four(corner, width, height, width, height);
}

torch::Tensor clip_boxes(const torch::Tensor& corner, double height, double width) {
  return at::minimum(corner.clamp_min(0), row_of_four(corner, width, height, width, height));
}

LetterboxInfo centred_letterbox(int64_t network_height, int64_t network_width, int64_t original_height,
                                int64_t original_width) {
  LetterboxInfo info;
  info.original_height = original_height;
  info.original_width = original_width;
  const double height = static_cast<double>(original_height), width = static_cast<double>(original_width);
  const double ratio =
      std::min(static_cast<double>(network_height) / height, static_cast<double>(network_width) / width);
  info.ratio_height = info.ratio_width = ratio;
  info.pad_left = (static_cast<double>(network_width) - width * ratio) / 2;
  info.pad_top = (static_cast<double>(network_height) - height * ratio) / 2;
  return info;
}

torch::Tensor scale_boxes(const torch::Tensor& corner, const LetterboxInfo& box) {
  const auto pad = row_of_four(corner, box.pad_left, box.pad_top, box.pad_left, box.pad_top);
  const auto ratio = row_of_four(corner, box.ratio_width, box.ratio_height, box.ratio_width, box.ratio_height);
  return clip_boxes((corner - pad) / ratio, static_cast<double>(box.original_height),
                    static_cast<double>(box.original_width));
}

torch::Tensor corner_iou(const torch::Tensor& box1, const torch::Tensor& box2, IouKind kind) {
  return iou_of(corner_parts(box1), corner_parts(box2), kind);
}

torch::Tensor centre_iou(const torch::Tensor& box1, const torch::Tensor& box2, IouKind kind) {
  return iou_of(centre_parts(box1), centre_parts(box2), kind);
}

torch::Tensor aspect_angle(const torch::Tensor& corner) { return angle_of(corner_parts(corner)); }

torch::Tensor corner_ciou(const torch::Tensor& box1, const torch::Tensor& box2, const torch::Tensor& angle1,
                          const torch::Tensor& angle2) {
  const auto a = corner_parts(box1), b = corner_parts(box2);
  const auto iou = plain_iou(a, b).iou;
  return ciou_from(diou_of(a, b, iou), iou, angle1, angle2);
}

torch::Tensor pairwise_iou(const torch::Tensor& box1, const torch::Tensor& box2) {
  const auto intersection = pairwise_intersection(box1, box2);
  return intersection / (area_of(box1).unsqueeze(1) + area_of(box2).unsqueeze(0) - intersection + kEps);
}

torch::Tensor pairwise_ioa(const torch::Tensor& box1, const torch::Tensor& box2) {
  return pairwise_intersection(box1, box2) / (area_of(box2).unsqueeze(0) + kEps);
}

}  // namespace yolo9
