#!/usr/bin/env python3
"""Builds examples/cuda_server over the emulator of the CUDA runtime, and asks it.

    cuda_server.py GCOMPILE SOURCE_DIR CXX WORK_DIR

Exit: 0 all answers are right, in the order of the requests, whatever the number of lanes; 1 not.
"""

import pathlib
import shutil
import subprocess
import sys

LETTERS = " ()abcdef"
ANSWERS = ["balanced", "unclosed", "unexpected"]


def run(*command, text=None, status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300, input=text)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done


def main():
    gcompile, root, cxx, work = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3].split(), pathlib.Path(sys.argv[4])
    sys.path.insert(0, str(root / "scripts"))
    import tensors
    shutil.rmtree(work, ignore_errors=True)
    project = work / "brackets"
    run(gcompile, root / "examples/tiny_attention/model.onnx", "--target", "cuda", "--name", "brackets", "-q", "-o", project)
    emulator = root / "runtime_stub/emulator"
    flags = (root / "runtime_stub/flags/cpp.txt").read_text().split()
    objects = []
    for source in [root / "examples/cuda_server/main.cpp", *sorted((project / "src").glob("*.cu")), *sorted(emulator.glob("*.cc"))]:
        objects.append(work / f"{source.name}.o")
        run(*cxx, "-std=c++17", "-O1", *flags, "-pthread", *(["-Wall", "-Wextra", "-Werror"] if source.name == "main.cpp" else []),
            f"-I{emulator}", f"-I{project}", f"-I{project}/include", "-x", "c++", "-c", source, "-o", objects[-1])
    run("cc", f"-I{project}/data", "-c", project / "src/brackets_weights.S", "-o", work / "weights.o")
    run(*cxx, "-pthread", *objects, work / "weights.o", "-o", work / "server")
    requests = []
    for index, answer in enumerate(ANSWERS):
        tokens = tensors.values_of(*tensors.read(str(root / f"examples/tiny_attention/test_data_set_{index}/input_0.pb"))[1:])
        requests.append((answer, "".join(LETTERS[int(token)] for token in tokens)))
    requests = (requests * 3)[:7]
    expected = [f"{answer} {text}" for answer, text in requests]
    for lanes in ("1", "3"):
        said = run(work / "server", lanes, text="".join(text + "\n" for _, text in requests)).stdout.splitlines()
        print(lanes, said)
        assert said == expected, (said, expected)
    assert run(work / "server", text="").stdout == ""
    assert "usage" in run(work / "server", "0", status=1).stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
