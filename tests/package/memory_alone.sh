# The governor alone, from an installed tree, by a project that has neither OpenCV nor yaml-cpp.
source "$YOLO9_SOURCE/tests/support/package.sh"
install_yolo9
build_example governor_only "-DCMAKE_PREFIX_PATH=$PWD/prefix" \
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenCV=ON -DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=ON
governor_only/governor_only
! readelf -d governor_only/governor_only | grep -E 'NEEDED.*(opencv|yaml)' ||
  fail "the governor drags in more than it needs"
