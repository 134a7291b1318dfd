"""Write the requests that the suite itself would send to files, so that every arm sends the same bytes.

python -m benchmarks.generating.bodies FOLDER
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import users
from benchmarks.generating.kinds import KINDS, MACHINE, PICTURES, TENSORS, Kind
from swarm.hosts.facts import commit
from swarm.hosts.host import ROOT
from swarm.output.results_folder import cpu_model
from users.backends.registry import backends, codec_of
from users.codecs.base import rotation
from users.inputs.images import ImageSet, load_images


def endpoint_of(kind: Kind, address: str) -> users.Endpoint:
    """The endpoint that a kind of request is sent to."""
    preset = backends()["pytorch" if kind.is_service else "onnx"].preset(kind.payload, kind.protocol)
    return replace(preset, address=address, model="" if kind.is_service else kind.model)


def write_bodies(images: ImageSet, kind: Kind, folder: Path) -> None:
    """The pool of one kind, as the suite prepares it."""
    codec = codec_of(endpoint_of(kind, "127.0.0.1:1"))
    place = folder / kind.name
    place.mkdir()
    for number, indices in enumerate(rotation(len(images), kind.batch)):
        prepared = codec.prepare(images, indices)
        (place / f"{number:03d}.body").write_bytes(prepared.body)
        (place / "headers.json").write_text(json.dumps(dict(prepared.headers)))


def write_pictures(images: ImageSet, folder: Path) -> None:
    """The pictures as JPEG files and as one array, float32 of shape [n, 3, 224, 224]."""
    contract = endpoint_of(KINDS["fp32-http"], "127.0.0.1:1").contract
    np.save(folder / TENSORS, images.tensor(contract.inputs[0], contract, range(len(images))))
    (folder / PICTURES).mkdir()
    for number, jpeg in enumerate(images.jpegs):
        (folder / PICTURES / f"{number:03d}.jpg").write_bytes(jpeg)


def main() -> int:
    """Write everything once."""
    folder, images = Path(sys.argv[1]), load_images("")
    write_pictures(images, folder)
    # Asked here: what imports Locust is patched for gevent, and the benchmark's own process is not.
    (folder / MACHINE).write_text(json.dumps({"cpu": cpu_model(), "commit": commit(ROOT)}))
    for kind in KINDS.values():
        write_bodies(images, kind, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
