#include <catch2/catch.hpp>

#include <torch/autograd.h>

#include <yolo9/core/boxes.h>
#include <yolo9/core/safetensors.h>

#include "support/fixture.h"

namespace {

torch::Tensor rows(const nlohmann::json& values) {
  std::vector<double> flat;
  for (const auto& row : values)
    for (const auto& value : row) flat.push_back(fixture::number(value));
  return torch::tensor(flat, torch::kFloat64).view({static_cast<int64_t>(values.size()), -1});
}

const std::vector<std::pair<std::string, yolo9::IouKind>> kKinds = {{"IoU", yolo9::IouKind::IoU},
                                                                    {"GIoU", yolo9::IouKind::GIoU},
                                                                    {"DIoU", yolo9::IouKind::DIoU},
                                                                    {"CIoU", yolo9::IouKind::CIoU}};

}  // namespace

TEST_CASE("overlap measures and their gradients agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("tal", "iou.safetensors");
  if (files.empty()) WARN("no overlap fixture");
  for (const auto& file : files) {
    auto data = yolo9::read_safetensors_map(file);
    int compared = 0;
    for (const auto& [name, kind] : kKinds) {
      CAPTURE(file, name);
      if (data.count("xyxy." + name)) {
        auto box1 = data.at("box1").clone().requires_grad_();
        const auto value = yolo9::corner_iou(box1, data.at("box2"), kind);
        CHECK(fixture::excess(value.detach(), data.at("xyxy." + name), 2e-6, 1e-5) <= 0);
        ++compared;
        if (data.count("xyxy." + name + ".grad_box1")) {
          const auto expected = data.at("xyxy." + name + ".grad_box1");
          const auto gradient = torch::autograd::grad({value.sum()}, {box1})[0];
          // Minute boxes have gradients beyond 1e4 that are all rounding.
          const auto sane = (expected.abs().amax(1) <= 1e4).nonzero().squeeze(1);
          REQUIRE(sane.size(0) > expected.size(0) / 2);
          CHECK(fixture::excess(gradient.index_select(0, sane), expected.index_select(0, sane), 2e-6, 1e-3) <= 0);
        }
      }
      if (data.count("xywh." + name)) {
        const auto value = yolo9::centre_iou(data.at("xywh.box1"), data.at("xywh.box2"), kind);
        const auto expected = data.at("xywh." + name);
        const auto valid = expected.isfinite().nonzero().squeeze(1);
        CHECK(value.isfinite().all().item<bool>());
        CHECK(fixture::excess(value.index_select(0, valid), expected.index_select(0, valid), 2e-6, 1e-5) <= 0);
        ++compared;
      }
    }
    CHECK(compared > 0);
    const auto pairwise = data.at("pairwise");
    const auto a = data.at("box1").narrow(0, 0, pairwise.size(0)), b = data.at("box2").narrow(0, 0, pairwise.size(1));
    CHECK(fixture::excess(yolo9::pairwise_iou(a, b), pairwise, 2e-6, 1e-5) <= 0);
    CHECK(fixture::excess(yolo9::pairwise_ioa(a.to(torch::kFloat64), b.to(torch::kFloat64)), data.at("ioa"), 2e-6,
                          1e-5) <= 0);
  }
}

TEST_CASE("conversions, clipping and letterbox reversal agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("augment", "boxes.json");
  if (files.empty()) WARN("no conversion fixture");
  for (const auto& file : files) {
    CAPTURE(file);
    const auto data = fixture::read_json(file);
    const double width = data.at("w"), height = data.at("h"), pad_x = data.at("padw"), pad_y = data.at("padh");
    const auto close = [](const torch::Tensor& actual, const nlohmann::json& expected) {
      return fixture::excess(actual, rows(expected), 1e-9, 1e-9) <= 0;
    };
    const auto corner = rows(data.at("xywhn2xyxy"));
    CHECK(close(yolo9::denormalise_boxes(rows(data.at("xywhn")), width, height, pad_x, pad_y), data.at("xywhn2xyxy")));
    CHECK(close(yolo9::corner_to_centre(corner), data.at("xyxy2xywh")));
    CHECK(close(yolo9::centre_to_corner(rows(data.at("xyxy2xywh"))), data.at("xywh2xyxy")));
    CHECK(close(yolo9::normalise_boxes(corner, width, height), data.at("xyxy2xywhn_noclip")));
    CHECK(close(yolo9::normalise_boxes(yolo9::clip_boxes(corner, height - 1e-3, width - 1e-3), width, height),
                data.at("xyxy2xywhn_clip_eps")));
    CHECK(close(yolo9::clip_boxes(corner, height, width), data.at("clip_boxes_480x640")));
    for (const auto& scale : data.at("scale_boxes")) {
      const auto network = scale.at("img1_hw").get<std::vector<int64_t>>();
      const auto original = scale.at("img0_hw").get<std::vector<int64_t>>();
      auto info = yolo9::centred_letterbox(network[0], network[1], original[0], original[1]);
      if (!scale.at("ratio_pad").is_null()) {
        info.ratio_height = info.ratio_width = scale.at("ratio_pad")[0][0];
        info.pad_left = scale.at("ratio_pad")[1][0];
        info.pad_top = scale.at("ratio_pad")[1][1];
      }
      CHECK(close(yolo9::scale_boxes(rows(scale.at("in")), info), scale.at("out")));
    }
  }
}

TEST_CASE("overlap of known boxes") {
  const auto a = torch::tensor({{0.f, 0.f, 4.f, 2.f}}), b = torch::tensor({{2.f, 0.f, 6.f, 2.f}});
  CHECK(yolo9::corner_iou(a, b, yolo9::IouKind::IoU).item<float>() == Approx(1.0 / 3));
  CHECK(yolo9::corner_iou(a, b, yolo9::IouKind::GIoU).item<float>() == Approx(1.0 / 3));
  CHECK(yolo9::corner_iou(a, b, yolo9::IouKind::DIoU).item<float>() == Approx(1.0 / 3 - 4.0 / 40));
  CHECK(yolo9::pairwise_ioa(a, b).item<float>() == Approx(0.5));
  const auto angle = yolo9::aspect_angle(a);
  CHECK(yolo9::corner_ciou(a, b, angle, yolo9::aspect_angle(b))
            .equal(yolo9::corner_iou(a, b, yolo9::IouKind::CIoU)));
}
