#!/usr/bin/env bash
# Everything that needs a GPU, in one command of nine minutes: emitted CUDA projects are built and compared with the
# reference on the GPU; the tests of single kernels run there, and kernels are timed beside what the device can do; four
# large models are timed beside PyTorch, and each of their layers beside its prediction; the sanitizers have the rest.
# Numbers, logs, tables and the verdict (goal, reached, late layers) are one file, --tarball.
#
#     scripts/gpu_check.sh                   all of it
#     scripts/gpu_check.sh --dry-run         without a GPU: builds everything for sm_90a, runs nothing
#     scripts/gpu_check.sh --pack DIR        the same, and leaves in DIR what --prebuilt takes: for a machine that has
#                                            a GPU but neither a network nor the packages gcompile is built from
#     scripts/gpu_check.sh --prebuilt DIR --tarball FILE [...]               there; see --help
#
# Nothing is fetched. ${PYTHON:-python3} needs numpy and onnx; without torch the columns of torch stay empty, without ncu the
# times of layers, without compute-sanitizer its tests, and CMake stands in for make. CUDA comes from
# $NVCC, the PATH or /usr/local/cuda. Builds in ${BUILD_DIR:-build}; installs what scripts/install_packages.sh does, if it can.
#
# Exit: 0 all is well, 1 something failed, 2 usage, 3 there is no GPU (nothing was done).
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
needs_gpu=1
is_built=
for word in "$@"; do
    case $word in
        --dry-run | --pack | --pack=* | --help | -h) needs_gpu= ;;
        --prebuilt | --prebuilt=*) is_built=1 ;;
    esac
done
if [ -n "$needs_gpu" ] && ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "gpu_check: there is no GPU here (nvidia-smi lists none): nothing was done"
    exit 3
fi

if [ -z "$is_built" ] && [ "${1:-}" != --help ] && ! "$root/scripts/install_packages.sh" test; then
    echo "gpu_check: packages could not be installed; going on with what is here"
fi
python=/usr/bin/python3
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
    if "$candidate" -c "import numpy, onnx" 2>/dev/null; then
        python=$candidate
        break
    fi
done
exec "$python" "$root/tests/bench/gpu_check.py" "$@"
