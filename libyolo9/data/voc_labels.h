// Pascal VOC XML files: one a picture, boxes in pixels counted from 1, both corners belonging to the box.
#pragma once

#include <string>
#include <vector>

#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

constexpr int kDeepestXml = 32;

// Names become classes by `names`. Pixels become shares by the file's <size>, see reference_size(). Objects that are
// marked difficult or truncated count like others; parts (a head, a hand) are no objects. What is nested more than
// kDeepestXml deep, or declares entities, is refused as unreadable; nothing outside the file is ever loaded.
LabelFile parse_voc(const std::string& text, const std::vector<std::string>& names, PixelSize picture,
                    int64_t most_listed_faults = kMostListedFaults);

// The names of the objects, in the file's order and with repetitions; those before the fault if the file has one.
std::vector<std::string> voc_names(const std::string& text);

}  // namespace yolo9
