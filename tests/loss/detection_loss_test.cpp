#include <catch2/catch.hpp>

#include <torch/autograd.h>

#include <yolo9/core/safetensors.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/loss/regression_loss.h>

#include "loss/assigned.h"
#include "support/fixture.h"

namespace {

// The raw map of the fixtures, from the formula.
torch::Tensor raw_map(const std::string& branch, size_t level, const std::vector<int64_t>& shape) {
  std::string name = "feat:" + branch + ":" + std::to_string(level) + ":";
  for (size_t i = 0; i < shape.size(); ++i) name += (i ? "x" : "") + std::to_string(shape[i]);
  auto map = (fixture::uniform(name, shape) - 0.5) * 4;
  map.narrow(1, 64, shape[1] - 64).sub_(2);
  const auto bias = torch::arange(64, torch::kFloat).remainder(16) * 0.25;
  map.narrow(1, 0, 64).sub_(bias.view({1, 64, 1, 1}));
  return map;
}

yolo9::HeadOutput raw_maps(int64_t batch, int64_t height, int64_t width, int64_t classes, bool dual,
                           at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  yolo9::HeadOutput maps;
  for (size_t level = 0; level < 3; ++level) {
    const int64_t stride = int64_t{8} << level;
    const std::vector<int64_t> shape{batch, 64 + classes, height / stride, width / stride};
    maps.main.push_back(raw_map("main", level, shape).contiguous(format).requires_grad_());
    if (dual) maps.aux.push_back(raw_map("aux", level, shape).contiguous(format).requires_grad_());
  }
  return maps;
}

std::vector<torch::Tensor> leaves(const yolo9::HeadOutput& maps) {
  auto all = maps.aux;
  all.insert(all.end(), maps.main.begin(), maps.main.end());
  return all;
}

yolo9::LossOptions options_for(int64_t classes) {
  yolo9::LossOptions options;
  options.classes = classes;
  options.strides = {8, 16, 32};
  return options;
}

torch::Tensor some_targets(int64_t batch, int64_t per_image, int64_t classes) {
  std::vector<torch::Tensor> rows;
  for (int64_t b = 0; b < batch; ++b) {
    const auto name = "loss:targets:" + std::to_string(b);
    const int64_t count = b == 1 ? 0 : per_image + b;
    rows.push_back(torch::cat({torch::full({count, 1}, static_cast<double>(b), torch::kFloat),
                               (fixture::uniform(name + ":c", {count, 1}) * classes).floor(),
                               fixture::uniform(name + ":xy", {count, 2}) * 0.6 + 0.2,
                               fixture::uniform(name + ":wh", {count, 2}) * 0.35 + 0.05},
                              1));
  }
  return torch::cat(rows);
}

}  // namespace

TEST_CASE("losses and gradients on given maps agree with the fixtures", "[golden]") {
  const auto files = fixture::golden_files("loss", "raw.json");
  if (files.empty()) WARN("no raw loss fixture");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    const auto data = yolo9::read_safetensors_map(file.substr(0, file.size() - 4) + "safetensors");
    for (const auto& [name, entry] : info.at("cases").items()) {
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const bool channels_last = format == at::MemoryFormat::ChannelsLast;
        CAPTURE(file, name, channels_last);
        const int64_t classes = entry.at("nc");
        const auto maps = raw_maps(entry.at("batch"), entry.at("h"), entry.at("w"), classes, entry.at("dual"), format);
        const auto targets = golden::target_rows(entry.at("targets"));
        const yolo9::DetectionLoss loss(options_for(classes));
        const auto result = loss(maps, targets);
        CHECK(result.total.item<double>() == Approx(fixture::number(entry.at("total"))).epsilon(1e-5));
        for (int64_t i = 0; i < 3; ++i)
          CHECK(result.items[i].item<double>() ==
                Approx(fixture::number(entry.at("items")[static_cast<size_t>(i)])).epsilon(1e-5).margin(1e-7));
        result.total.backward();
        for (const auto& [place, statistics] : entry.at("grads").items()) {
          CAPTURE(place);
          const auto dot = place.find('.');
          const auto level = static_cast<size_t>(std::stoul(place.substr(dot + 1)));
          const auto grad = (place.substr(0, dot) == "aux" ? maps.aux : maps.main).at(level).grad();
          const auto wide = grad.to(torch::kFloat64);
          CHECK(wide.norm().item<double>() == Approx(fixture::number(statistics.at("norm"))).epsilon(1e-4));
          const auto near = [&](const char* key) {
            return Approx(fixture::number(statistics.at(key))).epsilon(1e-4).margin(1e-5);
          };
          CHECK(wide.mean().item<double>() == near("mean"));
          CHECK(wide.std(false).item<double>() == near("std"));
          CHECK(wide.abs().max().item<double>() == near("absmax"));
          const auto key = name + ".grad." + place;
          CHECK(fixture::excess(grad.contiguous().flatten().index_select(0, data.at(key + ".idx")),
                                data.at(key + ".val"), 1e-5, 1e-4) <= 0);
        }
        for (const auto& [branch, expected] : entry.at("assign").items()) {
          CAPTURE(branch);
          golden::check_assignment(loss.assign(branch == "aux" ? maps.aux : maps.main, targets), expected, 1e-5);
        }
      }
    }
  }
}

TEST_CASE("distribution focal loss and the box term agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("tal", "dfl.safetensors");
  if (files.empty()) WARN("no distribution focal loss fixture");
  for (const auto& file : files) {
    CAPTURE(file);
    const auto data = yolo9::read_safetensors_map(file);
    auto logits = data.at("df.logits").clone().requires_grad_();
    const auto loss = yolo9::distribution_focal_loss(at::log_softmax(logits, 2), data.at("df.target"));
    CHECK(fixture::excess(loss.detach(), data.at("df.loss"), 1e-5, 1e-5) <= 0);
    CHECK(fixture::excess(torch::autograd::grad({loss.sum()}, {logits})[0], data.at("df.grad"), 1e-5, 1e-4) <= 0);

    auto distances = data.at("box.pred_dist").clone().requires_grad_();
    const auto where = data.at("box.fg_mask").nonzero();
    const auto image = where.select(1, 0), anchor = where.select(1, 1);
    const auto rows = distances.index({image, anchor}).unflatten(1, {4, 16});
    const auto weight = data.at("box.target_scores").index({image, anchor}).sum(1);
    const auto [box, dfl] = yolo9::regression_loss(rows, data.at("box.target_bboxes").index({image, anchor}),
                                                   data.at("box.anchor_points").index_select(0, anchor), weight);
    const auto divisor = data.at("box.target_scores_sum").squeeze();
    CHECK(fixture::excess((dfl / divisor).detach().view({1}), data.at("box.loss_dfl"), 1e-5, 1e-5) <= 0);
    CHECK(fixture::excess((box / divisor).detach().view({1}), data.at("box.loss_iou"), 1e-5, 1e-5) <= 0);
    const auto gradient = torch::autograd::grad({(box + dfl) / divisor}, {distances})[0];
    CHECK(fixture::excess(gradient, data.at("box.grad_pred_dist"), 1e-5, 1e-4) <= 0);
  }
}

TEST_CASE("the fused class term agrees with autograd") {
  const auto image = torch::tensor({0, 0, 2}, torch::kLong), cell = torch::tensor({3, 19, 7}, torch::kLong);
  const auto label = torch::tensor({1, 1, 4}, torch::kLong);
  const auto target = torch::tensor({0.3f, 0.9f, 0.55f});
  const auto weight = fixture::uniform("class:weight", {3, 8});
  for (const yolo9::ClassLossOptions& options :
       {yolo9::ClassLossOptions{}, {2, 0, 0}, {1, 1.5, 0}, {1, 0, 0.1}, {1.5, 2, 0.2}}) {
    CAPTURE(options.positive_weight, options.focal_gamma, options.smoothing);
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      auto map = ((fixture::uniform("class:map", {3, 13, 4, 5}) - 0.5) * 12).contiguous(format).requires_grad_();
      const auto terms = yolo9::read_level(map, image, cell, label, 8, options);
      const auto fused = terms.background * 0.7 + (terms.box_logits * weight).sum() +
                         yolo9::positive_correction(terms.class_logits, target, options).sum() * 0.7;
      const auto fused_grad = torch::autograd::grad({fused}, {map})[0];

      auto dense = torch::zeros({3, 5, 20});
      dense.index_put_({image, label, cell}, target);
      const auto rows = map.flatten(2).transpose(1, 2).index({image, cell}).narrow(1, 0, 8);
      const auto plain =
          yolo9::class_loss(map.narrow(1, 8, 5).flatten(2), dense, options).sum() * 0.7 + (rows * weight).sum();
      const auto plain_grad = torch::autograd::grad({plain}, {map})[0];
      CHECK(fused.item<double>() == Approx(plain.item<double>()).epsilon(1e-5));
      CHECK(fixture::excess(fused_grad, plain_grad, 1e-6, 1e-5) <= 0);
    }
  }
}

TEST_CASE("half precision maps give half precision gradients near the single precision ones") {
  const auto targets = some_targets(3, 4, 5);
  const yolo9::DetectionLoss loss(options_for(5));
  auto maps = raw_maps(3, 64, 64, 5, true);
  yolo9::HeadOutput half;
  for (const auto& map : maps.main) half.main.push_back(map.detach().to(torch::kBFloat16).requires_grad_());
  for (const auto& map : maps.aux) half.aux.push_back(map.detach().to(torch::kBFloat16).requires_grad_());
  for (auto* branch : {&maps.aux, &maps.main})
    for (size_t i = 0; i < 3; ++i)
      (*branch)[i] = (branch == &maps.aux ? half.aux : half.main)[i].detach().to(torch::kFloat).requires_grad_();
  const auto wide = loss(maps, targets), narrow = loss(half, targets);
  CHECK(narrow.total.scalar_type() == torch::kFloat);
  CHECK(narrow.total.item<double>() == Approx(wide.total.item<double>()).epsilon(1e-4));
  wide.total.backward();
  narrow.total.backward();
  for (size_t i = 0; i < 3; ++i) {
    CHECK(half.main[i].grad().scalar_type() == torch::kBFloat16);
    CHECK(fixture::excess(half.main[i].grad().to(torch::kFloat), maps.main[i].grad(), 1e-4, 1e-2) <= 0);
  }
}

TEST_CASE("the slices of a draw add up to the draw") {
  const int64_t batch = 4, classes = 7;
  const auto targets = some_targets(batch, 5, classes);
  const yolo9::DetectionLoss loss(options_for(classes));
  for (const bool dual : {false, true}) {
    for (const auto& cuts : std::vector<std::vector<int64_t>>{{1, 1, 1, 1}, {3, 1}, {1, 3}}) {
      CAPTURE(dual, cuts);
      const auto whole = raw_maps(batch, 96, 64, classes, dual), sliced = raw_maps(batch, 96, 64, classes, dual);
      const auto expected = loss(whole, targets);
      expected.total.backward();

      const auto slice_of = [&](int64_t begin, int64_t count) {
        yolo9::HeadOutput maps;
        for (const auto& map : sliced.main) maps.main.push_back(map.narrow(0, begin, count));
        for (const auto& map : sliced.aux) maps.aux.push_back(map.narrow(0, begin, count));
        auto rows = targets.index({(targets.select(1, 0) >= begin).logical_and(targets.select(1, 0) < begin + count)});
        rows = rows.clone();
        rows.select(1, 0).sub_(begin);
        return std::pair{maps, rows};
      };
      auto sums = torch::zeros({dual ? 2 : 1});
      int64_t begin = 0;
      for (const int64_t count : cuts) {
        const auto [maps, rows] = slice_of(begin, count);
        sums += loss.score_sums(maps, rows);
        begin += count;
      }
      CHECK(fixture::excess(sums, expected.score_sums, 1e-5, 1e-5) <= 0);
      auto items = torch::zeros({3});
      double total = 0;
      begin = 0;
      for (const int64_t count : cuts) {
        const auto [maps, rows] = slice_of(begin, count);
        const auto part = loss(maps, rows, {sums, batch});
        part.total.backward();
        items += part.items;
        total += part.total.item<double>();
        begin += count;
      }
      CHECK(total == Approx(expected.total.item<double>()).epsilon(1e-5));
      CHECK(fixture::excess(items, expected.items, 1e-5, 1e-5) <= 0);
      const auto left = leaves(sliced), right = leaves(whole);
      for (size_t i = 0; i < left.size(); ++i) CHECK(fixture::excess(left[i].grad(), right[i].grad(), 1e-5, 1e-4) <= 0);
    }
  }
}

TEST_CASE("gains and label smoothing act") {
  const auto targets = some_targets(2, 4, 5);
  const auto maps = raw_maps(2, 64, 64, 5, false);
  auto options = options_for(5);
  const auto plain = yolo9::DetectionLoss(options)(maps, targets).items;
  options.box_gain *= 2;
  options.cls_gain *= 3;
  options.dfl_gain *= 4;
  CHECK(yolo9::DetectionLoss(options)(maps, targets).items.allclose(plain * torch::tensor({2.f, 3.f, 4.f})));
  auto smoothed = options_for(5);
  smoothed.label_smoothing = 0.1;
  const auto items = yolo9::DetectionLoss(smoothed)(maps, targets).items;
  CHECK(items[0].item<float>() == plain[0].item<float>());
  CHECK(std::abs(items[1].item<float>() - plain[1].item<float>()) > 1e-3f);
}

TEST_CASE("padding rows and rows out of order change nothing") {
  const auto targets = some_targets(3, 3, 5);
  const auto maps = raw_maps(3, 64, 64, 5, true);
  const yolo9::DetectionLoss loss(options_for(5));
  const auto expected = loss(maps, targets);
  const auto reversed = torch::cat({targets, torch::zeros({4, 6})}).flip(0);
  CHECK(fixture::excess(loss(maps, reversed).items, expected.items, 1e-6, 1e-5) <= 0);
}

TEST_CASE("3000 boxes in one image at 640 px pass through the whole loss") {
  const int64_t count = 3000;
  const auto targets = torch::cat({torch::zeros({count, 1}), (fixture::uniform("many:c", {count, 1}) * 80).floor(),
                                   fixture::uniform("many:xy", {count, 2}),
                                   fixture::uniform("many:wh", {count, 2}) * 0.2 + 0.005},
                                  1);
  const auto maps = raw_maps(1, 640, 640, 80, true);
  const auto result = yolo9::DetectionLoss(options_for(80))(maps, targets);
  result.total.backward();
  CHECK(std::isfinite(result.total.item<double>()));
  CHECK(result.score_sums.min().item<double>() > 10);
  CHECK(maps.main[0].grad().isfinite().all().item<bool>());
}
