// From folders and list files to pictures, and from a picture to its label file.
#pragma once

#include <string>
#include <vector>

namespace yolo9 {

// Every picture below the given folders (nested, through symbolic links), in the given list files (one path a line;
// relative ones are looked for beside the list file, then in the current folder) and among the given files
// themselves, sorted by path. Pictures are known by their extension, in any case.
// Throws Error(Data) if a source does not exist or there is no picture at all.
std::vector<std::string> find_images(const std::vector<std::string>& sources);

bool has_image_extension(const std::string& path);

// The last folder named images becomes labels, and the extension .txt.
std::string label_path(const std::string& image_path);

}  // namespace yolo9
