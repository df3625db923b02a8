#!/usr/bin/env bash
# yolo9-plan: text and JSON, cards, exit statuses, simulation.
source "$YOLO9_SOURCE/tests/support/flow.sh"

plan() { yolo9-plan --cfg gelan-t --classes 3 "$@"; }

plan --img 320,640 --batch 1,8 --checkpointing 0,3 --optimizer SGD,AdamW --ranks 4 --gpu "rtx 3060" --json > plan.json
python3 - <<'PY'
import json
plan = json.load(open('plan.json'))
rows = plan['training']
assert len(rows) == 16, len(rows)
parts = ['weights', 'gradients', 'optimizer', 'ema', 'activations', 'assignment', 'workspace']
for row in rows:
    assert sum(row[p + '_bytes'] for p in parts) == row['total_bytes'], row
    assumed = plan['assumptions']
    need = assumed['context_bytes'] + row['total_bytes'] / (1 - assumed['headroom'])
    assert abs(row['needed_device_bytes'] - need) < 2, row
    assert row['fits'] == (row['needed_device_bytes'] <= plan['device']['memory_bytes'])
    assert row['fits'] == ('RTX 3060' in row['cards'])
    ranks = row['data_parallel']
    assert ranks['batch_per_rank'] == -(-row['batch'] // 4)
    saved = row['optimizer_bytes'] - -(-row['optimizer_bytes'] // 4)
    assert ranks['bytes_per_rank'] - ranks['sharded_bytes_per_rank'] == saved
def pick(**want):
    found = [r for r in rows if all(r[k] == v for k, v in want.items())]
    assert len(found) == 1, want
    return found[0]
base = dict(image_size=640, batch=8, checkpointing=0, optimizer='SGD')
assert pick(**base)['total_bytes'] > pick(**{**base, 'image_size': 320})['total_bytes']
assert pick(**base)['total_bytes'] > pick(**{**base, 'batch': 1})['total_bytes']
assert pick(**base)['bytes_per_image'] > 2 * pick(**{**base, 'checkpointing': 3})['bytes_per_image']
# Three figures for each parameter instead of one, and a few counters.
assert 0 <= pick(**{**base, 'optimizer': 'AdamW'})['optimizer_bytes'] - 3 * pick(**base)['optimizer_bytes'] < 64
for row in plan['inference']:
    assert row['weights_bytes'] + row['activations_bytes'] == row['total_bytes']
safe = [r for r in plan['safe_batches'] if r['image_size'] == 640 and r['optimizer'] == 'SGD']
assert [r['checkpointing'] for r in safe] == [0, 3] and 8 < safe[0]['batch'] < safe[1]['batch'], safe
PY

plan --img 320 --batch 4 --checkpointing 0,3 --amp off,bf16 --device-memory 8GiB > plan.txt
for word in Training Inference activations assignment workspace "Largest safe batch" "Smallest cards" "CUDA context"; do
  grep -q "$word" plan.txt || { cat plan.txt; fail "no \"$word\" in the text"; }
done
yolo9-plan --info yolov9-t --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["deploy"]["gflops"] > 7'
yolo9-plan --list-gpus | grep -q "RTX 4090 .*24.00 GiB" || fail "no RTX 4090 in the list"

# The allocations of one step, replayed at once and from a file.
plan --img 64 --batch 2 --checkpointing 0 --simulate --trace step.trace --json > simulated.json
plan --replay step.trace --json > replayed.json
python3 - <<'PY'
import json
first, again = (json.load(open(name)) for name in ('simulated.json', 'replayed.json'))
assert first['replays'] == again['replays']
assert [r['expandable_segments'] for r in first['replays']] == [False, True]
for replay in first['replays']:
    assert replay['peak_reserved_bytes'] >= replay['peak_allocated_bytes'] >= first['requested_peak_bytes']
    assert [p['label'] for p in replay['phases']][:3] == ['forward', 'loss', 'backward']
    assert 0 <= replay['fragmentation'] < 1
PY
yolo9-plan --replay step.trace --expandable-segments | grep -q "expandable segments on" || fail "no text of a replay"
expect_failure 4 "out of memory" yolo9-plan --replay step.trace --device-memory 620MiB

expect_failure 2 "unknown card .*did you mean .*RTX 4090" plan --gpu "RTX 4090x"
expect_failure 2 "no model was given" yolo9-plan
expect_failure 2 "multiple of the model's largest stride" plan --img 100 --checkpointing 0
expect_failure 2 "unknown precision" plan --amp fp8
expect_failure 2 "one of --gpu and --device-memory" plan --gpu T4 --device-memory 8GiB
expect_failure 4 "not even one image .*needed.*640.00 MiB" plan --img 640 --checkpointing 0,3 --device-memory 640MiB
