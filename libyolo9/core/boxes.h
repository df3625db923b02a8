// Boxes as tensors: conversions, overlap measures, clipping. The last dimension holds the four coordinates.
// "Corner form" is x1, y1, x2, y2; "centre form" is centre x, centre y, width, height; x right, y down.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include <yolo9/core/types.h>

namespace yolo9 {

torch::Tensor centre_to_corner(const torch::Tensor& boxes);
torch::Tensor corner_to_centre(const torch::Tensor& boxes);

// Normalised centre form -> corner form in pixels of a picture width x height, shifted by the padding.
torch::Tensor denormalise_boxes(const torch::Tensor& centre, double width, double height, double pad_x = 0,
                                double pad_y = 0);
// Corner form in pixels -> normalised centre form.
torch::Tensor normalise_boxes(const torch::Tensor& corner, double width, double height);

// Corner form cut to [0, width] x [0, height].
torch::Tensor clip_boxes(const torch::Tensor& corner, double height, double width);

// How a picture is letterboxed when it is fitted into, and centred in, network_height x network_width.
LetterboxInfo centred_letterbox(int64_t network_height, int64_t network_width, int64_t original_height,
                                int64_t original_width);
// Corner boxes in network pixels -> original pixels, clipped to the original picture.
torch::Tensor scale_boxes(const torch::Tensor& corner, const LetterboxInfo& letterbox);

// GIoU: Rezatofighi et al. 2019; DIoU and CIoU: Zheng et al. 2020.
enum class IouKind { IoU, GIoU, DIoU, CIoU };

// Overlap of box pairs, broadcast over the leading dimensions. 1e-7 is added to heights, not to widths, to the
// union and to the enclosing measure. Differentiable; CIoU's trade-off weight carries no gradient.
torch::Tensor corner_iou(const torch::Tensor& box1, const torch::Tensor& box2, IouKind kind);
// The same from the centre form, without the 1e-7 on heights; boxes of zero width and height give no NaN.
torch::Tensor centre_iou(const torch::Tensor& box1, const torch::Tensor& box2, IouKind kind);

// CIoU's aspect angle atan(width / (height + 1e-7)) of corner boxes, and CIoU from given angles. They stand apart
// because the assigner meets each box many times.
torch::Tensor aspect_angle(const torch::Tensor& corner);
torch::Tensor corner_ciou(const torch::Tensor& box1, const torch::Tensor& box2, const torch::Tensor& angle1,
                          const torch::Tensor& angle2);

// [N,4] x [M,4] corner form -> [N,M].
torch::Tensor pairwise_iou(const torch::Tensor& box1, const torch::Tensor& box2);
// Intersection over the area of box2, [N,M].
torch::Tensor pairwise_ioa(const torch::Tensor& box1, const torch::Tensor& box2);

}  // namespace yolo9
