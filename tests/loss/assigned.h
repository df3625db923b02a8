// Target rows and assignment records of the loss fixtures.
#pragma once

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include <yolo9/loss/detection_loss.h>

#include "support/fixture.h"

namespace golden {

inline torch::Tensor target_rows(const nlohmann::json& rows) {
  std::vector<double> flat;
  for (const auto& row : rows)
    for (const auto& value : row) flat.push_back(fixture::number(value));
  return torch::tensor(flat, torch::kFloat64).to(torch::kFloat).view({-1, 6});
}

// `assigned` rows are image, anchor, class, score, box in pixels. Positives of weight zero come and go with the
// order of equal values; where the fixture says they did, only the others are compared.
inline void check_assignment(const yolo9::DetectionLoss::Targets& actual, const nlohmann::json& expected,
                             double score_tolerance) {
  struct Row {
    int64_t label = 0;
    double score = 0;
    std::vector<double> box;
  };
  std::map<std::pair<int64_t, int64_t>, Row> left, right;
  const auto& positives = actual.positives;
  for (int64_t i = 0; i < positives.anchor.size(0); ++i) {
    const int64_t truth = positives.truth[i].item<int64_t>();
    Row row{actual.truths.label[truth].item<int64_t>(), positives.score[i].item<double>(), {}};
    for (int64_t c = 0; c < 4; ++c) row.box.push_back(actual.truths.box[truth][c].item<double>());
    left[{positives.image[i].item<int64_t>(), positives.anchor[i].item<int64_t>()}] = row;
  }
  for (const auto& entry : expected.at("assigned"))
    right[{entry[0].get<int64_t>(), entry[1].get<int64_t>()}] =
        Row{entry[2].get<int64_t>(), fixture::number(entry[3]), entry[4].get<std::vector<double>>()};
  CHECK(positives.score.sum().item<double>() ==
        Approx(fixture::number(expected.at("target_scores_sum"))).epsilon(2e-3).margin(1e-6));
  if (expected.at("tie_changes_fg_mask").get<int64_t>() == 0) {
    CHECK(left.size() == expected.at("positives").get<size_t>());
  } else {
    std::erase_if(left, [](const auto& item) { return item.second.score <= 0; });
    std::erase_if(right, [](const auto& item) { return item.second.score <= 0; });
  }
  REQUIRE(left.size() == right.size());
  for (const auto& [place, row] : right) {
    CAPTURE(place.first, place.second);
    REQUIRE(left.count(place));
    const auto& mine = left.at(place);
    CHECK(mine.label == row.label);
    CHECK(std::abs(mine.score - row.score) <= score_tolerance);
    for (size_t c = 0; c < 4; ++c) CHECK(mine.box[c] == Approx(row.box[c]).margin(1e-4));
  }
}

}  // namespace golden
