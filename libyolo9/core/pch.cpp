#include <yolo9/core/pch.h>
