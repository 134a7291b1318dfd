"""The tritonserver in the nvidia-pytriton wheel: its parts, its command line, and who may change it."""

import os
import re
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from server.cache import made_once
from server.errors import SetUpError
from server.interpreter import find_libpython, lack, this
from server.spec import CHECKOUT, ROOT

REQUIREMENT = "requirements-triton.txt"


def how_to_install(checkout: bool = CHECKOUT, file: Path = ROOT / REQUIREMENT) -> str:
    """The command; an installed package names what stands in the file. An image of the service has none."""
    if checkout or not file.exists():
        return f"run `pip install --no-deps -r {REQUIREMENT}`"
    pinned = [line.partition(";")[0].strip() for line in file.read_text().splitlines() if line[:1] != "#"]
    return f"run `pip install --no-deps {' '.join(pinned)}`"


INSTALL = how_to_install()
LIBRARIES = "libraries"
REQUESTS_A_FILE = 100
"""One request per file would cost the server half a millisecond each; a hundred per file, almost nothing.

A file that is not full is written when the server gets trace settings, even the same ones again.
"""
SELDOM = (1 << 31) - 1
"""Of so many requests without a traceparent one is traced; 0 is no rate."""
VARIABLE = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`, as after the colon of tritonserver's own options; server/embedded/guard.py hides it."""
NAME = "inferswarm-control"
APIS = "model-repository,shared-memory,trace,logging"
"""All that change the server, or make it read and write files."""
FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[A-Za-z0-9._~+/-]{16,256}")


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


def make_backends(wheel: Wheel) -> Path:
    """A backend directory whose Python backend has our Python's stub and, in LIBRARIES, its library."""
    major, minor = wheel.stub.parent.name.split(".")
    shipped = wheel.libraries.glob(f"libpython{major}-*.{minor}.so.*")
    names = (wheel.libpython.name, *(path.name for path in shipped))

    def fill(folder: Path) -> None:
        (folder / "python").mkdir()
        for file in wheel.backend.iterdir():
            if file.is_file():
                (folder / "python" / file.name).symlink_to(file)
        # No link: the loader would look beside what it leads to first, and find another Python in the wheel.
        shutil.copy2(wheel.stub, folder / "python")
        (folder / LIBRARIES).mkdir()
        for name in names:
            (folder / LIBRARIES / name).symlink_to(wheel.libpython)

    made_of = [wheel.stub, wheel.stub.stat().st_mtime_ns, wheel.libpython, *names]
    return made_once("triton/backends", repr(made_of).encode(), fill)


def triton_command(
    wheel: Wheel,
    repository: Path,
    backends: Path,
    host: str,
    ports: list[int],
    shared_memory: str,
    model_control: bool,
) -> list[str]:
    """The command that serves one repository on its HTTP, gRPC and metrics ports.

    All models are loaded at the start; with `model_control` also when asked to, as with another queue delay.
    The response cache stays off, which is tritonserver's default: every request is computed.
    """
    kinds = ("http", "grpc", "metrics")
    return [
        str(wheel.server),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        "--disable-auto-complete-config",
        *(("--model-control-mode=explicit", "--load-model=*") if model_control else ()),
        *(f"--{option}={APIS}:${VARIABLE}" for option in ("http-restricted-api", "grpc-restricted-protocol")),
        "--exit-timeout-secs=3",
        *(f"--{kind}-address={host}" for kind in kinds),
        *(f"--{kind}-port={port}" for kind, port in zip(kinds, ports, strict=True)),
        "--metrics-interval-ms=1000",
        f"--backend-config=python,shm-region-prefix-name={shared_memory}",
    ]


def triton_environment(wheel: Wheel, backends: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with what the Python backend's stubs need to find this Python and its packages.

    A stub ignores PYTHONPATH and PYTHONHOME; it takes the packages of the first `python3` on PATH.
    """
    libraries = [str(backends / LIBRARIES), str(wheel.libraries), environ.get("LD_LIBRARY_PATH", "")]
    return {
        **environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }


def trace_file(folder: Path, engine: str) -> Path:
    """What the names of one server's trace files begin with, before `.0`, `.1`, …; old ones are removed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{engine}.json"
    for old in folder.glob(f"{file.name}.*"):
        if old.suffix[1:].isdigit():
            old.unlink()
    return file


def trace_options(file: Path) -> list[str]:
    """tritonserver's options to trace when each request was received, queued, computed and answered."""
    own = (f"triton,file={file}", f"triton,log-frequency={REQUESTS_A_FILE}")
    return [f"--trace-config={setting}" for setting in (*own, "rate=1", "level=TIMESTAMPS", "count=-1")]


def span_options(url: str, engine: str) -> list[str]:
    """tritonserver's options to send OpenTelemetry spans of the requests that carry a traceparent, to `url`.

    It traces such a request whatever its rate, and of the others, which carry none, no more than it must.
    """
    own = (f"url={url}", f"resource=service.name=triton-{engine}", "bsp_schedule_delay=1000")
    rate = ("mode=opentelemetry", f"rate={SELDOM}", "level=TIMESTAMPS", "count=-1")
    return [f"--trace-config={setting}" for setting in (*rate, *(f"opentelemetry,{one}" for one in own))]


def secret(environ: Mapping[str, str]) -> str:
    """What a client must send to change a server: the given secret, or a new random one that nobody knows.

    To load a model is to run code, and any page in a browser, and every user of the machine, reaches
    loopback. SetUpError where what was given is none.
    """
    given = environ.get(VARIABLE) or f"{NAME}={secrets.token_hex(32)}"
    if not FORM.fullmatch(given):
        raise SetUpError(
            f"{VARIABLE} is not valid: it takes NAME=VALUE, the name of letters, digits and -, the value of "
            "16 letters and digits or more, e.g. control=$(openssl rand -hex 32)."
        )
    return given


def is_seen(pid: int) -> bool:
    """Whether the secret stands in the command line of a process, where every user may read it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    shown = [f"--http-restricted-api={APIS}:".encode(), f":${VARIABLE}".encode()]
    return any(word.startswith(shown[0]) and not word.endswith(shown[1]) for word in words)
