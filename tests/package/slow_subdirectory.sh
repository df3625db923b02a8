# add_subdirectory with the whole library, compiled anew as part of the outside project.
source "$YOLO9_SOURCE/tests/support/package.sh"
build_example consumer "-DYOLO9_SOURCE=$YOLO9_SOURCE"
consumer/consumer "$YOLO9_SOURCE/models/yolov9-t.yaml"
