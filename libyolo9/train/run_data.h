// The data of a run: both sets, their loaders, what is kept of their pictures.
#pragma once

#include <cstdint>

#include <torch/types.h>
#include <yolo9/data/augment.h>
#include <yolo9/data/scan.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/run_options.h>

namespace yolo9 {

struct RunParts;

// `light`: without mosaic, mixup, copy-paste, rotation and translation.
AugmentOptions augment_options(const Hyp& hyp, bool light = false);

// Fills in what belongs to the data: sets, loaders, names, the picture size and the batch; the device must be there.
// Throws Error.
void set_up_data(RunParts& parts, const RunOptions& options, const Hyp& hyp, const ScanProgress& on_scan);

// What --cache may take of the host's memory. Beside a training on the processor, half of what is free, less what
// --memory keeps for the training (0: not given); beside an accelerator 80 %.
int64_t picture_budget_bytes(int64_t free_bytes, int64_t memory_bytes, torch::Device device);

}  // namespace yolo9
