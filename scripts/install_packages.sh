#!/bin/sh
# Installs the Debian packages that are missing, and nothing else.
#
#     scripts/install_packages.sh [build|test|bench|sass|browser]
#
# build  what the tool is built from
# test   build, and what the tests need (default)
# bench  test, and a Python environment with ONNX Runtime, OpenVINO and ncnn for the tests and benchmarks that compare
#        with them, in ${BUILD_DIR:-build}/bench_venv; its interpreter is ${BUILD_DIR:-build}/bench_venv/bin/python
# sass   test, and nvdisasm, which reads the machine code of CUDA kernels, in ${BUILD_DIR:-build}/sass_venv
# browser chromium, in which scripts/screenshots.py looks at reports (120 MB to fetch)
#
# Prints one line. Uses sudo when it is not run by root and a package is missing. Exit: 0 done, 1 failed, 2 usage.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
set_name=${1:-test}

build_packages="g++ cmake ninja-build make python3 libonnx-dev libprotobuf-dev protobuf-compiler libfmt-dev
    nlohmann-json3-dev zlib1g-dev"
test_packages="$build_packages libcli11-dev libgtest-dev libgmock-dev libonnx-testdata python3-jinja2 python3-mpmath python3-numpy
    python3-onnx clang-14 clang-format-14 libclang-rt-14-dev qemu-user
    clang-13 clang-19 g++-mingw-w64-x86-64-posix gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm
    g++-aarch64-linux-gnu g++-arm-linux-gnueabihf bash zsh fish groff-base dpkg-dev lintian pkgconf python3-venv"
bench_packages=$test_packages
# Modules of Python are pinned with the digests of their files (scripts/modules), so that a comparison means the same
# thing next year, and that nothing else is installed under their names. Debian signs its packages.
modules=$root/scripts/modules

case $#:$set_name in
    [01]:build) wanted=$build_packages ;;
    [01]:test) wanted=$test_packages ;;
    [01]:bench) wanted=$bench_packages ;;
    [01]:sass) wanted=$test_packages ;;
    [01]:browser) wanted="chromium fonts-dejavu-core" ;;
    *)
        echo "usage: scripts/install_packages.sh [build|test|bench|sass|browser]" >&2
        exit 2
        ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a command quietly; on failure shows what it said.
quietly() {
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "install_packages: failed: $*" >&2
        exit 1
    }
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

for tool in dpkg-query apt-get; do
    command -v "$tool" >/dev/null || {
        echo "install_packages: no $tool here; this is for Debian 12. Install the like of: $wanted" >&2
        exit 1
    }
done

missing=
for package in $wanted; do
    is_installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    quietly as_root apt-get update -q
    # shellcheck disable=SC2086  # a list of words
    quietly as_root apt-get install -q -y --no-install-recommends $missing
fi
report="packages for $set_name: installed$missing"
[ -n "$missing" ] || report="packages for $set_name: all present"

# Makes a Python environment of lists of modules; the stamp says what is inside, so that a changed pin makes it anew.
#     make_environment FOLDER LIST...
make_environment() {
    venv=$1
    shift
    wanted_modules=$(cat "$@")
    if [ "$(cat "$venv/modules.txt" 2>/dev/null)" = "$wanted_modules" ]; then
        report="$report; $venv present"
        return
    fi
    rm -rf "$venv"
    quietly /usr/bin/python3 -m venv "$venv"
    for list in "$@"; do
        # Each list is complete.
        quietly "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
            --only-binary=:all: -r "$list"
    done
    printf '%s\n' "$wanted_modules" >"$venv/modules.txt"
    report="$report; $venv made"
}

if [ "$set_name" = bench ]; then
    make_environment "${BUILD_DIR:-$root/build}/bench_venv" "$modules/bench.txt" "$modules/bench_alone.txt"
fi
if [ "$set_name" = sass ]; then
    make_environment "${BUILD_DIR:-$root/build}/sass_venv" "$modules/sass.txt"
fi
echo "$report"
