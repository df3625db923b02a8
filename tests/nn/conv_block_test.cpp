// The fused convolution block against the modules it stands for.
#include <catch2/catch.hpp>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>

#include <yolo9/nn/conv.h>
#include <yolo9/nn/conv_block.h>
#include <yolo9/nn/norm.h>
#include <yolo9/nn/recipe.h>

#include "support/fixture.h"

namespace {

using torch::Tensor;
using yolo9::Activation;
using yolo9::Conv;
using yolo9::ConvOptions;

constexpr auto kLast = torch::MemoryFormat::ChannelsLast;
constexpr auto kFirst = torch::MemoryFormat::Contiguous;

struct Case {
  int64_t batch, in, out, height, width, kernel, stride, groups, dilation;
};

const std::vector<Case> kCases = {
    {2, 3, 1, 7, 5, 3, 1, 1, 1},   {3, 4, 3, 6, 6, 3, 2, 1, 1},  {2, 6, 5, 9, 4, 1, 1, 1, 1},
    {2, 8, 17, 5, 5, 3, 1, 1, 2},  {1, 16, 80, 8, 8, 3, 1, 4, 1}, {4, 8, 24, 1, 1, 1, 1, 1, 1},
    {1, 3, 16, 33, 31, 3, 2, 1, 1}, {2, 17, 64, 40, 40, 1, 1, 1, 1}, {1, 1, 1, 2, 1, 1, 1, 1, 1}};

// Values of a formula around an offset, so that means are not near zero.
Tensor values(const std::string& name, std::vector<int64_t> shape, double scale = 1, double offset = 0) {
  return fixture::uniform(name, shape).mul(2).sub(1).mul(scale).add(offset);
}

void fill(torch::nn::Module& module) {
  c10::NoGradGuard guard;
  for (auto& item : module.named_parameters()) {
    const bool gamma = item.key().find("bn.weight") != std::string::npos;
    item.value().copy_(values(item.key(), item.value().sizes().vec(), 0.5, gamma ? 1.0 : 0.1));
  }
  for (auto& item : module.named_buffers())
    if (item.value().is_floating_point())
      item.value().copy_(values(item.key(), item.value().sizes().vec(), 0.3, 0.7));
}

Conv make_conv(const Case& c, Activation::Kind kind = Activation::Kind::SiLU) {
  Conv conv(c.in, c.out, ConvOptions{.kernel = c.kernel, .stride = c.stride, .groups = c.groups,
                                     .dilation = c.dilation, .activation = {kind}});
  fill(*conv);
  conv->train();
  return conv;
}

Tensor input_of(const Case& c, torch::MemoryFormat format) {
  return values("x", {c.batch, c.in, c.height, c.width}, 2, 0.5).contiguous(format);
}

using Results = std::vector<std::pair<std::string, Tensor>>;

// Output, gradients and buffers after one forward and backward pass.
template <class Forward>
Results results(torch::nn::Module& module, const Tensor& picture, bool picture_gradient, Forward forward) {
  module.zero_grad();
  auto x = picture.detach().clone();
  x.set_requires_grad(picture_gradient);
  const auto z = forward(x);
  const auto grad = values("grad", z.sizes().vec(), 1, 0.2).to(z.scalar_type());
  if (z.requires_grad()) z.backward(grad.contiguous(z.suggest_memory_format()));
  Results out{{"z", z.detach()}};
  if (picture_gradient) out.emplace_back("x", x.grad());
  for (auto& item : module.named_parameters())
    if (item.value().grad().defined()) out.emplace_back(item.key(), item.value().grad().clone());
  for (auto& item : module.named_buffers()) out.emplace_back(item.key(), item.value().clone());
  return out;
}

Tensor stock(yolo9::ConvImpl& conv, const Tensor& x) {
  return at::silu(conv.bn->forward(conv.conv->forward(x)));
}

// Within `rel` of the largest magnitude.
void check_close(const Results& actual, const Results& expected, double rel) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(actual[i].first);
    REQUIRE(actual[i].first == expected[i].first);
    const auto a = actual[i].second.to(at::kDouble), e = expected[i].second.to(at::kDouble);
    CHECK(a.sizes() == e.sizes());
    const double scale = std::max(1e-3, e.abs().max().item<double>());
    CHECK((a - e).abs().max().item<double>() <= rel * scale);
  }
}

void check_equal(const Results& actual, const Results& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(actual[i].first);
    CHECK(at::equal(actual[i].second, expected[i].second));
  }
}

Results double_reference(const Case& c, torch::MemoryFormat format) {
  auto conv = make_conv(c);
  conv->to(at::kDouble);
  return results(*conv, input_of(c, format).to(at::kDouble), true, [&](const Tensor& x) { return stock(*conv, x); });
}

}  // namespace

TEST_CASE("the fused block equals the stock modules in double precision", "[nn]") {
  for (const auto& c : kCases)
    for (const auto format : {kFirst, kLast}) {
      CAPTURE(c.batch, c.in, c.out, c.height, c.width, c.kernel, c.stride, c.groups, c.dilation, format == kLast);
      if (c.batch * c.height * c.width == 1) continue;
      const auto expected = double_reference(c, format);
      const auto run = [&](at::ScalarType type) {
        auto conv = make_conv(c);
        conv->to(type);
        return results(*conv, input_of(c, format).to(type), true, [&](const Tensor& x) { return conv->forward(x); });
      };
      check_close(run(at::kDouble), expected, 1e-11);
      // Two values per channel differ by little against eps at times; what is left is float32 rounding.
      check_close(run(at::kFloat), expected, 2e-5);
      const yolo9::CompositeNormScope composite;
      check_close(run(at::kFloat), expected, 2e-5);
    }
}

TEST_CASE("the fused block without activation, and in evaluation", "[nn]") {
  for (const auto& c : kCases) {
    auto conv = make_conv(c, Activation::Kind::Identity), twin = make_conv(c, Activation::Kind::Identity);
    const auto module_by_module = [&](const Tensor& x) { return twin->bn->forward(twin->conv->forward(x)); };
    const auto fused = [&](const Tensor& x) { return conv->forward(x); };
    const auto x = input_of(c, kLast).to(at::kDouble);
    conv->to(at::kDouble);
    twin->to(at::kDouble);
    check_close(results(*conv, x, true, fused), results(*twin, x, true, module_by_module), 1e-11);
    conv = make_conv(c, Activation::Kind::Identity);
    twin = make_conv(c, Activation::Kind::Identity);
    conv->to(at::kDouble);
    twin->to(at::kDouble);
    conv->eval();
    twin->eval();
    check_equal(results(*conv, x, true, fused), results(*twin, x, true, module_by_module));
  }
}

TEST_CASE("the two-branch block equals its modules", "[nn]") {
  for (const auto format : {kFirst, kLast})
    for (const int64_t width : {1, 5, 16, 40}) {
      CAPTURE(format == kLast, width);
      const auto x = values("x", {2, 6, 9, 7}, 2, 0.5).contiguous(format);
      const auto run = [&](at::ScalarType type, bool fused) {
        yolo9::RepConvN pair(6, width);
        fill(*pair);
        pair->to(type);
        return results(*pair, x.to(type), true, [&](const Tensor& in) {
          if (fused) return pair->forward(in);
          auto &one = *pair->conv1, &two = *pair->conv2;
          return at::silu(one.bn->forward(one.conv->forward(in)) + two.bn->forward(two.conv->forward(in)));
        });
      };
      const auto expected = run(at::kDouble, false);
      check_close(run(at::kDouble, true), expected, 1e-11);
      check_close(run(at::kFloat, true), expected, 2e-5);
    }
}

TEST_CASE("frozen parameters get no gradient and leave the others' as they are", "[nn]") {
  const auto c = kCases[3];
  auto whole = make_conv(c);
  const auto all = results(*whole, input_of(c, kLast), true, [&](const Tensor& x) { return whole->forward(x); });
  for (const std::string frozen : {"conv.weight", "bn.weight", "bn.bias", "x"}) {
    CAPTURE(frozen);
    auto conv = make_conv(c);
    if (frozen != "x") conv->named_parameters()[frozen].set_requires_grad(false);
    auto expected = all;
    std::erase_if(expected, [&](const auto& item) { return item.first == frozen; });
    check_equal(results(*conv, input_of(c, kLast), frozen != "x", [&](const Tensor& x) { return conv->forward(x); }),
                expected);
  }
}

TEST_CASE("without gradients the block gives the same values and statistics", "[nn]") {
  const auto c = kCases[3];
  auto conv = make_conv(c), twin = make_conv(c);
  const auto z = conv->forward(input_of(c, kLast));
  c10::NoGradGuard guard;
  const auto again = twin->forward(input_of(c, kLast));
  CHECK_FALSE(again.requires_grad());
  CHECK(at::equal(z.detach(), again));
  CHECK(at::equal(conv->bn->running_var, twin->bn->running_var));
  CHECK(twin->bn->num_batches_tracked.item<int64_t>() == conv->bn->num_batches_tracked.item<int64_t>());
}

TEST_CASE("the block refuses what its gradients cannot do", "[nn]") {
  const auto c = kCases[3];
  auto conv = make_conv(c);
  SECTION("a second backward pass") {
    const auto z = conv->forward(input_of(c, kLast)).sum();
    z.backward();
    CHECK_THROWS_WITH(z.backward(), Catch::Contains("second"));
  }
  SECTION("a parameter changed between the passes") {
    const auto z = conv->forward(input_of(c, kLast)).sum();
    {
      c10::NoGradGuard guard;
      conv->bn->weight.add_(1);
    }
    CHECK_THROWS_WITH(z.backward(), Catch::Contains("modified by an inplace operation"));
  }
  SECTION("one value per channel") {
    auto one = make_conv({1, 2, 3, 1, 1, 1, 1, 1, 1});
    CHECK_THROWS_WITH(one->forward(at::ones({1, 2, 1, 1})), Catch::Contains("more than one value per channel"));
    CHECK(one->bn->num_batches_tracked.item<int64_t>() == make_conv(c)->bn->num_batches_tracked.item<int64_t>());
  }
}

TEST_CASE("the number of threads does not change a bit", "[nn]") {
  const int threads = at::get_num_threads();
  for (const auto format : {kFirst, kLast}) {
    const auto run = [&](int count) {
      at::set_num_threads(count);
      // Sums over many pieces of work; the convolution itself is LibTorch's affair.
      yolo9::NormBranch b{values("y", {4, 24, 67, 61}, 3, 1).contiguous(format), values("m", {24}), values("d", {24}),
                          values("g", {24}), values("b", {24})};
      const auto moments = yolo9::channel_moments(b.y);
      const auto z = yolo9::normalize({b}, true);
      auto g = yolo9::normalize_backward({b}, true, z, true);
      return Results{{"mean", moments.mean}, {"variance", moments.variance}, {"z", z},
                     {"y", g.y[0]},          {"gamma", g.gamma[0]},          {"beta", g.beta[0]}};
    };
    const auto one = run(1);
    check_equal(run(2), one);
    check_equal(run(3), one);
  }
  at::set_num_threads(threads);
}

TEST_CASE("statistics keep their precision far from zero", "[nn]") {
  for (const auto format : {kFirst, kLast}) {
    const auto y = values("y", {2, 5, 50, 40}, 0.01, 100).contiguous(format);
    const auto moments = yolo9::channel_moments(y);
    const auto [variance, mean] = at::var_mean(y.to(at::kDouble), at::IntArrayRef{0, 2, 3}, 0);
    CHECK(fixture::excess(moments.mean, mean, 0, 1e-13) <= 0);
    CHECK(fixture::excess(moments.variance, variance, 0, 1e-9) <= 0);
  }
}

TEST_CASE("the kernels' SiLU is accurate at every magnitude", "[nn]") {
  const auto one = at::ones({16}), zero = at::zeros({16});
  auto y = at::cat({at::linspace(-87, 87, 16 * 40001), at::linspace(-1e-3, 1e-3, 1600), at::linspace(-200, 200, 1600)});
  const yolo9::NormBranch b{y.view({1, 16, -1, 1}).contiguous(), zero, one, one, zero};
  const auto z = yolo9::normalize({b}, true), exact = at::silu(b.y.to(at::kDouble));
  // Below float's range the last bits, and at last all of them, are gone in the exact result's rounding too.
  CHECK(fixture::excess(z, exact, 1e-35, 1e-6) <= 0);
  const double nan = std::nan("");
  auto odd = at::full({1, 16, 1, 1}, nan);
  odd.view(-1)[1] = std::numeric_limits<float>::infinity();
  const yolo9::NormBranch o{odd, zero, one, one, zero};
  const auto silu = yolo9::normalize({o}, true).view(-1);
  CHECK(silu[0].isnan().item<bool>());
  CHECK(silu[1].item<float>() == std::numeric_limits<float>::infinity());
}

TEST_CASE("under autocast the block computes in bfloat16 and its parameters' gradients are float", "[nn]") {
  struct Autocast {
    Autocast() { at::autocast::set_autocast_enabled(at::kCPU, true); }
    ~Autocast() {
      at::autocast::set_autocast_enabled(at::kCPU, false);
      at::autocast::clear_cache();
    }
  };
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  for (const auto& c : kCases)
    for (const auto format : {kFirst, kLast}) {
      if (c.batch * c.height * c.width < 32) continue;  // rounding of few values is no small thing
      CAPTURE(c.in, c.out, format == kLast);
      const auto expected = double_reference(c, format);
      const auto run = [&] {
        const Autocast autocast;
        auto conv = make_conv(c);
        return results(*conv, input_of(c, format), true, [&](const Tensor& x) { return conv->forward(x); });
      };
      const auto fused = run();
      CHECK(fused[0].second.scalar_type() == at::kBFloat16);
      for (size_t i = 1; i + 1 < fused.size(); ++i) CHECK(fused[i].second.scalar_type() == at::kFloat);
      check_close(fused, expected, 4e-2);
      const yolo9::CompositeNormScope composite;
      check_close(run(), expected, 4e-2);
    }
}
