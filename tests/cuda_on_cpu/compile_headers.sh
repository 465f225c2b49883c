#!/bin/sh
# Compiles device_code.cu, which names everything the device headers offer, with nvcc for several architectures.
#
#   compile_headers.sh SOURCE_DIR SCRATCH_DIR NVCC ARCHITECTURE...
#
# Exit: 0 compiled without a warning, 1 not, 77 where there is no nvcc.
set -eu
source=$1
scratch=$2
nvcc=$3
shift 3
if ! command -v "$nvcc" >/dev/null; then
  echo "skipped: there is no nvcc ($nvcc), so nothing was compiled for a device"
  exit 77
fi
mkdir -p "$scratch"
# nvcc includes cuda_runtime.h by itself and would find the emulator's in this folder.
cd "$scratch"
for architecture in "$@"; do
  "$nvcc" -std=c++17 -O2 $(cat "$source/runtime_stub/flags/cuda.txt") "-gencode=arch=compute_$architecture,code=sm_$architecture" \
    -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wconversion,-Wshadow,-Werror \
    -I "$source/runtime_stub" -I "$source" -c "$source/tests/cuda_on_cpu/device_code.cu" -o "$scratch/sm_$architecture.o"
  echo "compiled for sm_$architecture"
done
