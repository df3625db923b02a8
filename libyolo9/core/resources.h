// Where the bundled yaml files are.
#pragma once

#include <string>
#include <vector>

namespace yolo9 {

// Folders in which bundled files of a kind ("models", "hyp") are looked for by name, in this order: the current
// folder's, the source tree that the library was built from, the share/yolo9 beside the running program's folder
// (an installation that was moved), the installation as configured. Those that do not exist are left out.
std::vector<std::string> resource_folders(const std::string& kind);

}  // namespace yolo9
