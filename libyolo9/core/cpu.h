// How many processor cores this process may keep busy.
#pragma once

#include <cstdint>
#include <string>

namespace yolo9 {

// The cores that the affinity mask allows or, if less, the tightest processor quota of the control groups that hold
// this process, rounded up. At least 1. A group counts with all groups that enclose it, in version 2 and in version 1
// alike. The kernel's files are read below `root` ("" is the real machine; tests pass a folder that mimics one);
// `affinity` replaces the mask's count where it is above zero.
int64_t usable_cores(const std::string& root = "", int64_t affinity = 0);

// Loader threads for a run that trains on the processor or, with `accelerator`, beside it. A training on the processor
// uses every core itself, and its threads run in bursts, so a quarter of the cores, at least one, is enough to stay
// ahead of it; beside an accelerator every core but the one that feeds it is free. At most 8, where disks give out.
int64_t suggested_workers(int64_t cores, bool accelerator);

}  // namespace yolo9
