#!/usr/bin/env bash
# Eight pictures are learnt by heart: mAP50 above 0.9 on the same pictures.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes data --train 8 --val 1 --size 128x128
sed -i 's|^val:.*|val: images/train|' data/data.yaml
# The rate ends near zero: BatchNorm's running statistics lag behind weights that still move.
sed 's/^mosaic:.*/mosaic: 0/; s/^scale:.*/scale: 0.2/; s/^lrf:.*/lrf: 0.001/' \
  "$YOLO9_SOURCE/hyp/scratch-small.yaml" > hyp.yaml
train --hyp hyp.yaml --cos-lr --data data/data.yaml --img 96 --batch 8 --nominal-batch 8 --epochs 400 --noval --nosave \
  --cache ram --workers 1 --project runs --name overfit
map50=$(csv_column runs/overfit/results.csv metrics/mAP_0.5 | tail -1)
at_least "$map50" 0.9 || fail "mAP50 $map50 is below 0.9"
yolo9-val --weights runs/overfit/weights/last.pt --data data/data.yaml --img 96 --json --project runs --name val > val.json
grep -q '"mAP50"\|mAP' val.json || fail "yolo9-val printed no figures"

# With a rate that wrecks what was learnt, the run ends early.
sed 's/^lr0:.*/lr0: 0.5/' hyp.yaml > wreck.yaml
train --hyp wreck.yaml --fixed-lr --weights runs/overfit/weights/last.pt --data data/data.yaml --img 96 --batch 8 \
  --nominal-batch 8 --epochs 40 --patience 2 --workers 1 --project runs --name wrecked 2> wrecked.log
grep -q "no better fitness for 2 epochs" wrecked.log || { tail wrecked.log; fail "--patience did not stop the run"; }
