// is_out_of_memory, for those who take the governor alone.
#pragma once

#include <yolo9/core/oom.h>
