"""`python -m server doctor`: whether this machine can run the embedded servers, and what it lacks."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

from server.errors import SetUpError
from server.gpu import read_gpus
from server.wheel import find_wheel

PACKAGES = ("torch", "open_clip_torch", "onnxruntime", "openvino", "nvidia-pytriton", "numpy", "fastapi")


def main(argv: list[str]) -> int:
    """Print what was found, one line each; 2 where something is missing."""
    argparse.ArgumentParser(prog="python -m server doctor", description=__doc__).parse_args(argv)
    print(f"python        {platform.python_version()} on {platform.system()} {platform.machine()}")
    missing = []
    for package in PACKAGES:
        try:
            print(f"{package:13} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
            print(f"{package:13} missing: run `pip install -r requirements.txt`")
    print(f"GPU           {', '.join(gpu.name for gpu in read_gpus()) or 'none'}")
    try:
        wheel = find_wheel()
    except SetUpError as error:
        print(f"tritonserver  {error}")
        return 2
    print(f"tritonserver  {wheel.server}\nlibpython     {wheel.libpython}")
    return 2 if missing else 0
