"""`python -m server doctor`: whether this machine can run the embedded servers, and what it lacks."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

from server.errors import SetUpError
from server.gpu import read_gpus
from server.wheel import find_wheel

PACKAGES = (
    "torch",
    "open_clip_torch",
    "onnx",
    "onnxruntime",
    "openvino",
    "nvidia-pytriton",
    "numpy",
    "fastapi",
    "uvicorn",
)
GPU_PACKAGE = "nvidia-ml-py"
INSTALL = "missing: run `pip install -r requirements.txt`"


def main(argv: list[str]) -> int:
    """Print what was found, one line each; 2 where something is missing that the servers need."""
    argparse.ArgumentParser(prog="python -m server doctor", description=__doc__).parse_args(argv)
    _say("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    versions = {package: installed(package) for package in PACKAGES}
    for package, found in versions.items():
        _say(package, found or INSTALL)
    _say(GPU_PACKAGE, installed(GPU_PACKAGE) or f"{INSTALL}; until then no GPU is seen")
    _say("GPU", ", ".join(gpu.name for gpu in read_gpus()) or "none")
    try:
        wheel = find_wheel()
    except SetUpError as error:
        _say("tritonserver", str(error))
        return 2
    _say("tritonserver", str(wheel.server))
    _say("libpython", str(wheel.libpython))
    return 0 if all(versions.values()) else 2


def installed(package: str) -> str | None:
    """A package's version, or None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _say(what: str, found: str) -> None:
    print(f"{what:15} {found}")
