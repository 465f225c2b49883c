"""Builds the Python package: gcompile/ with the tool in it. PEP 517, with nothing but the standard library.

The tool is compiled by CMake in build/wheel, where the next build finds it again, unless the environment variable
GCOMPILE_EXECUTABLE names one. It links with ONNX, protobuf and fmt as the system has them.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "Turns ONNX models into C++ and CUDA projects that stand alone"
# Archives hold no time of day: the same sources give the same package.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def version():
    """The version of project() in CMakeLists.txt, the one place that has it."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(gcompile VERSION ([0-9.]+)", text, re.MULTILINE)[1]


def tool():
    given = os.environ.get("GCOMPILE_EXECUTABLE")
    if given:
        return pathlib.Path(given).read_bytes()
    build = ROOT / "build" / "wheel"
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DGCOMPILE_TESTS=OFF"], check=True)
    subprocess.run(["cmake", "--build", build, "--target", "gcompile", "--parallel", str(os.cpu_count() or 1)], check=True)
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "gcompile"
        subprocess.run(["strip", "-o", stripped, build / "gcompile"], check=True)
        return stripped.read_bytes()


def metadata():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: gcompile\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
            f"Requires-Python: >=3.9\nRequires-Dist: numpy\nDescription-Content-Type: text/markdown\n\n{readme}")


def platform_tag():
    return "py3-none-" + re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())


def record_row(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def info_files():
    """What installers read of the package, by path."""
    info = f"gcompile-{version()}.dist-info"
    return {
        f"{info}/METADATA": metadata().encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: gcompile\nRoot-Is-Purelib: false\nTag: {platform_tag()}\n".encode(),
        f"{info}/entry_points.txt": (b"[console_scripts]\ngcompile = gcompile.tool:main\n\n"
                                      b"[torch_dynamo_backends]\ngcompile = gcompile.torch_backend:compile_graph\n"),
        f"{info}/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this, an installer would build the tool to learn what the package is called."""
    for path, content in info_files().items():
        place = pathlib.Path(metadata_directory) / path
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    return f"gcompile-{version()}.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"gcompile/{path.name}": path.read_bytes()
             for path in sorted((ROOT / "python" / "gcompile").iterdir()) if path.suffix in (".py", ".cpp", ".typed")}
    files["gcompile/bin/gcompile"] = tool()
    files.update(info_files())
    rows = "".join(record_row(path, content) for path, content in files.items())
    record = f"gcompile-{version()}.dist-info/RECORD"
    files[record] = (rows + f"{record},,\n").encode()
    name = f"gcompile-{version()}-{platform_tag()}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            member = zipfile.ZipInfo(path, ZIP_TIME)
            member.external_attr = (0o100755 if path.endswith("/bin/gcompile") else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(member, content)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """The files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    stem = f"gcompile-{version()}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(filter(None, listed.decode().split("\0"))):
            archive.add(ROOT / name, f"{stem}/{name}", recursive=False)
        content = metadata().encode()
        member = tarfile.TarInfo(f"{stem}/PKG-INFO")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return f"{stem}.tar.gz"
