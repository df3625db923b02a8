// Hyper-parameters, with the keys of the official files.
#pragma once

#include <string>
#include <vector>

namespace yolo9 {

struct Hyp {
  double lr0 = 0.01;        // initial learning rate
  double lrf = 0.01;        // last learning rate as a share of lr0
  double momentum = 0.937;  // SGD momentum, Adam's and LION's beta1
  double weight_decay = 0.0005;
  double warmup_epochs = 3.0;
  double warmup_momentum = 0.8;
  double warmup_bias_lr = 0.1;
  double box = 7.5;  // loss gains
  double cls = 0.5;
  double dfl = 1.5;
  double cls_pw = 1.0;    // weight of positives in the classification loss
  double fl_gamma = 0.0;  // focal loss when above zero
  double label_smoothing = 0.0;
  double hsv_h = 0.015, hsv_s = 0.7, hsv_v = 0.4;
  double degrees = 0.0, translate = 0.1, scale = 0.9, shear = 0.0, perspective = 0.0;
  double flipud = 0.0, fliplr = 0.5;
  double mosaic = 1.0, mixup = 0.15, copy_paste = 0.3;
  double mosaic9 = 0.0;   // share of mosaics that have nine pictures; a key of our own
  double filters = 0.01;  // probability of each of blur, median, grey and CLAHE; a key of our own
};

// Reads a yaml file. A key that is missing keeps its default, and the log says which; an unknown key, a value out of
// its range or of the wrong type is an Error(Usage) with file and line. The keys obj, obj_pw, iou_t and anchor_t of
// older files have no meaning for an anchor-free model: they are accepted, and the log says that they do nothing.
Hyp load_hyp(const std::string& path);
// `hyp/<name>.yaml` for a bare name, else the path itself: looked for as given, then in ./hyp, then in the
// project's own folder. Throws Error(Usage) if it is nowhere.
std::string find_hyp(const std::string& name_or_path);
// The yaml text that load_hyp reads back to the same values.
std::string hyp_to_yaml(const Hyp& hyp);

}  // namespace yolo9
