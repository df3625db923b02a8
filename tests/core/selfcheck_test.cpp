#include <catch2/catch.hpp>

#include <cstdio>

#include "support/fixture.h"

// The generator of every golden tensor: nothing else means anything unless this is bit-exact.
TEST_CASE("formula tensors match the self-check bit for bit", "[golden]") {
  const auto check = fixture::read_json(fixture::golden_dir() + "/selfcheck.json");
  for (const auto& entry : check.at("tensors")) {
    const auto name = entry.at("name").get<std::string>();
    CAPTURE(name);
    char hash[32];
    std::snprintf(hash, sizeof hash, "0x%016llx", static_cast<unsigned long long>(fixture::fnv1a64(name)));
    CHECK(entry.at("fnv1a64").get<std::string>() == hash);
    for (size_t i = 0; i < entry.at("mixed_u64_first8").size(); ++i)
      CHECK(std::stoull(entry.at("mixed_u64_first8")[i].get<std::string>(), nullptr, 16) ==
            fixture::mixed_u64(name, i));
    const auto tensor =
        fixture::formula(name, entry.at("shape").get<std::vector<int64_t>>(), entry.at("kind").get<std::string>());
    const auto flat = tensor.to(torch::kFloat64).flatten();
    for (size_t i = 0; i < entry.at("first8_hex").size(); ++i)
      CHECK(std::strtod(entry.at("first8_hex")[i].get<std::string>().c_str(), nullptr) ==
            flat[static_cast<int64_t>(i)].item<double>());
    CHECK(flat.sum().item<double>() == Approx(fixture::number(entry.at("sum_float64"))).epsilon(1e-12));
  }
  const auto probe = check.at("probe_indices");
  const auto name = "probe:" + probe.at("key").get<std::string>();
  for (size_t j = 0; j < probe.at("first8").size(); ++j)
    CHECK(probe.at("first8")[j].get<uint64_t>() == fixture::mixed_u64(name, j) % probe.at("numel").get<uint64_t>());
}
