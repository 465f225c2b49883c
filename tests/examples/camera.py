#!/usr/bin/env python3
"""Builds examples/camera as its README says, with an installed gcompile, and shows it frames of the five shapes.

    camera.py BUILD_DIR SOURCE_DIR CMAKE WORK_DIR

The classifier's test images, enlarged, with a grey border left and right that the camera has to crop. Exit: 0 all shapes are
named and frames that are none are refused, 1 not.
"""

import pathlib
import shutil
import subprocess
import sys

SHAPES = ["circle", "square", "triangle", "cross", "star"]
SIDE = 32


def run(*command, data=b"", status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False, timeout=300, input=data)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}, expected {status}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done


def frame(pixels, scale, border, comment=b""):
    """A binary PPM image: every pixel `scale` times `scale`, and `border` columns on both sides."""
    out = bytearray(b"P6\n" + comment + b"%d %d\n255\n" % (SIDE * scale + 2 * border, SIDE * scale))
    for y in range(SIDE):
        row = bytearray()
        for x in range(SIDE):
            row += bytes(round(255 * pixels[c * SIDE * SIDE + y * SIDE + x]) for c in range(3)) * scale
        out += (bytes([128] * 3 * border) + row + bytes([128] * 3 * border)) * scale
    return bytes(out)


def main():
    build, root, work = (pathlib.Path(sys.argv[i]).resolve() for i in (1, 2, 4))
    cmake = sys.argv[3]
    sys.path.insert(0, str(root / "scripts"))
    import tensors
    shutil.rmtree(work, ignore_errors=True)
    run(cmake, "--install", build, "--prefix", work / "usr", "--component", "tool")
    package = next((work / "usr").rglob("gcompileConfig.cmake")).parent
    run(cmake, "-S", root / "examples/camera", "-B", work / "build", f"-Dgcompile_DIR={package}", "-DCMAKE_BUILD_TYPE=Release", "-DSHAPES_ARCH=native",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wconversion -Werror")
    run(cmake, "--build", work / "build")
    camera = work / "build/camera"
    for index, shape in enumerate(SHAPES):
        image = tensors.values_of(*tensors.read(str(root / f"examples/shapes_classifier/test_data_set_{index}/input_0.pb"))[1:])
        frames = frame(image, 1, 0) + frame(image, 5, 40) + frame(image, 3, 0, b"# a comment\n")
        lines = [line.split() for line in run(camera, data=frames).stdout.decode().splitlines()]
        print(lines)
        assert [line[0] for line in lines] == ["0", "1", "2"], lines
        # The closest calls of each class: where the network is not sure, nothing is named.
        assert all(line[1] in (shape, "-") for line in lines) and lines[0][2] == lines[1][2] == lines[2][2], lines
    square = [0.0] * (3 * SIDE * SIDE)
    for c in range(3):
        for y in range(9, 23):
            square[c * SIDE * SIDE + y * SIDE + 9:c * SIDE * SIDE + y * SIDE + 23] = [1.0] * 14
    lines = [line.split() for line in run(camera, data=frame(square, 10, 160) * 4).stdout.decode().splitlines()]
    print(lines)
    assert [line[1] for line in lines] == ["square"] * 4 and float(lines[3][2]) > 0.9, lines
    for wrong in (b"P5\n32 32\n255\n", b"P6\n16 16\n255\n", b"P6\n32 32\n65535\n", b"P6\n999999 32\n255\n", frame(square, 1, 0)[:-1], b"\n"):
        assert b"is no binary PPM" in run(camera, data=wrong, status=1).stderr, wrong[:20]
    assert run(camera).stdout == b""
    return 0


if __name__ == "__main__":
    sys.exit(main())
