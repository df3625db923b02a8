// Numbered folders for runs: runs/train/exp, exp2, exp3, ...
#pragma once

#include <string>

namespace yolo9 {

// Makes project/name, or where that exists project/name2, name3, ... and returns its path. Two processes that ask
// at once get two folders. With exist_ok an existing project/name is used as it is.
// Throws Error(Usage) if the folder cannot be made or written.
std::string make_run_folder(const std::string& project, const std::string& name, bool exist_ok = false);

}  // namespace yolo9
