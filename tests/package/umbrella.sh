# <yolo9/yolo9.h> names every public header. All are, but the precompiled header, the loops of a
# kernel, and those that draw with OpenCV;
# what the public ones include is the standard library, LibTorch, JSON and each other.
cd "$YOLO9_SOURCE/libyolo9"
mapfile -t public < <(printf '%s\n' */*.h | grep -vE '^(core/pch|nn/lanes|nn/norm_loops|monitor/canvas|monitor/chart|data/(picture_places|picture_reader|recent_pictures|row_reducer|stored_part|tile_warp))\.h$')
diff <(grep -oP '(?<=#include <yolo9/)[^>]+' yolo9.h | sort) <(printf '%s\n' "${public[@]}" | sort)
! grep -nE '#include [<"](opencv2/|spdlog/|yaml-cpp/|CLI/|yolo9/monitor/(canvas|chart)\.h|yolo9/data/(picture_places|picture_reader|recent_pictures|row_reducer|stored_part|tile_warp)\.h)' "${public[@]}"
