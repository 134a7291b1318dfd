"""The strangers as their users would describe them: by a URL, or by a file of examples/endpoints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.strange_servers.golden import CLIP, SIGLIP
from server.spec import ROOT

EXAMPLES = ROOT / "examples" / "endpoints"
TRITON = "triton"
URL = re.compile(r'(?m)^(url = "http://)[^/"]+')
TOML = ".toml"


@dataclass(frozen=True)
class Stranger:
    """A model of a server.

    `target`: a URL in which `{http}` and `{grpc}` stand for addresses, or the name of a file. `options`: what
    a study is told besides. `right`: which vectors its own must be.
    """

    name: str
    server: str
    target: str
    options: tuple[str, ...] = ()
    right: str = CLIP


def of_triton(name: str, model: str, *options: str, right: str = CLIP) -> tuple[Stranger, Stranger]:
    """One of tritonserver's models, over HTTP and over gRPC."""
    http, grpc = (
        Stranger(f"triton-{name}-{wire}", TRITON, f"triton+{wire}://{{{wire}}}/{model}", options, right)
        for wire in ("http", "grpc")
    )
    return http, grpc


STRANGERS = (
    Stranger("litserve", "litserve", "litserve.toml"),
    Stranger("bentoml", "bentoml", "bentoml.toml"),
    Stranger("mosec", "mosec", "mosec.toml"),
    Stranger("ray-serve", "ray-serve", "ray-serve.toml"),
    Stranger("mlserver-http", "mlserver", "v2+http://{http}/clip"),
    Stranger("mlserver-grpc", "mlserver", "v2+grpc://{grpc}/clip"),
    *of_triton("fp16-nhwc", "siglip_fp16", "--prepare", "siglip", right=SIGLIP),
    *of_triton("jpeg", "clip_jpeg"),
    *of_triton("padded", "clip_padded"),
    *of_triton("unbatched", "clip_unbatched", "--shape", "pixels=B,3,224,224"),
)


def target_of(stranger: Stranger, http: str, grpc: str, folder: Path) -> tuple[str, int]:
    """What `--endpoint` is given, and how many lines that has in a file: 0 for a URL.

    A file is copied to `folder` with the server's address in the example's place.
    """
    if not stranger.target.endswith(TOML):
        return stranger.target.format(http=http, grpc=grpc), 0
    text = (EXAMPLES / stranger.target).read_text()
    moved, places = URL.subn(rf"\g<1>{http}", text)
    if places != 1:
        raise ValueError(f'{stranger.target} has {places} lines that begin with `url = "http://`')
    copy = folder / stranger.target
    copy.write_text(moved)
    return str(copy), len(text.splitlines())
