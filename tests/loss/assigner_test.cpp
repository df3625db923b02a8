#include <catch2/catch.hpp>

#include <yolo9/core/safetensors.h>
#include <yolo9/loss/assigner.h>

#include "loss/scene.h"
#include "support/fixture.h"

namespace {

// The padded fixture as the flat list the assigner takes.
yolo9::GroundTruths flatten(const std::map<std::string, torch::Tensor>& data) {
  if (!data.count("gt_bboxes"))
    return {torch::empty({0}, torch::kLong), torch::empty({0}, torch::kLong), torch::empty({0, 4})};
  const auto real = data.at("mask_gt").squeeze(2).nonzero();
  const auto image = real.select(1, 0), row = real.select(1, 1);
  return {image.contiguous(), data.at("gt_labels").squeeze(2).index({image, row}).to(torch::kLong),
          data.at("gt_bboxes").index({image, row})};
}

yolo9::ClassScores scores_of(const torch::Tensor& scores) {
  return {{scores.transpose(1, 2).unsqueeze(3)}, false};
}

struct Dense {
  torch::Tensor labels, boxes, scores, foreground;
};

Dense densify(const yolo9::Assignment& result, const yolo9::GroundTruths& truths, int64_t batch, int64_t anchors,
              int64_t classes) {
  Dense dense{torch::full({batch, anchors}, -1, torch::kLong), torch::zeros({batch, anchors, 4}),
              torch::zeros({batch, anchors, classes}), torch::zeros({batch, anchors}, torch::kUInt8)};
  const auto label = truths.label.index_select(0, result.truth);
  dense.labels.index_put_({result.image, result.anchor}, label);
  dense.boxes.index_put_({result.image, result.anchor}, truths.box.index_select(0, result.truth));
  dense.scores.index_put_({result.image, result.anchor, label}, result.score);
  dense.foreground.index_put_({result.image, result.anchor}, torch::ones_like(label).to(torch::kUInt8));
  return dense;
}

}  // namespace

TEST_CASE("assignments agree with the fixtures", "[golden]") {
  const auto files = fixture::golden_files("tal", "tal.json");
  if (files.empty()) WARN("no assigner fixtures");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    for (const auto& [name, entry] : info.at("cases").items()) {
      CAPTURE(file, name);
      const auto data = yolo9::read_safetensors_map(file.substr(0, file.rfind('/') + 1) +
                                                    entry.at("file").get<std::string>());
      yolo9::AssignerOptions options;
      options.topk = entry.at("topk");
      options.alpha = entry.at("alpha");
      options.beta = entry.at("beta");
      options.eps = entry.at("eps");
      const auto truths = flatten(data);
      const auto result = yolo9::assign_targets(truths, data.at("pd_bboxes"), scores_of(data.at("pd_scores")),
                                                data.at("anc_points"), options);
      const auto& expected = data.at("target_scores");
      const auto dense = densify(result, truths, expected.size(0), expected.size(1), expected.size(2));
      CHECK(fixture::excess(dense.scores, expected, 1e-5, 0) <= 0);
      CHECK(result.score.sum().item<double>() ==
            Approx(fixture::number(entry.at("target_scores_sum"))).epsilon(1e-5).margin(1e-6));
      auto both = data.at("fg_mask").to(torch::kBool);
      if (entry.at("tie_changes_fg_mask").get<int64_t>() == 0) {
        CHECK(result.anchor.size(0) == entry.at("positives").get<int64_t>());
        CHECK(dense.foreground.equal(data.at("fg_mask")));
      } else {
        both = both.logical_and(dense.foreground.to(torch::kBool));
      }
      const auto where = both.nonzero();
      const auto image = where.select(1, 0), anchor = where.select(1, 1);
      CHECK(dense.labels.index({image, anchor}).equal(data.at("target_labels").index({image, anchor})));
      CHECK(dense.boxes.index({image, anchor}).equal(data.at("target_bboxes").index({image, anchor})));
    }
  }
}

TEST_CASE("the size of the chunks changes no bit") {
  const auto scene = golden::make_scene({40, 0, 7, 90}, 160, 5, "assigner:chunks");
  for (const double alpha : {0.5, 0.7}) {
    yolo9::AssignerOptions options;
    options.alpha = alpha;
    options.beta = alpha == 0.5 ? 6.0 : 4.5;
    const auto whole = yolo9::assign_targets(scene.truths, scene.boxes, scene.scores, scene.points, options);
    REQUIRE(whole.anchor.size(0) > 200);
    for (const int64_t pairs : {1, 777, 5003, 1 << 30}) {
      CAPTURE(alpha, pairs);
      options.chunk_pairs = pairs;
      const auto result = yolo9::assign_targets(scene.truths, scene.boxes, scene.scores, scene.points, options);
      CHECK(result.image.equal(whole.image));
      CHECK(result.anchor.equal(whole.anchor));
      CHECK(result.truth.equal(whole.truth));
      CHECK(result.score.equal(whole.score));
    }
  }
}

TEST_CASE("an image gets the same positives alone and in a batch") {
  const auto scene = golden::make_scene({30, 12}, 160, 5, "assigner:alone");
  const auto both = yolo9::assign_targets(scene.truths, scene.boxes, scene.scores, scene.points, {});
  auto second = scene;
  second.truths = {torch::zeros({12}, torch::kLong), scene.truths.label.narrow(0, 30, 12),
                   scene.truths.box.narrow(0, 30, 12)};
  second.boxes = scene.boxes.narrow(0, 1, 1);
  for (auto& level : second.scores.levels) level = level.narrow(0, 1, 1);
  const auto alone = yolo9::assign_targets(second.truths, second.boxes, second.scores, second.points, {});
  const auto mine = (both.image == 1).nonzero().squeeze(1);
  REQUIRE(alone.anchor.size(0) > 0);
  CHECK(both.anchor.index_select(0, mine).equal(alone.anchor));
  CHECK((both.truth.index_select(0, mine) - 30).equal(alone.truth));
  CHECK(both.score.index_select(0, mine).equal(alone.score));
}

TEST_CASE("three thousand boxes in one image") {
  const auto scene = golden::make_scene({3000}, 640, 80, "assigner:dense");
  const auto result = yolo9::assign_targets(scene.truths, scene.boxes, scene.scores, scene.points, {});
  CHECK(result.anchor.size(0) > 3000);
  // Every anchor is positive once at most, and in order.
  CHECK((result.anchor.diff() > 0).all().item<bool>());
  CHECK(result.score.isfinite().all().item<bool>());
  CHECK(result.score.max().item<double>() <= 1.0);
}
