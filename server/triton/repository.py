"""The run-time copies of triton_repo and of the wheel's Python backend, and tritonserver's command line."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from server.cache import cache
from server.spec import ROOT
from server.triton.ensembles import FP32, model_files, payload_files
from server.triton.model_control import restrictions
from server.triton.wheel import Wheel

QUEUE_DELAY = re.compile(r"(max_queue_delay_microseconds:\s*)\d+")
INSTANCES = re.compile(r"(instance_group.*count:\s*)\d+")
NULL = "null"
LIBRARIES = "libraries"
REQUESTS_A_FILE = 100
"""A file for each request would cost the server half a millisecond of each; in hundreds it is not seen.

A file that is not full is written when the server is told its trace settings, even the same ones again.
"""


def render_config(text: str, queue_delay_us: int, instances: int, parameters: Mapping[str, str]) -> str:
    """A config.pbtxt with another queue delay in microseconds, number of instances, and parameters added."""
    text = QUEUE_DELAY.sub(rf"\g<1>{queue_delay_us}", text)
    return with_parameters(INSTANCES.sub(rf"\g<1>{instances}", text), parameters)


def with_parameters(text: str, parameters: Mapping[str, str]) -> str:
    """A config.pbtxt with parameters added at its end."""
    for key, value in parameters.items():
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        text += f'parameters {{ key: "{key}" value {{ string_value: "{quoted}" }} }}\n'
    return text


def make_repository(
    engine: str,
    queue_delay_us: int,
    instances: int,
    parameters: Mapping[str, str],
    payloads: Sequence[str] = (FP32,),
) -> Path:
    """A model repository of triton_repo/`engine`, of what takes `payloads` for it, and of `null`.

    It is kept under a name that says what is in it.
    """
    (own,) = (path.parent for path in (ROOT / "triton_repo" / engine).glob("*/config.pbtxt"))
    rendered = render_config((own / "config.pbtxt").read_text(), queue_delay_us, instances, parameters)
    files = {
        **model_files(own),
        f"{own.name}/config.pbtxt": rendered.encode(),
        **payload_files(own.name, payloads),
        **model_files(ROOT / "triton_repo" / NULL / NULL),
    }

    def fill(folder: Path) -> None:
        for name, data in files.items():
            # Triton wants a version folder of every model, of those without files in it, too.
            (folder / Path(name).parts[0] / "1").mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    contents = b"".join(name.encode() + files[name] for name in sorted(files))
    return _made_once(cache("triton") / f"{engine}-{_short_hash(contents)}", fill)


def make_backends(wheel: Wheel) -> Path:
    """A backend directory whose Python backend has this Python's stub beside its library.

    In its folder LIBRARIES is the shared library of this very Python, by each name that a stub asks for.
    """
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
    return _made_once(cache("triton") / f"backends-{_short_hash(repr(made_of).encode())}", fill)


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
    http, grpc, metrics = ports
    return [
        str(wheel.server),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        "--disable-auto-complete-config",
        *(("--model-control-mode=explicit", "--load-model=*") if model_control else ()),
        *restrictions(),
        "--exit-timeout-secs=3",
        *(f"--{kind}-address={host}" for kind in ("http", "grpc", "metrics")),
        f"--http-port={http}",
        f"--grpc-port={grpc}",
        f"--metrics-port={metrics}",
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


def _made_once(target: Path, fill: Callable[[Path], None]) -> Path:
    # Two commands may make the same folder at once: each fills its own, and the first rename wins.
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        fill(made)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


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
