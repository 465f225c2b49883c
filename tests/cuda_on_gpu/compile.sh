#!/bin/sh
# Compiles a source of the programs for a GPU with nvcc, without optimisation: that it still can be. With `run` it is a test that
# needs no GPU, which is optimised as emitted projects are, linked and run.
#
#   compile.sh SOURCE_DIR SCRATCH_DIR NVCC SOURCE [run]
#
# Exit: 0 compiled, 1 not, 77 where there is no nvcc.
set -eu
if ! command -v "$3" >/dev/null; then
  echo "skipped: there is no nvcc ($3)"
  exit 77
fi
mkdir -p "$2"
cd "$2"
if [ "${5:-}" = run ]; then
  how="-O3 -o $(basename "$4").program -lgtest -lgtest_main"
else
  how="-Xcicc -O0 -Xptxas -O0 -c -o $(basename "$4").o"
fi
"$3" -std=c++17 -x cu $(cat "$1/runtime_stub/flags/cuda.txt") --expt-relaxed-constexpr -gencode=arch=compute_90,code=sm_90 \
  -I "$1/runtime_stub" "$1/$4" $how
[ "${5:-}" != run ] || "./$(basename "$4").program" --gtest_brief=1
