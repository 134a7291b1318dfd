"""Where the nvidia-pytriton wheel keeps tritonserver, and what this machine must have to run it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from server.errors import SetUpError
from server.interpreter import find_libpython, lack, this

INSTALL = "run `pip install --no-deps -r requirements-triton.txt`"


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
    of = this()
    if missing := lack(of):
        raise SetUpError(missing)
    package = find_spec("pytriton")
    if package is None or package.origin is None:
        raise SetUpError(f"tritonserver is not installed: {INSTALL}.")
    folder = Path(package.origin).parent
    server = folder / "tritonserver" / "bin" / "tritonserver"
    stub = folder / "tritonserver" / "python_backend_stubs" / of.minor / "triton_python_backend_stub"
    backend = folder / "tritonserver" / "backends" / "python"
    for path in (server, stub, backend / "libtriton_python.so"):
        if not path.exists():
            raise SetUpError(
                f"nvidia-pytriton has no {path.name} for Python {of.minor}: {INSTALL} --force-reinstall."
            )
    return Wheel(server, stub, backend, folder.parent / "nvidia_pytriton.libs", find_libpython(of))
