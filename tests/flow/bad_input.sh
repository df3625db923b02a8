#!/usr/bin/env bash
# Every mistake gets one line and its exit status, and loses nothing.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes good --train 6 --val 2 --size 64x64
fresh() { rm -rf data; cp -r good data; }
go() { yolo9-train --cfg yolov9-t --data data/data.yaml --hyp scratch-small --img 64 --batch 2 --epochs 1 --workers 1 --noplots --project runs "$@"; }
first=$(ls good/labels/train | head -1)
picture=$(ls good/images/train | head -1)

fresh; sed -i '/^names:/,$d' data/data.yaml
expect_failure 3 "data.yaml.*names" go
# A row that cannot be used is dropped, counted and named; with --strict it ends the run.
bad_row() {
  fresh
  echo "$1" >> "data/labels/train/$first"
  go --name rows > rows.log 2>&1 || { cat rows.log; fail "a bad row ended the run: $1"; }
  grep -Eq "1 row dropped \($2\).*$first:[0-9]+: " rows.log || { cat rows.log; fail "the row is not counted and named: $1"; }
  expect_failure 3 "$first:[0-9]+: .*1 row dropped \($2\)" go --strict
}
bad_row "7 0.5 0.5 0.1 0.1" class_index
bad_row "0 nan 0.5 0.1 0.1" not_a_number
bad_row "0 0.5 0.5 0.1 0.1 0.9" token_count
fresh; rm -rf data/images/train/*
expect_failure 3 "no pictures" go
fresh
echo "lr_0: 0.1" > wrong.yaml
expect_failure 2 "wrong.yaml:1: unknown key .*lr0" go --hyp wrong.yaml
expect_failure 2 "" go --no-such-flag
expect_failure 2 "nosuchmodel" go --cfg nosuchmodel
expect_failure 5 "nosuch.pt" go --weights nosuch.pt
expect_failure 2 "optimizer" go --optimizer Newton
expect_failure 6 "device|CUDA" go --device 7
: > empty.pt
expect_failure 5 "empty.pt" go --weights empty.pt
echo "not a checkpoint" > noise.pt
expect_failure 5 "noise.pt" go --weights noise.pt
: > file
expect_failure 2 "file" go --project file/runs

# A truncated JPEG, a zero-byte picture and an empty label file are no reason to stop.
fresh
python3 - "$picture" <<'P' 2>/dev/null || head -c 500 "good/images/train/$picture" > "data/images/train/$picture"
import sys
data = open("good/images/train/" + sys.argv[1], "rb").read()
open("data/images/train/" + sys.argv[1], "wb").write(data[:len(data) // 2])
P
: > data/images/train/zero.jpg
: > "data/labels/train/$(ls good/labels/train | sed -n 2p)"
go --name faults > faults.log 2>&1 || { cat faults.log; fail "a faulty picture ended the run"; }
grep -q "zero.jpg" faults.log || { cat faults.log; fail "the zero-byte picture is not named"; }

# A batch larger than the set, and weights of another class count.
fresh
go --batch 64 --name large > large.log 2>&1 || { cat large.log; fail "a batch larger than the set"; }
grep -qi "batch" large.log || fail "the smaller batch is not mentioned"
sed -i 's/^nc:.*/nc: 2/; s/^names:.*/names: [a, b]/; /^  [0-9-]/d' data/data.yaml
find data/labels -name '*.txt' -exec sed -i 's/^[0-9]* /0 /' {} +
go --weights runs/large/weights/last.pt --name transfer > transfer.log 2>&1 || { cat transfer.log; fail "weights of another class count"; }
grep -Eq "loaded [0-9]+ of [0-9]+" transfer.log || { cat transfer.log; fail "what was loaded is not said"; }
diff -r good/labels good/labels
