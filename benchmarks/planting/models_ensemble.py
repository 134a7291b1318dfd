"""The real tritonserver with an ensemble of ours whose first step, the decoder, is slow, or becomes so."""

from __future__ import annotations

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
ENSEMBLE = "emulated_jpeg"


@contextmanager
def ensemble(model: str, decoder: Path, behind: Behind) -> Iterator[int]:
    """The HTTP port of a tritonserver with a decoder, and a model as `--emulate` understands `model`."""
    repository = partial(lay_out, behind.folder / "models", model, decoder)
    ready = f"/v2/models/{ENSEMBLE}/ready"
    with tritonserver(behind.folder, repository, behind.host, ready) as addresses:
        yield int(addresses.http.rpartition(":")[2])


def lay_out(folder: Path, model: str, decoder: Path) -> Path:
    """The repository that `up --emulate … --payloads fp32,jpeg` makes, with another decoder in it."""
    ours = make_repository("emulated", 0, 1, profile_of(model).parameters(), (FP32, "jpeg"))
    shutil.copytree(ours, folder)
    shutil.copy2(decoder, folder / "decode_jpeg" / "1")
    return folder
