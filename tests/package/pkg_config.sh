# A build without CMake, from what pkg-config says of an installed tree that has been moved.
source "$YOLO9_SOURCE/tests/support/package.sh"
install_yolo9
mv prefix moved
pc=$(dirname "$(find moved -name yolo9.pc)")
read -r -a flags <<< "$(PKG_CONFIG_PATH=$PWD/$pc pkg-config --cflags yolo9)"
read -r -a libraries <<< "$(PKG_CONFIG_PATH=$PWD/$pc pkg-config --libs yolo9)"
"${CXX:-c++}" -O1 "${flags[@]}" "$YOLO9_SOURCE/apps/examples/consumer/main.cpp" "${libraries[@]}" -o consumer
./consumer "$PWD/moved/share/yolo9/models/yolov9-t.yaml"
