#!/bin/sh
# Compiles a source of the programs for a GPU with nvcc, without optimisation: that it still can be.
#
#   compile.sh SOURCE_DIR SCRATCH_DIR NVCC SOURCE
#
# Exit: 0 compiled, 1 not, 77 where there is no nvcc.
set -eu
if ! command -v "$3" >/dev/null; then
  echo "skipped: there is no nvcc ($3)"
  exit 77
fi
mkdir -p "$2"
cd "$2"
"$3" -std=c++17 -x cu -Xcicc -O0 -Xptxas -O0 $(cat "$1/runtime_stub/flags/cuda.txt") --expt-relaxed-constexpr -gencode=arch=compute_90,code=sm_90 \
  -I "$1/runtime_stub" -c "$1/$4" -o "$(basename "$4").o"
