#!/usr/bin/env python3
"""What the machine does to gcompile: full disks, mount points, folders of the system, limits of memory and files.

    machine_limits.py --gcompile GCOMPILE [CASE...]
"""

import contextlib
import os
import resource

from errors import nothing_left
from onnx_bytes import FLOAT, INT64, Graph, shape_flags
from support import (EXAMPLES, Skip, check, contains, equal, run_main, tree)

MODEL, USAGE, FILES, INTERRUPTED = 1, 2, 4, 130
CLASSIFIER = EXAMPLES / "shapes_classifier" / "model.onnx"


@contextlib.contextmanager
def small_disk(world, kilobytes):
    place = world.path("disk")
    place.mkdir()
    if os.geteuid() != 0:
        raise Skip("mounting a small disk needs root")
    done = world.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place], status=None)
    if done.returncode != 0:
        raise Skip(f"no small disk can be mounted: {done.stderr.strip()}")
    try:
        yield place
    finally:
        world.run(["umount", place])


def case_disk_full(world):
    """No space for the project: exit code 4, and what was there before stays whole."""
    with small_disk(world, 896) as disk:
        world.compile(CLASSIFIER, disk / "project")
        before = tree(disk / "project")
        filler = disk / "filler"
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        filler.write_bytes(bytes(max(0, free - 40 * 1024)))
        for flags in ([], ["--name", "other", "--weights", "array"]):
            done = world.run([world.gcompile, EXAMPLES / "tiny_attention" / "model.onnx", "-o", disk / "project",
                              *flags], status=FILES)
            contains(done.stderr, "No space left")
            equal(tree(disk / "project"), before, "the project that was there")
            equal(sorted(path.name for path in disk.iterdir()), ["filler", "project"], "what lies on the disk")


def in_own_mounts(world, script, *arguments):
    """Runs a shell script where it may mount what it likes and nobody else sees it."""
    if world.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], status=None).returncode != 0:
        raise Skip("no mount namespace of one's own is permitted here")
    return world.run(["unshare", "-m", "sh", "-euc", script, "sh", world.gcompile, CLASSIFIER, *arguments]).stdout


def case_mount_points(world):
    """A mounted folder keeps its place and its files: a disk of its own, and a bind mount of the same disk."""
    script = """
        mkdir "$3/disk" "$3/behind" "$3/bound"
        mount -t tmpfs none "$3/disk"
        mount --bind "$3/behind" "$3/bound"
        for place in "$3/disk" "$3/bound"; do
            "$1" "$2" -o "$place" -q --name first
            echo mine >"$place/notes.txt"
            "$1" "$2" -o "$place" -q --name second
            cat "$place/notes.txt"
            ls "$place/meta"
            ls -A "$place" | grep gcompile || true
        done
        ls "$3/behind/meta"
        ls -A "$3"
        """
    said = in_own_mounts(world, script, world.folder)
    equal(said.split(), ["mine", "second.json", "mine", "second.json", "second.json", "behind", "bound", "disk"],
          "what the mounts hold")


def case_system_folders(world):
    """Refused, whatever the flags; on empty disks mounted over the real folders, which nothing can reach."""
    script = """
        for place in /opt /usr/local /var/tmp "$3"; do
            mount -t tmpfs none "$place"
            echo mine >"$place/notes.txt"
            for flag in -q --force; do
                HOME="$3" "$1" "$2" -o "$place" $flag 2>&1 | grep -o "name a directory below it" || true
            done
            ls -A "$place"
        done
        """
    home = world.path("home")
    home.mkdir()
    equal(in_own_mounts(world, script, home), ("name a directory below it\n" * 2 + "notes.txt\n") * 4, "what is said")


def case_file_size_limit(world):
    """A limit on the size of files (ulimit -f) is an error like a full disk: the tool is not killed."""
    project = world.path("project")
    world.compile(CLASSIFIER, project)
    before = tree(project)
    limit = (resource.RLIMIT_FSIZE, (20_000, 20_000))
    saved = world.path("saved.onnx")
    saved.write_text("the one before", encoding="utf-8")
    for command in (["-o", project, "--name", "other"], ["-o", project, "--name", "other", "--force"],
                    ["-o", world.path("fresh")], ["-o", world.path("fresh"), "--save-onnx", saved]):
        (project / "notes.txt").write_text("mine", encoding="utf-8")  # files are replaced one by one
        done = world.run([world.gcompile, CLASSIFIER, *command], status=FILES,
                         preexec_fn=lambda: resource.setrlimit(*limit))
        contains(done.stderr, "File too large")
        equal((project / "notes.txt").read_text(encoding="utf-8"), "mine", "the user's file")
        (project / "notes.txt").unlink()
        equal(tree(project), before, "the project that was there")
        equal(saved.read_text(encoding="utf-8"), "the one before", "the model that was there")
        equal(sorted(path.name for path in world.folder.iterdir()), ["project", "saved.onnx"], "what is left")


FAILING_MALLOC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
void *__libc_malloc(size_t);
static long left = -1, count;
__attribute__((constructor)) static void begin(void) {
  const char *const text = getenv("FAIL_FROM");
  if (text != NULL) left = atol(text);
}
__attribute__((destructor)) static void end(void) {
  const char *const path = getenv("COUNT_INTO");
  FILE *const file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) { fprintf(file, "%ld", count); fclose(file); }
}
void *malloc(size_t size) {
  ++count;
  if (left == 0) { errno = ENOMEM; return NULL; }
  if (left > 0) --left;
  return __libc_malloc(size);
}
"""


def case_out_of_memory(world):
    """No more memory, for good, at sixty points between the first line and the last: said in words, never a crash, and
    what was there before stays whole."""
    shim = world.path("malloc.so")
    world.path("malloc.c").write_text(FAILING_MALLOC, encoding="utf-8")
    world.run(["cc", "-shared", "-fPIC", "-O1", world.path("malloc.c"), "-o", shim])
    project = world.path("project")
    world.compile(CLASSIFIER, project)
    (project / "notes.txt").write_text("mine", encoding="utf-8")
    before = tree(project)

    def allocations(*command):
        world.run([world.gcompile, *command],
                  env={**os.environ, "LD_PRELOAD": str(shim), "COUNT_INTO": str(world.path("count"))})
        return int(world.path("count").read_text(encoding="utf-8"))

    # What is allocated before the first line of main() belongs to the libraries.
    first = allocations("--version")
    last = allocations(CLASSIFIER, "-o", world.path("other"), "-q")
    check(last > 10 * first, f"{first} and {last} allocations")
    failed = 0
    for step in range(60):
        at = first + (last - first) * step // 60
        done = world.run([world.gcompile, CLASSIFIER, "-o", project, "--name", "other", "-q"], status=None,
                         env={**os.environ, "LD_PRELOAD": str(shim), "FAIL_FROM": str(at)})
        check(done.returncode in (0, FILES), f"exit code {done.returncode} at allocation {at}: {done.stderr}")
        if done.returncode == 0:
            continue
        failed += 1
        contains(done.stderr, "out of memory")
        equal((project / "notes.txt").read_text(encoding="utf-8"), "mine", "the user's file")
    check(failed > 40, f"memory ran out {failed} times")
    # The next run undoes what the last one could not.
    world.compile(CLASSIFIER, project)
    equal(tree(project), before, "the project after all")
    equal([path.name for path in world.folder.iterdir() if path.name.startswith(".")], [], "what is left")


def case_address_space(world):
    """The same by a limit on address space (ulimit -v); here there is enough left to clean up."""
    if "libasan" in world.run(["ldd", world.gcompile]).stdout:
        raise Skip("AddressSanitizer needs the whole address space")
    graph = Graph("large")
    x = graph.input("x", FLOAT, [1, 1024])
    graph.node("MatMul", [x, graph.constant("w", FLOAT, [1024, 2048], [0.5, 0.25] * (1 << 20))], ["y"])
    graph.output("y", FLOAT, [1, 2048])
    model = world.path("large.onnx")
    model.write_bytes(graph.model())
    told = 0
    for megabytes in range(20, 400, 10):
        size = megabytes << 20
        limited = {"preexec_fn": lambda size=size: resource.setrlimit(resource.RLIMIT_AS, (size, size))}
        if world.run([world.gcompile, "--version"], status=None, **limited).returncode != 0:
            continue  # not even the libraries fit
        done = world.run([world.gcompile, model, "-o", world.path("p"), "-q"],
                         status=None, **limited)
        check(done.returncode in (0, FILES), f"exit code {done.returncode} at {megabytes} MiB: {done.stderr}")
        if done.returncode == 0:
            break
        told += 1
        contains(done.stderr, "out of memory")
        nothing_left(world, ["large.onnx"])
    check(told > 0, "memory never ran out")


def case_unwritable(world):
    """The output's place is a file, or below one."""
    world.path("file").write_text("mine", encoding="utf-8")
    for place in ("file", "file/below"):
        world.compile(CLASSIFIER, world.path(place), status=FILES)
    equal(world.path("file").read_text(encoding="utf-8"), "mine", "the file")
    nothing_left(world, ["file"])


if __name__ == "__main__":
    run_main(globals())
