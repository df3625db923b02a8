// What recorded steps of a few loads teach of all others. At each moment of a step the live bytes are a sum of parts
// that grow with the load; which moment is the highest depends on the load, so that the peak itself is no such sum.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/memory/trace.h>

namespace yolo9 {

// What a load is to the laws.
struct LoadTerms {
  double pixels = 0;  // of all pictures
  double boxes = 0;   // that find anchors
  double pairs = 0;   // (box, anchor) pairs that the assigner looks at together
};

struct MomentLaw {
  double constant = 0, per_pixel = 0, per_box = 0, per_pair = 0;
  double at(const LoadTerms& load) const {
    return constant + per_pixel * load.pixels + per_box * load.boxes + per_pair * load.pairs;
  }
};

// The moments of one part of a step; the last one is its end.
using PartLaw = std::vector<MomentLaw>;
int64_t peak_of(const PartLaw& law, const LoadTerms& load);

// One part of a recording: for each allocation, its size and what is live after it; and what is live at the end.
struct LiveCurve {
  std::vector<int64_t> block;
  std::vector<double> live;
  double end = 0;
  double peak() const;
};
// By the marks of the trace: the first part is what precedes the first mark.
std::vector<LiveCurve> live_curves(const AllocationTrace& trace);

struct RecordedLoad {
  LoadTerms terms;
  std::vector<LiveCurve> parts;
};

// The laws of each part, from loads [size][boxes]: two sizes, each with few and with many boxes, all with as many
// pictures. More than one picture: for a single small one LibTorch's convolutions take another way.
std::vector<PartLaw> fit_part_laws(const RecordedLoad (&loads)[2][2]);

}  // namespace yolo9
