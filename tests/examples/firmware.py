#!/usr/bin/env python3
"""Builds examples/firmware as its README says, with an installed gcompile: for this machine, for AArch64 and for a
Cortex-M7, runs all three, and compares what they print.

    firmware.py BUILD_DIR SOURCE_DIR CMAKE WORK_DIR

Exit: 0 the square is seen and the three agree, 1 not, 77 a cross compiler or an emulator is missing.
"""

import pathlib
import shutil
import subprocess
import sys

AARCH64 = """set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
"""
NEEDED = ("arm-none-eabi-g++", "qemu-system-arm", "aarch64-linux-gnu-g++", "qemu-aarch64")
FLASH, MEMORY = 1 << 20, 256 << 10  # bytes that the image may take: what such a microcontroller has


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300,
                            stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        sys.exit(f"failed with {result.returncode}: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def numbers_of(text):
    return [(line.split()[0], [float(word) for word in line.split()[1:]]) for line in text.splitlines()]


def check(condition, message):
    if not condition:
        sys.exit(message)


def main():
    build, root, work = (pathlib.Path(sys.argv[i]).resolve() for i in (1, 2, 4))
    cmake = sys.argv[3]
    missing = [tool for tool in NEEDED if not shutil.which(tool)]
    if missing:
        print(f"no {', '.join(missing)}: scripts/install_packages.sh test installs them")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    run(cmake, "--install", build, "--prefix", work / "usr", "--component", "tool")
    package = next((work / "usr").rglob("gcompileConfig.cmake")).parent
    example = root / "examples" / "firmware"
    (work / "aarch64.cmake").write_text(AARCH64)
    flags = "-Wall -Wextra -Werror"

    def built(name, *options):
        run(cmake, "-S", example, "-B", work / name, "-G", "Ninja", f"-Dgcompile_DIR={package}", "-DCMAKE_BUILD_TYPE=MinSizeRel",
            f"-DCMAKE_C_FLAGS_MINSIZEREL=-Os {flags}", *options)
        run(cmake, "--build", work / name)
        return work / name

    native = numbers_of(run(built("native") / "firmware"))
    arm64 = built("aarch64", f"-DCMAKE_TOOLCHAIN_FILE={work / 'aarch64.cmake'}")
    image = built("cortex_m7", f"-DCMAKE_TOOLCHAIN_FILE={example / 'cortex_m7.cmake'}") / "firmware.elf"
    found = {"aarch64": numbers_of(run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", arm64 / "firmware")),
             "Cortex-M7": numbers_of(run("qemu-system-arm", "-M", "mps2-an500", "-nographic", "-monitor", "none", "-serial",
                                         "none", "-semihosting", "-kernel", image))}
    check([word for word, _ in native] == ["shape"] + ["frame"] * 4, f"the program prints {native}")
    probabilities = native[0][1]
    check(max(range(5), key=probabilities.__getitem__) == 1, f"no square is seen: {probabilities}")
    check(max(map(abs, native[4][1])) > 0.05, f"the cleaned frame is silent: {native[4]}")
    for machine, lines in found.items():
        check(len(lines) == len(native), f"{machine} prints {lines}")
        for (word, expected), (_, values) in zip(native, lines):
            worst = max(abs(a - b) for a, b in zip(expected, values, strict=True))
            check(worst <= 2e-5, f"{machine}: {word} is off by {worst}: {values}, here {expected}")
    text, data, bss = map(int, run("arm-none-eabi-size", image).splitlines()[1].split()[:3])
    check(text + data <= FLASH and data + bss <= MEMORY, f"the image takes {text + data} of flash, {data + bss} of memory")
    print(f"{len(native)} lines alike; Cortex-M7: {text + data} bytes of flash, {data + bss} of memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
