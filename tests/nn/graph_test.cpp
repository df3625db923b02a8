// Configurations: what is refused, with which words and at which line, and what the keys do.
#include <catch2/catch.hpp>

#include <fstream>

#include <yolo9/core/error.h>
#include <yolo9/nn/flops.h>
#include <yolo9/nn/weights.h>

#include "nn/formula_state.h"

namespace {

// A small valid model; rows stand on lines 5 to 11. Tests replace single rows or keys.
struct Config {
  std::string nc = "nc: 3", depth = "depth_multiple: 1.0", width = "width_multiple: 1.0", extra;
  std::vector<std::string> rows = {"[-1, 1, Conv, [16, 3, 2]]",
                                   "[-1, 1, Conv, [32, 3, 2]]",
                                   "[-1, 1, RepNCSPELAN4, [32, 32, 16, 1]]",
                                   "[-1, 1, AConv, [48]]",
                                   "[-1, 1, ADown, [64]]",
                                   "[[-1], 1, Concat, [1]]"};
  std::string head = "[[3, 4], 1, DDetect, [nc]]";

  std::string text() const {
    std::string out = nc + "\n" + depth + "\n" + width + "\nbackbone:\n";
    for (const auto& row : rows) out += "  - " + row + "\n";
    out += "head:\n";
    if (!head.empty()) out += "  - " + head + "\n";
    return out + extra;
  }
  Config with(size_t row, const std::string& value) const {
    Config copy = *this;
    copy.rows.at(row) = value;
    return copy;
  }
};

void check_refused(const std::string& text, const std::string& place, const std::string& words) {
  CAPTURE(text, words);
  try {
    yolo9::make_model(text, "m.yaml");
    FAIL("accepted");
  } catch (const yolo9::Error& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(error.kind() == yolo9::ErrorKind::Usage);
    CHECK(what.find(words) != std::string::npos);
    CHECK(what.rfind(place + ": ", 0) == 0);
    CHECK(what.find('\n') == std::string::npos);
  }
}

// Row r of the backbone stands on line r + 5.
void check_row(size_t row, const std::string& value, const std::string& words) {
  check_refused(Config().with(row, value).text(), "m.yaml:" + std::to_string(row + 5), words);
}

}  // namespace

TEST_CASE("a small configuration becomes a model", "[nn]") {
  auto model = yolo9::make_model(Config().text(), "m.yaml");
  CHECK(model->classes() == 3);
  CHECK(model->strides() == std::vector<double>{8, 16});
  CHECK(model->layers().at(4).resolved_args == "[48, 64]");
  CHECK(model->layers().at(5).stride == 16);
  CHECK(model->config_text() == Config().text());
  model->eval();
  CHECK(model->forward(torch::zeros({2, 3, 32, 48})).decoded_main.sizes() == torch::IntArrayRef({2, 7, 4 * 6 + 2 * 3}));
  CHECK_THROWS_WITH(model->forward(torch::zeros({2, 3, 40, 48})), Catch::Contains("[forward] height and width"));
  CHECK_THROWS_WITH(model->forward(torch::zeros({2, 1, 32, 32})), Catch::Contains("[forward] expected pictures"));
  CHECK_THROWS_WITH(model->forward(torch::zeros({1, 3, 32, 32}, torch::kByte)), Catch::Contains("floating-point"));
}

TEST_CASE("rows that cannot be a layer are refused with their line", "[nn]") {
  check_row(2, "[-1, 1, RepNCSPELAM4, [32, 32, 16, 1]]", "did you mean \"RepNCSPELAN4\"?");
  check_row(2, "[-1, 1, Zzzzzzzzzzzzzzzz, [32]]", "known are Conv");
  check_row(2, "[-1, 1, Conv]", "[from, repeats, module, args]");
  check_row(2, "Conv", "[from, repeats, module, args]");
  check_row(2, "[-1, 1, Conv, 32]", "must be a list");
  check_row(2, "[7, 1, Conv, [32, 3, 2]]", "comes later");
  check_row(2, "[2, 1, Conv, [32, 3, 2]]", "reads its own output");
  check_row(2, "[-2, 1, Conv, [32, 3, 2]]", "expected -1 (the previous layer) or a layer number from 0 to 1");
  check_row(0, "[0, 1, Conv, [16, 3, 2]]", "expected -1, the picture");
  check_row(2, "[x, 1, Conv, [32, 3, 2]]", "\"x\" is no layer");
  check_row(2, "[[], 1, Conv, [32, 3, 2]]", "has no source");
  check_row(2, "[[0, 1], 1, Conv, [32, 3, 2]]", "takes one source, found 2");
  check_row(2, "[-1, 0, Conv, [32, 3, 2]]", "repeats must be a whole number from 1 to 100");
  check_row(2, "[-1, 1000000, Conv, [32, 3, 1]]", "repeats must be a whole number from 1 to 100");
  check_row(2, "[-1, two, Conv, [32, 3, 2]]", "repeats must be a whole number");
}

TEST_CASE("arguments are checked by number, type and range", "[nn]") {
  check_row(2, "[-1, 1, Conv, []]", "Conv takes 1 to 7 arguments");
  check_row(2, "[-1, 1, ADown, [32, 3]]", "ADown takes 1 argument (channels), found 2");
  check_row(2, "[-1, 1, RepNCSPELAN4, [32, 32]]", "RepNCSPELAN4 takes 3 to 4 arguments");
  check_row(2, "[-1, 1, Conv, [wide, 3, 2]]", "argument 1 of Conv (channels) must be a whole number");
  check_row(2, "[-1, 1, Conv, [32.5, 3, 2]]", "argument 1 of Conv (channels)");
  check_row(2, "[-1, 1, Conv, [1000000, 3, 2]]", "from 1 to 8192");
  check_row(2, "[-1, 1, Conv, [-32, 3, 2]]", "from 1 to 8192");
  check_row(2, "[-1, 1, Conv, [32, 3, 0]]", "argument 3 of Conv (stride)");
  check_row(2, "[-1, 1, Conv, [32, 3, 1, None, 5]]", "not both divisible by its 5 groups");
  check_row(2, "[-1, 1, Conv, [32, 3, 1, None, 1, 1, 7]]", "must be True or False");
  check_row(2, "[-1, 1, RepNCSPELAN4, [32, 33, 16, 1]]", "33 is odd");
  check_row(2, "[-1, 1, RepNCSPELAN4, [32, 32, 15, 1]]", "15 is odd");
  check_row(2, "[-1, 1, RepNCSPELAN4, [32, 32, 16, 100000]]", "argument 4 of RepNCSPELAN4 (bottlenecks)");
  check_row(2, "[-1, 1, ELAN1, [32, 31, 16]]", "31 is odd");
  check_row(2, "[-1, 1, nn.Upsample, [64, 2, nearest]]", "(size) must be None");
  check_row(2, "[-1, 1, nn.Upsample, [None, 1.5, nearest]]", "a whole number");
  check_row(2, "[-1, 1, nn.Upsample, [None, 2, bilinear]]", "must be nearest");
  check_row(5, "[[-1], 1, Concat, [2]]", "(dimension)");
  check_row(5, "[[-1], 2, Concat, [1]]", "cannot be repeated");
  check_row(5, "[-1, 1, CBLinear, [64]]", "must be a list of whole numbers");
}

TEST_CASE("widths and sizes that do not meet are refused", "[nn]") {
  check_row(2, "[-1, 2, Conv, [64, 3, 1]]", "it takes 32 and gives 64");
  check_row(5, "[[-1, 3], 1, Concat, [1]]", "maps of different sizes: layer 4 gives 16 rows and layer 3 gives 32");
  check_row(5, "[[3, -1], 1, CBFuse, [[0]]]", "must be a CBLinear; layer 3 is a AConv");
  check_row(5, "[[3, -1], 1, CBFuse, [[0, 1]]]", "2 sources and 2 numbers");
  Config blocks;
  blocks.rows[4] = "[-1, 1, CBLinear, [[8, 48]]]";
  blocks.rows[5] = "[[4, 3], 1, CBFuse, [[1]]]";
  blocks.head = "[[3, 5], 1, DDetect, [nc]]";
  CHECK_NOTHROW(yolo9::make_model(blocks.text(), "m.yaml"));
  check_refused(blocks.with(5, "[[4, 3], 1, CBFuse, [[0]]]").text(), "m.yaml:10", "with 8 channels to a map of 48");
  check_refused(blocks.with(5, "[[4, 3], 1, CBFuse, [[2]]]").text(), "m.yaml:10", "has parts 0 to 1");
  check_refused(blocks.with(5, "[-1, 1, Conv, [8]]").text(), "m.yaml:10", "whose parts only CBFuse can take");
  Config odd;
  odd.rows[3] = "[-1, 1, Conv, [48, 2, 2]]";
  check_refused(odd.text(), "m.yaml:12", "which is no whole stride");
  Config dual;
  dual.head = "[[3, 4, 3], 1, DualDDetect, [nc]]";
  check_refused(dual.text(), "m.yaml:12", "even number of sources");
  dual.head = "[[3, 4, 4, 3], 1, DualDDetect, [nc]]";
  check_refused(dual.text(), "m.yaml:12", "does not have the stride");
  Config huge;
  huge.rows[2] = "[-1, 1, RepNCSPELAN4, [8192, 8192, 8192, 100]]";
  check_refused(huge.text(), "m.yaml:1", "million weights");
  Config tiny;
  for (auto& row : tiny.rows) row = "[-1, 1, Conv, [16, 3, 8]]";
  tiny.rows[4] = "[-1, 1, ADown, [16]]";
  check_refused(tiny.text(), "m.yaml:9", "leaves nothing");
}

TEST_CASE("missing, wrong and unknown keys are refused", "[nn]") {
  Config config;
  config.nc = "# no nc";
  check_refused(config.text(), "m.yaml:2", "the key \"nc\" is missing");
  config = {};
  config.nc = "nc: 0";
  check_refused(config.text(), "m.yaml:1", "nc must be from 1");
  config.nc = "nc: many";
  check_refused(config.text(), "m.yaml:1", "whole number");
  config = {};
  config.depth = "# no depth";
  check_refused(config.text(), "m.yaml:1", "the key \"depth_multiple\" is missing");
  config = {};
  config.width = "width_multiple: 1e9";
  check_refused(config.text(), "m.yaml:3", "width_multiple must lie above 0");
  config.width = "width_multiple: -1";
  check_refused(config.text(), "m.yaml:3", "width_multiple must lie above 0");
  config = {};
  config.extra = "ancors: 3\n";
  check_refused(config.text(), "m.yaml:13", "did you mean \"anchors\"?");
  config.extra = "activation: nn.SiLUU()\n";
  check_refused(config.text(), "m.yaml:13", "unknown activation");
  config.extra = "anchors: many\n";
  check_refused(config.text(), "m.yaml:13", "anchors must be");
  config.extra = "ch: 1\n";
  check_refused(config.text(), "m.yaml:13", "3 channels");
  config = {};
  config.head = "[-1, 1, Conv, [8]]";
  check_refused(config.text(), "m.yaml:12", "the last layer must be a detection head");
  config.head = "[[3, 4], 1, DDetect, [nc]]\n  - [-1, 1, Conv, [8]]";
  check_refused(config.text(), "m.yaml:13", "must be the last");
  config.head = "[[3, 4], 1, DDetect, [80]]";
  check_refused(config.text(), "m.yaml:12", "has 80 classes, but nc is 3");
  config.head = "[[3, 4], 1, DDetect, [classes]]";
  check_refused(config.text(), "m.yaml:12", "must be nc");
  check_refused("nc: 3\ndepth_multiple: 1\nwidth_multiple: 1\nbackbone: []\n", "m.yaml:1",
                "the key \"head\" is missing");
  check_refused("[1, 2]\n", "m.yaml:1", "is a map with the keys");
  check_refused("nc: [\n", "m.yaml:2", "not valid yaml");
  std::string many = "nc: 3\ndepth_multiple: 1\nwidth_multiple: 1\nbackbone:\n";
  for (int i = 0; i < 1001; ++i) many += "  - [-1, 1, Silence, []]\n";
  check_refused(many + "head: []\n", "m.yaml:1005", "more than 1000 layers");
}

TEST_CASE("multiples scale widths and repeats", "[nn]") {
  Config config;
  config.depth = "depth_multiple: 0.5";
  config.width = "width_multiple: 0.3";
  config.rows[1] = "[-1, 1, Conv, [32, 3, 2]]";
  config.rows[3] = "[-1, 3, Conv, [32, 3, 1]]";
  config.rows[5] = "[-1, 5, Conv, [64]]";
  config.head = "[[3, 5], 1, DDetect, [nc]]";
  const auto graph = yolo9::parse_graph(config.text(), "m.yaml");
  CHECK(graph.layers[0].widths == std::vector<int64_t>{8});    // ceil(16 * 0.3 / 8) * 8
  CHECK(graph.layers[1].widths == std::vector<int64_t>{16});   // ceil(32 * 0.3 / 8) * 8
  CHECK(graph.layers[4].widths == std::vector<int64_t>{24});   // ceil(64 * 0.3 / 8) * 8
  CHECK(graph.layers[3].repeats == 2);                         // 1.5 rounds to even
  CHECK(graph.layers[5].repeats == 2);                         // 2.5 rounds to even
  yolo9::DetectionModel model(graph);
  CHECK(yolo9::state_dict(*model).size() > 0);
  const auto parameters = model->named_parameters();
  CHECK(parameters.find("model.3.1.conv.weight") != nullptr);
  CHECK(parameters.find("model.3.2.conv.weight") == nullptr);
  // A width equal to anchors * (nc + 5) is left alone.
  config.extra = "anchors: 4\n";
  CHECK(yolo9::parse_graph(config.text(), "m.yaml").layers[1].widths == std::vector<int64_t>{32});
}

TEST_CASE("every module of the format can be named", "[nn]") {
  const std::string text =
      "nc: 2\ndepth_multiple: 1\nwidth_multiple: 1\nactivation: nn.LeakyReLU(0.2)\nbackbone:\n"
      "  - [-1, 1, Silence, []]\n  - [-1, 1, Conv, [16, 3, 2, None, 1, 1, True]]\n  - [-1, 1, RepConvN, [16, 3, 2]]\n"
      "  - [-1, 1, RepNBottleneck, [16, True, 2, 0.5]]\n  - [-1, 1, RepNCSP, [16, 2]]\n"
      "  - [-1, 1, ELAN1, [16, 16, 8]]\n  - [-1, 1, RepNCSPELAN4, [16, 16, 8]]\n  - [-1, 1, SPPELAN, [16, 8]]\n"
      "  - [-1, 1, ADown, [16]]\n  - [-1, 1, Upsample, [null, 2]]\n  - [[-1, 7], 1, Concat, [1]]\n"
      "  - [7, 1, CBLinear, [[8, 32]]]\n  - [[11, 10], 1, CBFuse, [[1]]]\n"
      "head:\n  - [[12, 8, 12, 8], 1, DualDDetect, [nc]]\n";
  auto model = yolo9::make_model(text, "m.yaml");
  CHECK(model->graph().activation.kind == yolo9::Activation::Kind::LeakyReLU);
  CHECK(model->graph().activation.slope == 0.2);
  model->train();
  const auto out = model->forward(torch::rand({2, 3, 64, 64}));
  REQUIRE(out.aux.size() == 2);
  auto sum = out.aux[0].sum() + out.aux[1].sum() + out.main[0].sum() + out.main[1].sum();
  sum.backward();
  for (const auto& item : model->named_parameters()) {
    CAPTURE(item.key());
    CHECK(item.value().grad().defined() == item.value().requires_grad());
  }
}

TEST_CASE("each activation trains through a residual block", "[nn]") {
  for (const std::string name :
       {"SiLU", "nn.ReLU()", "LeakyReLU(0.1)", "GELU", "Hardswish", "nn.Mish(inplace=True)", "Identity"}) {
    CAPTURE(name);
    Config config;
    config.extra = "activation: " + name + "\n";
    auto model = yolo9::make_model(config.text(), "m.yaml");
    model->train();
    const auto x = torch::rand({2, 3, 32, 32});
    CHECK_NOTHROW(model->forward(x).main[0].sum().backward());
    model->eval();
    const auto with = model->forward(x).main[0].detach();
    torch::NoGradGuard guard;
    CHECK(fixture::excess(model->forward(x).main[0], with, 1e-5, 1e-5) <= 0);
  }
}

TEST_CASE("bundled configurations are found by name", "[nn]") {
  CHECK(yolo9::find_config("yolov9-t").find("models/yolov9-t.yaml") != std::string::npos);
  const auto path = nn_test::model_config("gelan-c");
  CHECK(yolo9::find_config(path) == path);
  CHECK(yolo9::find_config(path.substr(0, path.size() - 5)) == path);
  CHECK_THROWS_WITH(yolo9::find_config("yolov9-x5"), Catch::Contains("did you mean \"yolov9-"));
  CHECK_THROWS_WITH(yolo9::find_config("/nowhere/qqqqqqqqqqqq.yaml"), Catch::Contains("no such model configuration"));
  CHECK_THROWS_WITH(yolo9::read_graph(fixture::source_dir()), Catch::Contains("cannot be opened"));
}
