"""The real tritonserver with other code for a model of ours: a slow decoder, or a lock of all instances."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.planting.setup import Behind
from benchmarks.tritonserver import tritonserver
from server.embedded.options import profile_of
from server.spec import FP32
from server.triton.repository import make_repository

TRITON = Path(__file__).with_name("triton")
SLOW, HEATING = TRITON / "decode_jpeg" / "1" / "model.py", TRITON / "heating" / "1" / "model.py"
"""In the place of triton_repo's decoder: one instance, as there, and 20 ms an image; from 20 s on 80 ms."""
BATCHER = re.compile(r"dynamic_batching \{[^}]*\}")
LOCKED = TRITON / "locked" / "1" / "model.py"
"""In that of its emulated model: 2 ms beside others, and then 11.5 ms of one instance at a time."""
ENSEMBLE = "emulated_jpeg"


@contextmanager
def ensemble(model: str, decoder: Path, behind: Behind) -> Iterator[int]:
    """The HTTP port of a tritonserver with a decoder, and a model as `--emulate` understands `model`."""
    made = make_repository("emulated", 0, 1, profile_of(model).parameters(), (FP32, "jpeg"))
    with served(made, ENSEMBLE, decoder, "decode_jpeg", behind) as port:
        yield port


@contextmanager
def locked(behind: Behind) -> Iterator[int]:
    """The same of the emulated model with two instances, which share a lock, and without a batcher."""
    made = make_repository("emulated", 0, 2, profile_of("1+0").parameters(), (FP32,))
    ours = shutil.copytree(made, behind.folder / "without-batcher")
    config = ours / "emulated" / "config.pbtxt"
    config.write_text(BATCHER.sub("", config.read_text()))
    with served(ours, "emulated", LOCKED, "emulated", behind) as port:
        yield port


@contextmanager
def served(made: Path, asked: str, code: Path, model: str, behind: Behind) -> Iterator[int]:
    """The HTTP port of a tritonserver with a repository of ours, but for the code of one of its models."""
    ready = f"/v2/models/{asked}/ready"
    repository = partial(lay_out, behind.folder / "models", made, code, model)
    with tritonserver(behind.folder, repository, behind.host, ready) as addresses:
        yield int(addresses.http.rpartition(":")[2])


def lay_out(folder: Path, made: Path, code: Path, model: str) -> Path:
    """A copy of a repository with other code for one of its models."""
    shutil.copytree(made, folder)
    shutil.copy2(code, folder / model / "1")
    return folder
