#!/usr/bin/env bash
# Every flag of yolo9-train does what it says, seen in what a run leaves behind.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes data --train 12 --val 4 --size 64x64
run() {
  rm -rf runs/flag
  yolo9-train --cfg gelan-t --hyp scratch-small --data data/data.yaml --img 64 --batch 4 --nominal-batch 4 --epochs 2 --workers 1 \
    --noplots --project runs --name flag "$@" > out.log 2>&1 || { cat out.log; fail "the run ended badly: $*"; }
}
column() { csv_column "runs/flag/$1" "$2"; }

# Output
run --nosave --noval
[ ! -e runs/flag/weights/best.pt ] || fail "--nosave kept best.pt"
[ -e runs/flag/weights/last.pt ] || fail "--nosave lost last.pt"
[ ! -e runs/flag/results.png ] || fail "--noplots drew a plot"
run --save-period 1
ls runs/flag/weights | grep -q 'epoch0.pt' || fail "--save-period kept nothing"
run && [ -d runs/flag ]
yolo9-train --cfg gelan-t --data data/data.yaml --img 64 --batch 4 --epochs 1 --noplots --project runs --name flag > out.log 2>&1
[ -d runs/flag2 ] || fail "a second run did not get a folder of its own"
yolo9-train --cfg gelan-t --data data/data.yaml --img 64 --batch 4 --epochs 1 --noplots --project runs --name flag --exist-ok > out.log 2>&1
[ ! -d runs/flag3 ] || fail "--exist-ok made a new folder"
yolo9-train --cfg gelan-t --data data/data.yaml --hyp scratch-small --img 64 --batch 12 --epochs 1 --project runs --name plots > out.log 2>&1
for file in results.png PR_curve.png P_curve.png R_curve.png F1_curve.png confusion_matrix.png labels.jpg memory.png train_batch0.jpg \
  val_batch0_labels.jpg val_batch0_pred.jpg results.csv memory.csv opt.yaml hyp.yaml weights/best.pt weights/last.pt; do
  [ -s "runs/plots/$file" ] || fail "no $file"
done

# Sizes and batches
[ "$(column memory.csv accumulation | tail -1)" = 1 ] || fail "accumulation without a reason"
run --accumulate 8 --epochs 12 --noval --nosave
at_least "$(column memory.csv accumulation | sort -n | tail -1)" 2 || fail "--accumulate 8 does not act"
run --multi-scale --epochs 4 --noval --nosave
[ "$(column memory.csv image_size | sort -u | wc -l)" -ge 2 ] || fail "--multi-scale kept one size"
run --rect
run --img 60
grep -q "taken as 64" out.log || fail "--img 60 is not rounded up with a word"
run --cache --workers 2
run --cache ram
run --workers 0
run --min-items 2
grep -Eq "left out" out.log || { cat out.log; fail "--min-items left nothing out"; }
run --image-weights

# Learning rates. During warm-up they approach the schedule's factor, so three epochs tell the shapes apart; what
# --modern-schedule changes comes after warm-up, which takes 100 iterations.
for shape in "" --fixed-lr --cos-lr --flat-cos-lr; do
  run $shape --epochs 3 --nosave --noval
  column results.csv x/lr1 > "rates$shape"
done
for other in --fixed-lr --cos-lr --flat-cos-lr; do
  cmp -s rates "rates$other" && fail "$other equals the linear schedule"
done
for shape in "" --modern-schedule; do
  run $shape --epochs 36 --nosave --noval
  column results.csv x/lr1 > "long$shape"
done
cmp -s long long--modern-schedule && fail "--modern-schedule changes nothing"
for optimizer in SGD Adam AdamW LION; do run --optimizer "$optimizer" --epochs 1; done

# What is trained
run --single-cls
grep -q '"item"' <(yolo9-val --weights runs/flag/weights/last.pt --data data/data.yaml --single-cls --img 64 --json --project runs --name val) || fail "--single-cls kept the classes"
run --freeze 3
grep -q "frozen: 3 layers" out.log || fail "--freeze 3"
run --freeze 0 2
grep -q "frozen: 2 layers" out.log || fail "--freeze 0 2"
run --label-smoothing 0.5 --seed 1; smoothed=$(column results.csv train/cls_loss | tail -1)
run --seed 1; plain=$(column results.csv train/cls_loss | tail -1)
[ "$smoothed" != "$plain" ] || fail "--label-smoothing changes nothing"
sed 's/^box:.*/box: 15/' "$YOLO9_SOURCE/hyp/scratch-small.yaml" > hyp.yaml
run --seed 1; single=$(column results.csv train/box_loss | head -1)
run --seed 1 --hyp hyp.yaml; double=$(column results.csv train/box_loss | head -1)
awk -v a="$single" -v b="$double" 'BEGIN { exit !(b > 1.9 * a && b < 2.1 * a) }' || fail "the box gain does not act: $single, $double"
run --seed 2 --epochs 1; two=$(column results.csv train/cls_loss)
run --seed 1 --epochs 1; one=$(column results.csv train/cls_loss)
run --seed 1 --epochs 1 --workers 3 --deterministic; again=$(column results.csv train/cls_loss)
[ "$one" != "$two" ] || fail "--seed changes nothing"
[ "$one" = "$again" ] || fail "the number of workers changes the samples: $one, $again"
run --light --seed 1 --epochs 1
[ "$(column results.csv train/cls_loss)" != "$one" ] || fail "--light changes nothing"
run --close-mosaic 1
grep -q "mosaic is closed from epoch 2 on" out.log || fail "--close-mosaic 1 of 2"
run --close-mosaic 5
grep -q "mosaic is closed from epoch 1 on" out.log || fail "--close-mosaic 5 of 2"
run --split official --memory 99%
run --governor off

# Options as a file; flags win.
printf 'cfg: gelan-t\ndata: data/data.yaml\nepochs: 7\nimg: 64\n' > run.yaml
yolo9-train --config run.yaml --epochs 3 --dry-run > dry.log 2>/dev/null
grep -qx 'epochs: 3' dry.log && grep -qx 'img: 64' dry.log || { cat dry.log; fail "--config and flags"; }
printf 'epoch: 7\n' > wrong.yaml
expect_failure 2 'wrong.yaml:1: unknown key "epoch"; did you mean "epochs"' yolo9-train --config wrong.yaml
yolo9-train --cfg gelan-t --data data/data.yaml --noautoanchor --dry-run > /dev/null 2> note.log
grep -q "no anchors" note.log || fail "--noautoanchor says nothing"
expect_failure 2 "evolution" yolo9-train --cfg gelan-t --data data/data.yaml --evolve
