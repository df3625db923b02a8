#!/usr/bin/env bash
# A budget too small for the batch: the run goes on with slices, the effective batch unchanged.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes data --train 32 --val 4 --size 96x96
run() { train --data data/data.yaml --img 96 --batch 16 --nominal-batch 16 --epochs 2 --workers 1 --project runs "$@"; }

run --name free
peak=$(csv_column runs/free/memory.csv peak_bytes | sort -n | tail -1)
rest=$(csv_column runs/free/memory.csv allocated_bytes | sort -n | tail -1)
budget=$(( rest + (peak - rest) * 6 / 10 ))
run --name tight --memory "$budget" 2> tight.log
grep -q "out of memory with 16 images" tight.log || { cat tight.log; fail "the budget forced nothing"; }
csv_column runs/tight/memory.csv micro_batch | sort -n | tail -1 | grep -qx 8 || fail "the micro-batch is not 8"
[ "$(csv_column runs/tight/memory.csv peak_bytes | sort -n | tail -1)" -le "$budget" ] || fail "the budget was passed"
diff <(csv_column runs/free/results.csv x/lr1) <(csv_column runs/tight/results.csv x/lr1) || fail "the schedule changed"
diff <(csv_column runs/free/memory.csv step) <(csv_column runs/tight/memory.csv step) || fail "the number of steps changed"

# Not even one image fits: exit 4 with the figure.
expect_failure 4 "even one image .* does not fit.*budget" \
  yolo9-train --cfg yolov9-t --data data/data.yaml --img 96 --batch 4 --epochs 1 --memory 8MiB --project runs --name none
# Without the governor an out-of-memory ends the run, with the same status.
expect_failure 4 "out of memory" \
  train --data data/data.yaml --img 96 --batch 16 --nominal-batch 16 --epochs 1 --memory "$budget" --governor watch --project runs --name watched
