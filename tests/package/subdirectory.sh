# add_subdirectory: the whole project is configured inside another, which builds only what it takes.
source "$YOLO9_SOURCE/tests/support/package.sh"
build_example governor_only "-DYOLO9_SOURCE=$YOLO9_SOURCE"
governor_only/governor_only
[ ! -e governor_only/yolo9/bin ] || fail "programs were built that nobody asked for"
