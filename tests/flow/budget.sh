#!/usr/bin/env bash
# A budget too small for the batch: the run goes on with slices, the effective batch unchanged.
source "$YOLO9_SOURCE/tests/support/flow.sh"

shapes data --train 32 --val 4 --size 96x96
run() { train --data data/data.yaml --img 96 --batch 16 --nominal-batch 16 --epochs 2 --workers 1 --project runs "$@"; }

run --name free
peak=$(csv_column runs/free/memory.csv peak_bytes | sort -n | tail -1)
rest=$(csv_column runs/free/memory.csv allocated_bytes | sort -n | tail -1)
budget=$(( rest + (peak - rest) * 6 / 10 ))
run --name tight --memory "$budget" --headroom 0 --checkpointing 0 2> tight.log
grep -q "would need" tight.log || { cat tight.log; fail "the budget forced nothing"; }
csv_column runs/tight/memory.csv micro_batch | sort -n | tail -1 | grep -qx 8 || fail "the micro-batch is not 8"
csv_column runs/tight/memory.csv accumulation | sort -n | tail -1 | grep -qx 2 || fail "the slices are not counted"
csv_column runs/tight/memory.csv rung | sort -n | tail -1 | grep -qx 4 || fail "slices are rung 4"
[ "$(csv_column runs/tight/memory.csv ooms | sort -n | tail -1)" = 0 ] || fail "it was not foreseen"
[ "$(csv_column runs/tight/memory.csv peak_bytes | sort -n | tail -1)" -le "$budget" ] || fail "the budget was passed"
diff <(csv_column runs/free/results.csv x/lr1) <(csv_column runs/tight/results.csv x/lr1) || fail "the schedule changed"
diff <(csv_column runs/free/memory.csv step) <(csv_column runs/tight/memory.csv step) || fail "the number of steps changed"

# Recomputation comes before slices, and changes no digit of the results.
run --name recomputed --memory "$budget" 2> recomputed.log
csv_column runs/recomputed/memory.csv rung | sort -n | tail -1 | grep -qx 3 || { cat recomputed.log; fail "checkpointing is rung 3"; }
csv_column runs/recomputed/memory.csv micro_batch | sort -n | head -1 | grep -qx 16 || fail "it was cut"
cmp runs/free/results.csv runs/recomputed/results.csv || fail "checkpointing changed the results"
run --name level --checkpointing 3
[ "$(csv_column runs/level/memory.csv peak_bytes | sort -n | tail -1)" -lt "$budget" ] || fail "--checkpointing 3 saves nothing"

# Not even one image fits: exit 4 with the figure, which then serves.
expect_failure 4 "even one image .* does not fit: about .* are needed, the budget is 8.00 MiB" \
  yolo9-train --cfg yolov9-t --data data/data.yaml --img 96 --batch 4 --epochs 1 --memory 8MiB --project runs --name none
[ ! -e runs/none/weights/last.pt ] || fail "a refused run left weights"
# Without the governor an out-of-memory ends the run, with the same status.
expect_failure 4 "out of memory" \
  train --data data/data.yaml --img 96 --batch 16 --nominal-batch 16 --epochs 1 --memory "$budget" --governor watch --project runs --name watched

# The planned batch fits the budget; headroom makes it smaller.
run --name planned --batch -1 --memory "$budget" 2> planned.log
grep -q -- "--batch -1: " planned.log || { cat planned.log; fail "--batch -1 says nothing"; }
planned=$(sed -n 's/.*--batch -1: \([0-9]*\) images.*/\1/p' planned.log)
at_least "$planned" 2
csv_column runs/planned/memory.csv micro_batch | sort -n | tail -1 | grep -qx "$planned" || fail "the planned batch was not run"
run --name roomy --batch -1 --memory "$budget" --headroom 30% 2> roomy.log
at_least "$planned" "$(( $(sed -n 's/.*--batch -1: \([0-9]*\) images.*/\1/p' roomy.log) + 1 ))"

# The plan alone: nothing is written.
yolo9-train --cfg gelan-t --data data/data.yaml --img 96 --batch 16 --project runs --name dry --dry-run > dry.log 2> /dev/null
for step in "1 baseline" "2 safe batch" "3 accumulation" "4 augmentation" "5 resolution"; do
  grep -q "^# $step" dry.log || { cat dry.log; fail "the plan lacks $step"; }
done
[ ! -e runs/dry ] || fail "--dry-run wrote a run folder"

# Mixed precision trains; as a rung it is taken last but for what changes the training.
run --name half --amp bf16
at_least "$peak" "$(( $(csv_column runs/half/memory.csv peak_bytes | sort -n | tail -1) + 1 ))"
large() { run --img 160 --batch 2 --nominal-batch 2 --epochs 1 --noval --checkpointing 0 "$@"; }
large --name least --memory 1MiB 2> least.log || true
least=$(sed -n 's/.*about \([0-9.]*\) MiB are needed.*/\1/p' least.log)
less=$(awk -v m="$least" 'BEGIN { printf "%d", (m - 3) * 1048576 }')
large --name narrow --memory "$less" --amp auto 2> narrow.log
csv_column runs/narrow/memory.csv rung | sort -n | tail -1 | grep -qx 5 || { cat narrow.log; fail "mixed precision is rung 5"; }
large --name small --memory "$less" --allow lighter-augment,smaller-image 2> small.log
csv_column runs/small/memory.csv rung | sort -n | tail -1 | grep -qx 7 || { cat small.log; fail "a smaller image is rung 7"; }
grep -q "no mosaic, mixup and copy-paste" small.log || { cat small.log; fail "the augmentation was not made lighter first"; }
[ "$(csv_column runs/small/memory.csv image_size | sort -n | head -1)" -lt 160 ] || fail "the image is not smaller"
expect_failure 4 "does not fit" large --name none --memory "$less"
expect_failure 2 'use lighter-augment, smaller-image' run --name wrong --allow everything
expect_failure 2 'use --amp off, fp16, bf16 or auto' run --name wrong --amp half
expect_failure 2 'fp16 needs a CUDA device' run --name wrong --amp fp16
expect_failure 2 'use 0, 1, 2, 3 or auto' run --name wrong --checkpointing 4
expect_failure 2 'is not a share of the budget' run --name wrong --headroom lots
expect_failure 2 'needs the memory governor' run --name wrong --batch -1 --governor off
