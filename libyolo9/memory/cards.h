// Graphics cards that people train on, and the memory of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yolo9 {

struct Card {
  std::string name;
  // What the driver reports as the total, where error correction or reserved memory makes it differ much from the
  // nominal size; else the nominal GiB. What the display or other programs hold comes off it.
  int64_t memory_bytes = 0;
};

// From 6 to 141 GB, the smallest first.
const std::vector<Card>& known_cards();
// By name, whatever the case, blanks, dashes, and a leading "NVIDIA", "GeForce", "Tesla" or "Jetson". Throws
// Error(Usage) with the nearest name for an unknown one.
const Card& find_card(const std::string& name);

}  // namespace yolo9
