// From folders and list files to pictures, and from a picture to its label file.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace yolo9 {

// A COCO file among the sources of a split, with the folder of its pictures ("": looked for where people keep them).
struct CocoSource {
  std::string json, images;
};
std::optional<CocoSource> as_coco_source(const std::string& source);
// The one string that stands for both.
std::string to_source(const CocoSource& coco);
// Where the pictures of a COCO file are looked for, the likeliest first: beside it, in images/, one folder up, and in
// folders named as the file without "instances_". Only those that exist.
std::vector<std::string> coco_image_folders(const CocoSource& coco);

// Every picture below the given folders (nested, through symbolic links), in the given list files (one path a line;
// relative ones are looked for beside the list file, then in the current folder; an id without extension, as in VOC's
// ImageSets/Main, is a picture of ../../JPEGImages) and among the given files
// themselves, sorted by path. Pictures are known by their extension, in any case.
// Throws Error(Data) if a source does not exist or there is no picture at all.
std::vector<std::string> find_images(const std::vector<std::string>& sources);

bool has_image_extension(const std::string& path);

// The last folder named images becomes labels, and the extension .txt.
std::string label_path(const std::string& image_path);
// Where a picture's Pascal VOC file may be: beside it, in Annotations/ for JPEGImages/, in annotations/, Annotations/
// or labels/ for images/.
std::vector<std::string> voc_paths(const std::string& image_path);

}  // namespace yolo9
