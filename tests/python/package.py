"""What the tests of the Python package share: the package of this source tree, models of a few nodes, a cache of the test's."""

import contextlib
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "project"), str(ROOT / "python")]

import support  # noqa: E402  pylint: disable=wrong-import-position

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
# Quick to compile: what is tested is the package.
QUICK = {"variables": {"CXXFLAGS": "-O0"}}


def model(text):
    """ONNX text as `gcompile` takes it from standard input."""
    return (HEAD + text).encode()


def package(world):
    """The module gcompile, with the tool under test and a cache of this test's own."""
    os.environ["GCOMPILE_EXECUTABLE"] = world.gcompile
    os.environ["GCOMPILE_CACHE"] = str(world.path("cache"))
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    try:
        import gcompile  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise support.Skip(f"{sys.executable} lacks {error.name}: scripts/install_packages.sh test installs it") from None
    return gcompile


def run(world, code, *words, status=0):
    """`code` in a process of its own, which sees the same package and cache; returns what it prints."""
    done = world.run([sys.executable, "-c", code, *words], status=status, env=dict(os.environ))
    return done.stdout.strip()


@contextlib.contextmanager
def refused(kind, *words):
    """Holds where the block raises an exception of that kind, whose text has the words."""
    try:
        yield
    except kind as error:
        support.contains(str(error), *words)
    else:
        raise support.Failure(f"nothing was refused: {words}")
