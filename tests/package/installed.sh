# find_package(yolo9) against an installed tree; the installed programs find LibTorch and the bundled yaml files.
source "$YOLO9_SOURCE/tests/support/package.sh"
install_yolo9
build_example consumer "-DCMAKE_PREFIX_PATH=$PWD/prefix"
consumer/consumer "$PWD/prefix/share/yolo9/models/yolov9-t.yaml"
for program in yolo9-train yolo9-val yolo9-detect yolo9-data yolo9-plan; do
  prefix/bin/$program --help > help.txt || fail "$program --help after installation"
  grep -q -- --help help.txt || fail "$program --help prints no help"
done
mkdir elsewhere
(cd elsewhere && ../prefix/bin/yolo9-plan --info yolov9-t > info.txt)
