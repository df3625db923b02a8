#include <yolo9/memory/cards.h>

#include <algorithm>
#include <cctype>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

// "NVIDIA GeForce RTX-4090" and "rtx 4090" are one.
std::string key_of(const std::string& name) {
  std::string key;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string maker : {"nvidia", "geforce", "tesla", "jetson"})
    if (key.starts_with(maker)) key.erase(0, maker.size());
  return key;
}

}  // namespace

const std::vector<Card>& known_cards() {
  static const std::vector<Card> cards = [] {
    std::vector<Card> all{
        {"GTX 1660", 6 * kGiB},
        {"RTX 2060", 6 * kGiB},
        {"RTX 2070", 8 * kGiB},
        {"RTX 2080", 8 * kGiB},
        {"RTX 3050", 8 * kGiB},
        {"RTX 3060 Ti", 8 * kGiB},
        {"RTX 3070", 8 * kGiB},
        {"RTX 4060", 8 * kGiB},
        {"RTX 3080", 10 * kGiB},
        {"GTX 1080 Ti", 11 * kGiB},
        {"RTX 2080 Ti", 11 * kGiB},
        {"RTX 3060", 12 * kGiB},
        {"RTX 3080 Ti", 12 * kGiB},
        {"RTX 4070", 12 * kGiB},
        {"RTX 5070", 12 * kGiB},
        {"T4", 15360 * kMiB},
        {"V100 16GB", 16 * kGiB},
        {"P100", 16 * kGiB},
        {"RTX 4080", 16 * kGiB},
        {"RTX 5080", 16 * kGiB},
        {"RTX 4060 Ti 16GB", 16 * kGiB},
        {"RTX A4000", 16 * kGiB},
        {"A10", 23028 * kMiB},
        {"L4", 23034 * kMiB},
        {"RTX 3090", 24 * kGiB},
        {"RTX 4090", 24 * kGiB},
        {"RTX A5000", 24 * kGiB},
        {"Titan RTX", 24 * kGiB},
        {"RTX 5090", 32607 * kMiB},
        {"V100 32GB", 32 * kGiB},
        {"A40", 46068 * kMiB},
        {"L40", 46068 * kMiB},
        {"L40S", 46068 * kMiB},
        {"RTX A6000", 49140 * kMiB},
        {"RTX 6000 Ada", 49140 * kMiB},
        {"A100 40GB", 40 * kGiB},
        {"A100 80GB", 80 * kGiB},
        {"H100 80GB", 81559 * kMiB},
        {"H200", 143771 * kMiB},
        {"Jetson Orin Nano 8GB", 8 * kGiB},
        {"Jetson Orin NX 16GB", 16 * kGiB},
        {"Jetson AGX Orin 32GB", 32 * kGiB},
        {"Jetson AGX Orin 64GB", 64 * kGiB},
    };
    std::stable_sort(all.begin(), all.end(),
                     [](const Card& a, const Card& b) { return a.memory_bytes < b.memory_bytes; });
    return all;
  }();
  return cards;
}

const Card& find_card(const std::string& name) {
  const std::string key = key_of(name);
  std::vector<std::string> keys;
  for (const auto& card : known_cards()) {
    if (key_of(card.name) == key) return card;
    keys.push_back(key_of(card.name));
  }
  const auto nearest = std::find(keys.begin(), keys.end(), nearest_word(key, keys));
  throw Error(ErrorKind::Usage, "unknown card \"" + name + "\"", "--gpu",
              nearest == keys.end()
                  ? "see --list-gpus, or give --device-memory"
                  : "did you mean \"" + known_cards()[static_cast<size_t>(nearest - keys.begin())].name + "\"?");
}

}  // namespace yolo9
