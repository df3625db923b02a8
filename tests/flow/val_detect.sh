#!/usr/bin/env bash
# Every flag of yolo9-val and yolo9-detect does what it says, and mistakes get one line and their exit status.
source "$YOLO9_SOURCE/tests/support/flow.sh"
export OMP_NUM_THREADS=1  # pictures of 64 pixels gain nothing from threads

shapes data --train 8 --val 4 --size 64x64
sed '/^test:/d' data/data.yaml > data/no_test.yaml
yolo9-train --cfg gelan-t --hyp scratch-small --data data/data.yaml --img 64 --batch 4 --nominal-batch 4 --epochs 2 --workers 1 \
  --noplots --noval --project runs --name base > train.log 2>&1 || { cat train.log; fail "no weights to test with"; }
weights=$PWD/runs/base/weights/last.pt

# ---- yolo9-val ----
val() { rm -rf runs/v; yolo9-val --weights "$weights" --data data/data.yaml --img 64 --workers 1 --project runs --name v "$@" > val.log 2> val.err || { cat val.err; fail "yolo9-val ended badly: $*"; }; }
figure() { grep -o "\"$1\": [-0-9.e]*" val.log | head -1 | cut -d' ' -f2; }
rows() { grep -c '"image_id"' runs/v/predictions.json || true; }

val
grep -Eq '^ +all +4 ' val.log || fail "no row for all classes"
[ "$(grep -c 'Average' val.log)" = 12 ] || fail "not twelve COCO figures"
grep -q 'Speed:' val.log || fail "no speed"
for file in PR_curve.png P_curve.png R_curve.png F1_curve.png confusion_matrix.png val_batch0_labels.jpg val_batch0_pred.jpg; do
  [ -s "runs/v/$file" ] || fail "yolo9-val left no $file"
done
yolo9-val --weights "$weights" --data data/data.yaml --img 64 --noplots --project runs --name v > /dev/null 2>&1
[ -d runs/v2 ] || fail "a second validation did not get a folder of its own"
[ -z "$(ls runs/v2)" ] || fail "--noplots drew something"
yolo9-val --weights "$weights" --data data/data.yaml --img 64 --noplots --project runs --name v --exist-ok > /dev/null 2>&1
[ ! -d runs/v3 ] || fail "--exist-ok made a new folder"

val --json --save-json --conf 0
grep -q '"mAP50-95"' val.log && grep -q '"AR100"' val.log || fail "--json lacks figures"
head -1 val.log | grep -q '^{' || fail "--json prints something else too"
map=$(figure mAP50) total=$(rows)
[ "$(figure images)" = 4 ] || fail "not every picture was measured"
cp runs/v/predictions.json base.json
val --json --save-json --conf 0 --batch 1
[ "$(figure mAP50)" = "$map" ] || fail "the batch changes the figures"
val --json --save-json --conf 0 --workers 0
cmp -s runs/v/predictions.json base.json || fail "workers change the detections"
val --json --save-json --conf-thres 0.9
[ "$(rows)" -lt "$total" ] || fail "--conf keeps weak detections"
val --save-json --conf 0 --iou-thres 0.1
[ "$(rows)" -lt "$total" ] || fail "--iou drops nothing"
val --save-json --conf 0 --max-det 2
[ "$(rows)" -le 8 ] || fail "--max-det is exceeded"
val --save-json --conf 0 --imgsz 96
! cmp -s runs/v/predictions.json base.json || fail "--img does nothing"
val --save-txt --conf 0
[ "$(ls runs/v/labels | wc -l)" = 4 ] || fail "--save-txt did not write a file a picture"
awk 'NF != 6 || $2 < 0 || $2 > 1 || $6 < 0 || $6 > 1 { exit 1 }' runs/v/labels/*.txt || fail "--save-txt writes odd rows"
val --json --task train
[ "$(figure images)" = 8 ] || fail "--task train does not take the training pictures"
val --json --single-cls
grep -q '"item"' val.log || fail "--single-cls keeps the classes"
val --device cpu

# Sixty classes: a row each only when asked for.
cp -r data many
{ sed '/^names:/,$d; /^nc:/d' data/data.yaml; echo names:; for i in $(seq 0 59); do echo "  $i: kind$i"; done; } > many/data.yaml
sed -i "s|$PWD/data|$PWD/many|" many/data.yaml
yolo9-train --cfg gelan-t --hyp scratch-small --data many/data.yaml --img 64 --batch 8 --epochs 1 --workers 1 --noplots --noval \
  --project runs --name many > train.log 2>&1 || { cat train.log; fail "sixty classes cannot be trained"; }
many() { yolo9-val --weights runs/many/weights/last.pt --data many/data.yaml --img 64 --noplots --project runs --name m "$@" 2>/dev/null; }
many > val.log && ! grep -q 'kind0' val.log || fail "sixty classes are listed without --verbose"
many --verbose > val.log && grep -q 'kind[012]' val.log || fail "--verbose lists nothing"

golden=${YOLO9_GOLDEN_DIR:-$YOLO9_SOURCE/tests/golden}/metrics
if [ -e "$golden/coco_gt.json" ]; then
  yolo9-val --annotations "$golden/coco_gt.json" --predictions "$golden/coco_dt.json" > val.log
  [ "$(grep -c 'Average' val.log)" = 12 ] || fail "two files do not give twelve figures"
  yolo9-val --annotations "$golden/coco_gt.json" --predictions "$golden/coco_dt.json" --json > val.log
  for key in AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl; do [ -n "$(figure $key)" ] || fail "no $key"; done
  expected=$(grep -o '"AP": *[0-9.]*' "$golden/coco_expected.json" | head -1 | grep -o '[0-9.]*$')
  awk -v a="$(figure AP)" -v b="$expected" 'BEGIN { d = a - b; exit !(d < 1e-6 && d > -1e-6) }' || fail "AP $(figure AP) is not $expected"
fi

v() { yolo9-val --img 64 --project runs --name bad "$@"; }
expect_failure 2 "nothing to do" v
expect_failure 2 "data" v --weights "$weights"
expect_failure 2 "predictions" v --annotations x.json
expect_failure 3 "absent.json" v --annotations absent.json --predictions absent.json
echo '{"images": [' > broken.json
expect_failure 3 "broken.json.*JSON" v --annotations broken.json --predictions broken.json
expect_failure 5 "absent.pt" v --weights absent.pt --data data/data.yaml
expect_failure 3 "absent.yaml" v --weights "$weights" --data absent.yaml
expect_failure 3 "classes" v --weights "$weights" --data many/data.yaml
expect_failure 3 "test" v --weights "$weights" --data data/no_test.yaml --task test
expect_failure 2 "task" v --weights "$weights" --data data/data.yaml --task other
expect_failure 2 "conf" v --weights "$weights" --data data/data.yaml --conf 2
expect_failure 2 "batch" v --weights "$weights" --data data/data.yaml --batch 0
expect_failure 6 "device" v --weights "$weights" --data data/data.yaml --device 7
expect_failure 2 "" v --no-such-flag
: > file
expect_failure 2 "run folder" v --weights "$weights" --data data/data.yaml --project file

# ---- yolo9-detect ----
detect() { rm -rf runs/d; yolo9-detect --weights "$weights" --img 64 --project runs --name d "$@" > detect.log 2> detect.err || { cat detect.err; fail "yolo9-detect ended badly: $*"; }; }
pictures() { find runs/d -maxdepth 1 -type f | wc -l; }
lines() { cat runs/d/labels/*.txt | wc -l; }
folder=data/images/val
first=$(ls $folder | head -1)

detect --source $folder --conf 0 --save-txt
[ "$(pictures)" = 4 ] || fail "not a picture for each picture"
[ "$(ls runs/d/labels | wc -l)" = 4 ] || fail "--save-txt did not write a file a picture"
awk 'NF != 5 || $2 < 0 || $2 > 1 || $5 < 0 || $5 > 1 { exit 1 }' runs/d/labels/*.txt || fail "--save-txt writes odd rows"
total=$(lines)
cp "runs/d/$first" plain.picture
[ "$total" -gt 8 ] || fail "hardly anything to test with"
detect --source $folder --conf 0 --save-txt --save-conf --nosave
awk 'NF != 6 || $6 <= 0 || $6 > 1 { exit 1 }' runs/d/labels/*.txt || fail "--save-conf writes no score"
[ "$(pictures)" = 0 ] || fail "--nosave saved a picture"
detect --source $folder --conf-thres 0.95 --save-txt --nosave
[ "$(lines)" -lt "$total" ] || fail "--conf keeps weak detections"
detect --source $folder --conf 0 --iou-thres 0.05 --save-txt --nosave
few=$(lines)
[ "$few" -lt "$total" ] || fail "--iou drops nothing"
detect --source $folder --conf 0 --iou 0.05 --agnostic-nms --save-txt --nosave
[ "$(lines)" -lt "$few" ] || fail "--agnostic-nms drops nothing more"
detect --source $folder --conf 0 --max-det 3 --save-txt --nosave
[ "$(lines)" = 12 ] || fail "--max-det 3 gives $(lines) boxes in 4 pictures"
detect --source $folder --conf 0 --classes 1 --save-txt --nosave
awk '$1 != 1 { exit 1 }' runs/d/labels/*.txt || fail "--classes lets others through"
detect --source $folder --conf 0 --max-det 3 --save-crop --nosave
[ "$(find runs/d/crops -name '*.jpg' | wc -l)" -gt 0 ] || fail "--save-crop saved nothing"
for flag in "--line-thickness 5" --hide-labels --hide-conf; do
  detect --source "$folder/$first" --conf 0 $flag
  [ "$(pictures)" = 1 ] || fail "one picture gives $(pictures)"
  ! cmp -s "runs/d/$first" plain.picture || fail "$flag changes nothing"
done
detect --source "$folder/$first" --conf 0 --img-size 96 --device cpu
! cmp -s "runs/d/$first" plain.picture || fail "--img does nothing"
detect --source "$folder/*"
[ "$(pictures)" = 4 ] || fail "a pattern finds $(pictures) pictures"
ls -d $folder/* | head -3 > list.txt
detect --source list.txt
[ "$(pictures)" = 3 ] || fail "a list gives $(pictures) pictures"
detect --source "$YOLO9_SOURCE/tests/flow/clip.mp4" --conf 0 --save-txt
[ -s runs/d/clip.mp4 ] || fail "a video gives no video"
[ "$(ls runs/d/labels | wc -l)" = 6 ] || fail "not a text file for each frame"
mkdir mixed && cp "$folder/$first" mixed/ && echo noise > mixed/broken.jpg && echo noise > mixed/broken.mp4
detect --source mixed
[ "$(pictures)" = 1 ] || fail "damaged files stop the rest"
yolo9-detect --weights "$weights" --source "$folder/$first" --img 64 --project runs --name d > /dev/null 2>&1
[ -d runs/d2 ] || fail "a second run did not get a folder of its own"
yolo9-detect --weights "$weights" --source "$folder/$first" --img 64 --project runs --name d --exist-ok > /dev/null 2>&1
[ ! -d runs/d3 ] || fail "--exist-ok made a new folder"

d() { yolo9-detect --img 64 --project runs --name bad "$@"; }
expect_failure 2 "weights" d --source $folder
expect_failure 2 "source" d --weights "$weights"
expect_failure 3 "absent" d --weights "$weights" --source absent
expect_failure 3 "nothing.*" d --weights "$weights" --source "nothing*"
expect_failure 5 "absent.pt" d --weights absent.pt --source $folder
expect_failure 2 "class 99" d --weights "$weights" --source $folder --classes 99
expect_failure 2 "iou" d --weights "$weights" --source $folder --iou 7
expect_failure 6 "device" d --weights "$weights" --source $folder --device 7
expect_failure 2 "run folder" d --weights "$weights" --source $folder --project file
rm mixed/"$first"
expect_failure 3 "decoded" d --weights "$weights" --source mixed

# A budget: a batch is done in parts and gives the same figures; a picture that does not fit is one line and status 4.
val --save-json --conf 0 --batch 8
mv runs/v/predictions.json free.json
halved=0
for mib in 9 10 11 12 13 14 16 18 20; do
  if yolo9-val --weights "$weights" --data data/data.yaml --img 64 --workers 1 --batch 8 --save-json --conf 0 --noplots --memory "${mib}MiB" \
    --project runs --name tight --exist-ok > val.log 2> tight.log; then
    cmp free.json runs/tight/predictions.json || fail "a budget of $mib MiB changed the detections"
    if grep -q "ran out of memory with" tight.log; then halved=$((halved + 1)); fi
  else
    grep -q "^error: .*memory" tight.log || { cat tight.log; fail "a budget of $mib MiB ended badly"; }
  fi
done
[ "$halved" -gt 0 ] || fail "no budget made validation go on in parts"
expect_failure 4 "does not fit into the memory" \
  yolo9-detect --weights "$weights" --source data/images/val --img 64 --memory 1MiB --project runs --name none
expect_failure 4 "does not fit into the memory" \
  yolo9-val --weights "$weights" --data data/data.yaml --img 64 --noplots --memory 1MiB --project runs --name none
