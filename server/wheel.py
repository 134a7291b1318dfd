"""Where the nvidia-pytriton wheel keeps tritonserver, and what this machine must have to run it."""

from __future__ import annotations

import platform
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from server.errors import SetUpError

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Wheel:
    """The parts of tritonserver that a model repository needs to be served."""

    server: Path
    stub: Path
    backend: Path
    """The folder with the Python backend's library and utilities."""
    libraries: Path
    libpython: Path


def find_wheel() -> Wheel:
    """Find tritonserver; SetUpError says in one sentence what is missing and what to do about it."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SetUpError(
            "tritonserver's wheel runs on Linux x86-64 only: give the URLs of servers elsewhere, "
            "or start the PyTorch service alone with --only pytorch."
        )
    package = find_spec("pytriton")
    if package is None or package.origin is None:
        raise SetUpError("tritonserver is not installed: run `pip install -r requirements.txt`.")
    folder = Path(package.origin).parent
    server = folder / "tritonserver" / "bin" / "tritonserver"
    stub = folder / "tritonserver" / "python_backend_stubs" / PYTHON / "triton_python_backend_stub"
    backend = folder / "tritonserver" / "backends" / "python"
    for path in (server, stub, backend / "libtriton_python.so"):
        if not path.exists():
            raise SetUpError(
                f"nvidia-pytriton has no {path.name} for Python {PYTHON}: use Python 3.11 or 3.12 and "
                "run `pip install --force-reinstall -r requirements.txt`."
            )
    _check_numpy()
    return Wheel(server, stub, backend, folder.parent / "nvidia_pytriton.libs", find_libpython())


def find_libpython() -> Path:
    """The shared library of this very Python, which tritonserver's Python backend embeds."""
    name = f"libpython{PYTHON}.so.1.0"
    configured = [str(sysconfig.get_config_var(key) or "") for key in ("LIBDIR", "MULTIARCH")]
    folders = [Path(configured[0]), Path(configured[0], configured[1]), Path(sys.base_prefix, "lib")]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise SetUpError(
        f"this Python was built without {name}, which tritonserver needs: use one that has it "
        f"(a distribution's python{PYTHON} with libpython{PYTHON}, or pyenv's with --enable-shared)."
    )


def _check_numpy() -> None:
    try:
        numpy = version("numpy")
    except PackageNotFoundError:
        numpy = "0"
    if int(numpy.split(".")[0]) != 1:
        raise SetUpError(
            f"numpy is {numpy}, and tritonserver's Python backend returns empty tensors with 2 or later: "
            "run `pip install -r requirements.txt`."
        )
