#!/usr/bin/env bash
# A run that is killed and resumed ends with the very numbers of a run that was not.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes data --train 24 --val 4 --size 96x96
settings=(--cfg yolov9-t --hyp scratch-small --optimizer AdamW --noplots --data data/data.yaml --img 64 --batch 8
  --nominal-batch 16 --epochs 6 --close-mosaic 2 --workers 2 --seed 3 --project runs)

yolo9-train "${settings[@]}" --name whole
# exec: the process to kill must be the trainer itself, not a shell around it.
( exec yolo9-train "${settings[@]}" --name killed ) &
pid=$!
for _ in $(seq 600); do
  [ -f runs/killed/results.csv ] && [ "$(wc -l < runs/killed/results.csv)" -ge 4 ] && break
  sleep 0.1
done
kill -9 "$pid"
wait "$pid" || true
[ "$(wc -l < runs/killed/results.csv)" -lt 7 ] || fail "the run was over before it was killed"
yolo9-train --resume runs/killed/weights/last.pt
diff runs/whole/results.csv runs/killed/results.csv || fail "the resumed run took another course"

# A signal ends a run in good order: the epochs that were finished are there, and the rest follows.
( exec yolo9-train "${settings[@]}" --name stopped ) &
pid=$!
for _ in $(seq 600); do
  [ -f runs/stopped/weights/last.pt ] && break
  sleep 0.1
done
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" = 75 ] || fail "exit status $status after SIGTERM instead of 75"
yolo9-train --resume runs/stopped/weights/last.pt
diff runs/whole/results.csv runs/stopped/results.csv || fail "the stopped run took another course"

# A finished run cannot be resumed, and says so.
expect_failure 5 "finished" yolo9-train --resume runs/killed/weights/last.pt
