"""Compressed requests and inputs in shared memory, on a real tritonserver; and servers that refuse them."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from swarm.errors import RunFailedError, UsageError
from swarm.plan.cell import Cell
from swarm.targets.embedded import EmbeddedServers
from swarm.targets.request_forms import RequestForms, prefix
from tests.pictures import image_set
from tests.swarm.wsgi import answering
from users.backends.registry import codec_of
from users.codecs.base import Codec
from users.codecs.compression import Compressed
from users.codecs.v2 import REGIONS, SharedInputs, V2Codec
from users.endpoint import Endpoint
from users.errors import TargetError
from users.redact import CONTROL
from users.transport.base import Reply
from users.transport.transports import client
from users.triton import shared_memory
from users.triton.shared_memory import OWN, opened, remove_left_over

pytestmark = pytest.mark.system

IMAGES = image_set(5)
NOBODY = 4_194_305
"""No process has this number: it is above the kernel's highest."""


@pytest.fixture(scope="module")
def onnx() -> Iterator[dict[str, Endpoint]]:
    """A real tritonserver with a real model, by protocol."""
    servers = EmbeddedServers(lambda text: None)
    try:
        ready = servers.start(["--only", "onnx"])["endpoints"]["onnx"]
        kinds = {"http": "fp32", "grpc": "fp32", "json": "json"}
        yield {
            kind: Endpoint(f"onnx-{kind}", "onnx", protocol, payload, ready[protocol], ready["model"])  # type: ignore[arg-type]
            for kind, payload in kinds.items()
            for protocol in ["grpc" if kind == "grpc" else "http"]
        }
    finally:
        servers.stop()


def ours() -> list[Path]:
    return sorted(REGIONS.glob(f"{prefix()}-*"))


def asked(codec: Codec, indices: tuple[int, ...], by_library: bool = False) -> Reply:
    with client(codec, 60, by_library=by_library) as user:
        return user.send(codec.prepare(IMAGES, indices))


@pytest.mark.parametrize("by_library", [False, True])
@pytest.mark.parametrize("compression", ["gzip", "deflate"])
@pytest.mark.parametrize("kind", ["http", "grpc", "json"])
def test_a_compressed_request_has_the_same_answer(
    onnx: dict[str, Endpoint], kind: str, compression: str, by_library: bool
) -> None:
    codec = codec_of(onnx[kind])
    plain = asked(codec, (0, 3), by_library)
    packed = asked(Compressed(codec, compression, by_library), (0, 3), by_library)
    assert np.allclose(packed.embeddings, plain.embeddings, atol=1e-5)
    assert abs(plain.embeddings[0] @ plain.embeddings[1]) < 0.999, "two pictures differ"
    # Triton compresses its answers over HTTP alone.
    assert (packed.response_bytes < plain.response_bytes) is (kind != "grpc")


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_inputs_in_shared_memory_have_the_same_answers(onnx: dict[str, Endpoint], kind: str) -> None:
    """By two workers that know no more than the region's name; answers come over the wire."""
    cell, forms = Cell(onnx[kind], 3, 8, 10, 1.0, shared_memory="system"), RequestForms()
    forms.check([cell], IMAGES)
    assert ours() == [], "a trial leaves nothing"
    forms.apply(cell, IMAGES)
    (made,) = ours()
    assert made.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        codec = codec_of(onnx[kind])
        assert isinstance(codec, V2Codec)
        codec.shared = SharedInputs.of(codec.endpoint.contract, prefix(), cell.name, IMAGES, cell.batch)
        for indices in ((0,), (2, 3), (4, 0, 1)):
            reply = asked(codec, indices)
            assert np.allclose(reply.embeddings, asked(codec_of(onnx[kind]), indices).embeddings, atol=1e-5)
            assert reply.response_bytes >= 2_048 * len(indices)
    forms.apply(Cell(onnx[kind], 1, 8, 10, 1.0), IMAGES)
    assert ours() == []
    with opened(onnx[kind]) as api:
        assert api.regions() == [], "the next cell has none"


def test_cells_that_run_together_have_their_regions_together(onnx: dict[str, Endpoint]) -> None:
    both = [
        Cell(onnx[kind], 1, 1, 1, 1.0, shared_memory="system", together="a+b") for kind in ("http", "grpc")
    ]
    forms = RequestForms()
    for cell in (*both, both[0]):
        forms.apply(cell, IMAGES)
    assert len(ours()) == 2
    forms.close()
    assert ours() == []


def test_what_processes_that_have_ended_left_is_removed(onnx: dict[str, Endpoint]) -> None:
    left, own = f"{OWN}{NOBODY}-x", f"{OWN}{os.getpid()}-x"
    try:
        for name in (left, own):
            (REGIONS / name).write_bytes(bytes(64))
        with opened(onnx["http"]) as api:
            for name in (left, own):
                api.register(name, f"/{name}", 64)
        remove_left_over()
        assert [(REGIONS / name).exists() for name in (left, own)] == [False, True]
        cell = Cell(onnx["grpc"], 1, 1, 1, 1.0, shared_memory="system")
        RequestForms().check([cell], IMAGES)
        with opened(onnx["http"]) as api:
            assert api.regions() == [own]
            api.unregister(own)
    finally:
        for name in (left, own):
            (REGIONS / name).unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_server_that_lets_nobody(
    onnx: dict[str, Endpoint], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTROL, "inferswarm-control=another")
    cell = Cell(onnx[kind], 1, 1, 1, 1.0, shared_memory="system")
    with pytest.raises(
        UsageError, match=r"takes no shared memory of this host .*restricted.*set INFERSWARM_MODEL"
    ):
        RequestForms().check([cell], IMAGES)
    with pytest.raises(RunFailedError, match="or leave --shared-memory out"):
        RequestForms().apply(cell, IMAGES)
    assert ours() == []


def test_a_server_with_another_shared_memory(onnx: dict[str, Endpoint]) -> None:
    with (
        pytest.raises(TargetError, match=r"run it on this host, as this user .* this host's /dev/shm"),
        opened(onnx["grpc"]) as api,
    ):
        api.register("inferswarm-test", "/inferswarm-not-here", 64)


def test_too_little_shared_memory(onnx: dict[str, Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_memory.os, "posix_fallocate", full)
    cell = Cell(onnx["grpc"], 1, 1, 1, 1.0, shared_memory="system")
    with pytest.raises(UsageError, match=r"onnx-grpc .*needs 4 MB .*No space left on device.*remount,size"):
        RequestForms().check([cell], IMAGES)
    assert ours() == []


def test_a_server_that_refuses_compression_is_told_before_any_load() -> None:
    with answering("415 Unsupported Media Type", b"no gzip here") as address:
        cell = Cell(Endpoint("m", "onnx", "http", "fp32", address, "m"), 1, 1, 1, 1.0, compression="gzip")
        with pytest.raises(
            UsageError,
            match=r"--compression gzip: m .* does not take a request .*HTTP 415 no gzip here.*leave it out",
        ):
            RequestForms().check([cell], IMAGES)
