#!/usr/bin/env bash
# Every test on this machine: installs what is missing, builds gcompile with its tests, and runs them.
#
#     scripts/test.sh [--all] [--sanitize] [--offline] [--flavour NAME] [--turn N] [--minutes N] [-- CTEST_ARGUMENT...]
#
# --all       also the long tests: every official case, every model of ../shared/models where that folder is, and what
#             compares with ONNX Runtime, which comes from PyPI the first time
# --sanitize  the tool and its tests under AddressSanitizer and UBSan, in ${BUILD_DIR}_sanitize
# --offline   installs nothing from PyPI: what compares with ONNX Runtime or reads machine code is skipped where that is
#             not there yet
# --flavour   also builds the tool alone, in ${BUILD_DIR}_NAME, and compares the projects it writes: debug, release,
#             relwithdebinfo, lto or clang; auto takes them in turn, by the number of commits; no warning is let pass
# --turn      of the slow tests, which tests/turns.txt names, those of turn N alone (scripts/test_turns.py), and the tests of
#             kernels for one width of vectors; auto takes the number of commits
# --minutes   with --turn: how long all of this may take, builds and all; turns are as short as that asks for, 48 by itself
#
# Builds in ${BUILD_DIR:-build} with ${JOBS:-all processors} processes and ${TEST_JOBS:-2} tests at a time; uses ccache
# where there is one. Ends with one line: "N passed, N failed", or "N passed, N failed, N skipped" after a line
# for each thing that was skipped. Exit: 0 nothing failed, 1 something did, 2 usage.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
long=OFF
sanitize=OFF
flavour=
turn=
minutes=48
offline=
build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}
test_jobs=${TEST_JOBS:-2}
while [ $# -gt 0 ]; do
    case $1 in
        --all) long=ON ;;
        --sanitize) sanitize=ON build=${build}_sanitize ;;
        --offline) offline=1 ;;
        --flavour) flavour=${2:-none} && shift ;;
        --turn) turn=${2:-none} && shift ;;
        --minutes) minutes=${2:-none} && shift ;;
        --) shift && break ;;
        *)
            sed -n '4s/^#  */usage: /p' "$0" >&2
            exit 2
            ;;
    esac
    shift
done
commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
flavours=(debug release relwithdebinfo lto clang)
[ "$flavour" != auto ] || flavour=${flavours[$((commits % ${#flavours[@]}))]}
[ "$turn" != auto ] || turn=$commits
case $turn.$minutes in
    *[!0-9.]*)
        echo "test: --turn takes a number, or auto, and --minutes a number; not '$turn' and '$minutes'" >&2
        exit 2
        ;;
esac
case $flavour in
    '') flavour_flags=() ;;
    debug) flavour_flags=(-DCMAKE_BUILD_TYPE=Debug) ;;
    release) flavour_flags=(-DCMAKE_BUILD_TYPE=Release) ;;
    relwithdebinfo) flavour_flags=(-DCMAKE_BUILD_TYPE=RelWithDebInfo) ;;
    lto) flavour_flags=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON) ;;
    clang) flavour_flags=(-DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14) ;;
    *)
        echo "test: no flavour '$flavour'; there are auto ${flavours[*]}" >&2
        exit 2
        ;;
esac
export BUILD_DIR=$build

# A stage that has to succeed before any test can run.
stage() {
    local started=$SECONDS
    echo "== $1"
    shift
    "$@" || {
        echo "test: failed: $*"
        echo "0 passed, 1 failed"
        exit 1
    }
    echo "== $((SECONDS - started)) s"
}

stage "packages" scripts/install_packages.sh test
# The tests that look at pages say so where there is none.
if [ -z "$offline" ] && ! scripts/install_packages.sh browser 2>/dev/null; then
    echo "test: no browser can be installed: looks at reports will be skipped"
fi
# What reads machine code says so where nothing disassembles it.
if [ -z "$offline" ] && command -v nvcc >/dev/null &&
    ! PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=60 scripts/install_packages.sh sass 2>/dev/null; then
    echo "test: PyPI cannot be reached: the gates on machine code will be skipped"
fi
# Only the long tests read what is in there.
if [ $long = ON ] && [ -z "$offline" ] && ! PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=60 scripts/install_packages.sh bench 2>/dev/null; then
    echo "test: PyPI cannot be reached: what compares with ONNX Runtime will be skipped"
fi

# The official cases of single operators: a folder that is given, else Debian's copy.
official=/usr/lib/python3/dist-packages/onnx/backend/test/data/node
if [ -z "${GCOMPILE_ONNX_CASES:-}" ] && [ -d "$official" ]; then export GCOMPILE_ONNX_CASES=$official; fi

widths=(4 16 32 64)
if [ -n "$turn" ]; then widths=("${widths[$((turn % ${#widths[@]}))]}"); fi
generator=(-G Ninja)
# A folder that is configured keeps its generator.
[ ! -f "$build/CMakeCache.txt" ] || generator=()
# Debian's Python modules belong to Debian's interpreter, which need not be the first on the path.
stage "configure in $build" cmake -S . -B "$build" "${generator[@]}" -DGCOMPILE_TESTS=ON \
    -DPython3_EXECUTABLE=/usr/bin/python3 \
    -DGCOMPILE_WERROR=ON -DGCOMPILE_LONG_TESTS=$long -DGCOMPILE_SANITIZE=$sanitize \
    -DGCOMPILE_KERNEL_WIDTHS="$(IFS=';' && echo "${widths[*]}")"
# Every error in one run.
keep_going=0
[ -f "$build/build.ninja" ] || keep_going=
# shellcheck disable=SC2086  # make's -k takes no number
stage "build" cmake --build "$build" -j "$jobs" -- -k $keep_going

if [ -n "$flavour" ]; then
    other=${build}_$flavour
    stage "configure in $other" cmake -S . -B "$other" -G Ninja -DGCOMPILE_TESTS=OFF -DGCOMPILE_WERROR=ON \
        "${flavour_flags[@]}"
    stage "build of flavour $flavour" cmake --build "$other" -j "$jobs" --target gcompile
    # Another compiler evaluates arguments in another order, which must not show in any operator.
    models=(examples)
    [ "$flavour" != clang ] || [ ! -d "${GCOMPILE_ONNX_CASES:-}" ] || models+=("$GCOMPILE_ONNX_CASES")
    JOBS=$jobs stage "the same projects by flavour $flavour" scripts/same_projects.py "$build/gcompile" "$other/gcompile" \
        "${models[@]}"
fi

# The tests that `ctest -I` and its other arguments choose, with their results in a file of the build folder.
status=0
run_tests() {
    local started=$SECONDS results=$1
    shift
    echo "== test"
    ctest --test-dir "$build" -j "$test_jobs" --output-on-failure --test-output-size-passed 1000000 \
        --output-junit "$results" "$@" || status=$?
    echo "== $((SECONDS - started)) s"
}

if [ -n "$turn" ]; then
    results=("$build/ctest.xml" "$build/ctest_slow.xml")
    run_tests ctest.xml --no-tests=error -I "$(scripts/test_turns.py fast "$build")" "$@"
    left=$((60 * minutes - SECONDS))
    run_tests ctest_slow.xml \
        -I "$(scripts/test_turns.py choose "$build" "$turn" $((left > 0 ? left : 1)) "$build/ctest.xml")" "$@"
else
    results=("$build/ctest.xml")
    run_tests ctest.xml --no-tests=error "$@"
fi
python3 scripts/summarise_tests.py "$status" "${results[@]}"
