#!/usr/bin/env bash
# run_script.sh SCRIPT FOLDER: runs a test script in FOLDER, made empty before and removed after success.
# The script finds YOLO9_BIN (programs), YOLO9_SOURCE (the source tree) and YOLO9_BUILD (the build folder) set.
set -euo pipefail
script=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
bash -euo pipefail "$script"
cd /
rm -rf "$folder"
