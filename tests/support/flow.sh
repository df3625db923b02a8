# Shared by the flow tests. Each test sources this file, works in the current (fresh) folder, and uses
# YOLO9_BIN (folder of the programs) and YOLO9_SOURCE (the source tree).
set -euo pipefail
export PATH="$YOLO9_BIN:$PATH"

fail() { echo "FAILED: $*" >&2; exit 1; }

# expect_failure STATUS 'regular expression' command...: the command ends with STATUS, and its standard error holds
# exactly one line beginning with "error: ", which the expression matches.
expect_failure() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >stdout.log 2>stderr.log || got=$?
  [ "$got" = "$status" ] || { cat stderr.log >&2; fail "exit status $got instead of $status: $*"; }
  [ "$(grep -c '^error: ' stderr.log)" = 1 ] || { cat stderr.log >&2; fail "not exactly one error line: $*"; }
  grep -Eq "^error: .*$pattern" stderr.log || { cat stderr.log >&2; fail "no \"$pattern\" in the error line: $*"; }
}

# csv_column FILE NAME: the values of one column of a results.csv or memory.csv, one a line.
csv_column() {
  awk -F, -v name="$2" '
    NR == 1 { for (i = 1; i <= NF; ++i) { gsub(/^ +| +$/, "", $i); if ($i == name) column = i }
              if (!column) { print "no column " name > "/dev/stderr"; exit 1 } next }
    { gsub(/ /, "", $column); print $column }' "$1"
}

# at_least VALUE LIMIT
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

shapes() { yolo9-data make-shapes "$@" >/dev/null; }

# The settings of the small runs: quick to learn, the same everywhere.
train() { yolo9-train --cfg yolov9-t --hyp scratch-small --optimizer AdamW --noplots "$@"; }
