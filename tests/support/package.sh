# Shared by the package tests. Each one plays a project outside the tree: in the current (fresh) folder, with
# YOLO9_SOURCE (the source tree), YOLO9_BUILD (its finished build), LibTorch_ROOT and CXX set.
set -euo pipefail

fail() { echo "FAILED: $*" >&2; exit 1; }

# Installs the build into ./prefix, which nothing was told of before.
install_yolo9() {
  cmake --install "$YOLO9_BUILD" --prefix "$PWD/prefix" > install.log
}

# build_example NAME [CMake settings...]: leaves the program NAME/NAME.
build_example() {
  local name=$1 launcher=()
  shift
  ! command -v ccache > /dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake -S "$YOLO9_SOURCE/apps/examples/$name" -B "$name" -G Ninja -DCMAKE_BUILD_TYPE=Release "${launcher[@]}" "$@"
  cmake --build "$name"
}
