// The deploy form: a dual-head model without its auxiliary branch.
#pragma once

#include <map>
#include <string>

#include <yolo9/nn/model.h>

namespace yolo9 {

// The single-head configuration that computes the main branch of `graph`: layers that only the auxiliary branch needs
// are gone, DualDDetect becomes DDetect. Layer numbers close up; a leading Silence is dropped where only the layer
// after it reads it.
struct SingleHeadPlan {
  std::string config_text;
  std::map<int64_t, int64_t> source_of;  // new layer -> layer of the dual model, the head included
};
SingleHeadPlan plan_single_head(const DetectionModelImpl& model);

// A model of that configuration with copies of the weights: its decoded_main and main are those of `model`.
// A fused model gives a fused one. A single-head model is copied as it is.
DetectionModel to_single_head(DetectionModelImpl& model);

}  // namespace yolo9
