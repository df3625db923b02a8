#!/usr/bin/env bash
# --cache ram and disk, --quad, --workers: what they change and what they leave alone.
source "$YOLO9_SOURCE/tests/support/flow.sh"

export YOLO9_CACHE_DIR="$PWD/cache"
shapes data --train 12 --val 4 --size 64x64
bytes() { find data -type f ! -name '*.cache' -print0 | sort -z | xargs -0 sha256sum | sha256sum; find data -type f | sort | sha256sum; }
run() {
  rm -rf runs/cache
  yolo9-train --cfg gelan-t --hyp scratch-small --data data/data.yaml --img 64 --batch 4 --nominal-batch 4 --epochs 2 \
    --seed 1 --deterministic --noplots --project runs --name cache "$@" > out.log 2>&1 || { cat out.log; fail "the run ended badly: $*"; }
}
losses() { cut -d, -f1-7 runs/cache/results.csv | sha256sum; }
said() { grep -q "$1" out.log || { cat out.log; fail "no \"$1\" in the log"; }; }

# What is kept changes no loss, whether read or kept, on disk or in memory, and nothing among the data.
run
before=$(bytes)
plain=$(losses)
[ ! -e cache/pictures ] || fail "pictures are kept unasked"
run --cache ram
said 'cache of the training set: 12 pictures in .* of memory'
said 'cache of the validation set: 4 pictures in .* of memory'
[ "$(losses)" = "$plain" ] || fail "--cache ram changes the training"
run --cache disk
said 'cache of the training set: 12 pictures in .* of disk'
! grep -q 'reused' out.log || fail "a first run has nothing to use again"
[ "$(losses)" = "$plain" ] || fail "--cache disk changes the training"
run --cache disk
said 'cache of the training set: .*reused: 12 are there already'
said 'cache of the validation set: .*reused: 4 are there already'
[ "$(losses)" = "$plain" ] || fail "pictures from the disk change the training"
[ "$(bytes)" = "$before" ] || fail "the data set was changed"
[ "$(ls cache/pictures | wc -l)" = 2 ] || fail "not one file for each set"

# Another size, other pictures: nothing old is used.
run --cache disk --img 96
! grep -q 'reused' out.log || fail "pictures of another size were used"
picture=$(find data -path '*train*' -name '*.png' -o -path '*train*' -name '*.jpg' | sort | head -1)
touch -d '2001-01-01' "$picture"
run --cache disk
! grep 'training set' out.log | grep -q 'reused' || fail "a picture was changed, and the old one used"

# A memory that leaves no room for all: here --memory keeps nearly everything for the training.
run --cache ram --memory 95%
said 'of 12 pictures fit in .* of memory; the others are read each time'
[ "$(losses)" = "$plain" ] || fail "a part in memory changes the training"

# Quads: a quarter of the pictures, at twice the size, in full batches and in short ones.
run --quad --batch 8
[ "$(csv_column runs/cache/memory.csv image_size | sort -u)" = 128 ] || fail "quads are not of twice the size"
[ "$(csv_column runs/cache/memory.csv micro_batch | sort -un | tail -1)" = 2 ] || fail "8 samples are not two pictures"
run --quad --batch 8 --multi-scale
run --quad --batch -1

# Refused in one line.
refuse() { expect_failure 2 "$1" yolo9-train --cfg gelan-t --data data/data.yaml --project runs --name refused "${@:2}"; }
refuse 'cache tape is not known' --cache tape
refuse 'give a multiple of 4' --quad --batch 6
refuse 'exclude each other' --quad --rect
refuse 'workers is -2' --workers -2

run --workers 10000
said 'workers 10000 is far above'
