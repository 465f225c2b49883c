#!/bin/sh
# The whole way from a trained model to an answer: installs what is missing, builds gcompile, turns the example
# classifier into a C++ project, builds that with nothing but a compiler, and runs it on a sample picture.
#
#     scripts/demo.sh [DATA_SET]      which sample of examples/shapes_classifier, 0 to 4 (2)
#
# Builds in ${BUILD_DIR:-build}; the emitted project is ${BUILD_DIR:-build}/demo/shapes. ${JOBS:-all processors}.
# Exit: 0 the answer is right, 1 something failed, 2 usage.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}
sample=examples/shapes_classifier/test_data_set_${1:-2}
labels=circle,square,triangle,cross,star

if [ $# -gt 1 ] || [ ! -f "$sample/input_0.pb" ]; then
    echo "usage: scripts/demo.sh [0|1|2|3|4]" >&2
    exit 2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Says what happens, runs it quietly, and on failure shows what it said.
step() {
    printf '%s\n' "== $1"
    shift
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "demo: failed: $*" >&2
        exit 1
    }
}

step "install what is missing" scripts/install_packages.sh build
cat "$log"
# A folder that is configured keeps its generator.
generator="-G Ninja"
[ ! -f "$build/CMakeCache.txt" ] || generator=
# shellcheck disable=SC2086  # two words or none
step "configure gcompile in $build" cmake -S . -B "$build" $generator -DGCOMPILE_TESTS=OFF
step "build gcompile (a few minutes)" cmake --build "$build" -j "$jobs" --target gcompile

project=$build/demo/shapes
echo "== gcompile examples/shapes_classifier/model.onnx --name shapes -o $project"
"$build/gcompile" examples/shapes_classifier/model.onnx --name shapes -o "$project"
step "build the project: a C++ compiler and nothing else" \
    sh -c "cmake -S '$project' -B '$project/build' && cmake --build '$project/build' -j $jobs"

python3 scripts/tensors.py convert "$sample/input_0.pb" "$build/demo/image.npy"
echo "== run it on $sample/input_0.pb"
python3 scripts/tensors.py picture "$build/demo/image.npy"
"$project/build/shapes_run" "$build/demo/image.npy" --output-dir "$build/demo/result" --repeat 200
echo "== it sees"
python3 scripts/tensors.py print "$build/demo/result/0_probabilities.npy" --labels "$labels" | tee "$log"
seen=$(awk 'NR == 1 {print $1}' "$log")
wanted=$(python3 scripts/tensors.py print "$sample/output_0.pb" --labels "$labels" | awk 'NR == 1 {print $1}')
if [ "$seen" != "$wanted" ]; then
    echo "demo: expected a $wanted" >&2
    exit 1
fi
echo "== a $seen, as expected. The code: $project/src/shapes.cpp; the report: $project/report.html"
