// Where the bundled yaml files are, and where files are kept for the next run.
#pragma once

#include <string>
#include <vector>

namespace yolo9 {

// Folders in which bundled files of a kind ("models", "hyp") are looked for by name, in this order: the current
// folder's, the source tree that the library was built from, the share/yolo9 beside the running program's folder
// (an installation that was moved), the installation as configured. Those that do not exist are left out.
std::vector<std::string> resource_folders(const std::string& kind);

// Where files of a kind ("scans", "pictures") that can be made again are kept: in $YOLO9_CACHE_DIR, or in yolo9 in
// $XDG_CACHE_HOME or ~/.cache. "" where none is known, or YOLO9_CACHE_DIR is set and empty.
std::string cache_folder(const std::string& kind);

}  // namespace yolo9
