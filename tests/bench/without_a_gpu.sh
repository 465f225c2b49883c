#!/bin/sh
# scripts/gpu_check.sh on a machine without a GPU says so in one line, ends with status 3 and leaves nothing behind.
#
#     without_a_gpu.sh SOURCE_DIR
#
# Exit: 0 it does, 1 it does not, 77 there is a GPU.
set -eu
if nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "skipped: there is a GPU"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
BUILD_DIR="$scratch/build" "$1/scripts/gpu_check.sh" >"$scratch/said" 2>&1 || status=$?
cat "$scratch/said"
[ "$status" = 3 ] || { echo "exit status $status, not 3" && exit 1; }
[ "$(wc -l <"$scratch/said")" = 1 ] || { echo "more than one line" && exit 1; }
[ ! -e "$scratch/build" ] || { echo "a build folder was made" && exit 1; }
