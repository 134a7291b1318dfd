"""What a worker makes of a cell, and what it lacks on its own host: a token, a file, a connection, TLS."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from swarm.distributed import worker_cell
from swarm.distributed.worker_cell import check_reach
from swarm.errors import StudyError
from tests.certificates import Certificates
from tests.stand_ins import stand_in
from tests.swarm.distributed.test_worker import (
    EMULATED,
    IMAGES,
    ONNX,
    WorkerRunner,
    assigned,
    environment,
    runner,
    task,
)
from tests.swarm.output.test_results_folder import options
from tests.swarm.study.test_handout import handed_out
from tests.tls_proxy import behind_tls
from users.codecs.v2 import SharedInputs
from users.endpoint import Endpoint, Protocol
from users.http2.sender import SCHEDULINGS
from users.tls import OPEN, Security

__all__ = ["environment", "runner"]
VARIABLE = "INFERSWARM_ONNX_TOKEN"


@pytest.fixture(scope="module")
def address(made: Certificates) -> Iterator[str]:
    context = made.server.server_context(made.ca)
    with stand_in("fake_service.py") as plain, behind_tls(plain, context) as proxy:
        yield proxy.address


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSWARM_HOST", "far")
    monkeypatch.delenv(VARIABLE, raising=False)


def at(address: str, security: Security, tls: bool = True) -> Endpoint:
    return Endpoint("onnx-http", "onnx", "http", "fp32", address, "m", tls, security)


@pytest.mark.parametrize("order", SCHEDULINGS)
def test_the_order_of_sending_comes_from_the_masters_options(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    study = handed_out(EMULATED, options("--grpc-scheduling", order), monkeypatch)
    made = assigned(runner, EMULATED, scheduling=study["scheduling"])
    assert (made.scheduling, made.by_library) == (order, False)


def test_bodies_of_a_prepared_pool_are_views_whatever_the_protocol(runner: WorkerRunner) -> None:
    for endpoint in (ONNX, replace(ONNX, protocol="grpc", codec="v2-grpc")):
        pool = assigned(runner, endpoint).pool
        assert [type(prepared.body) for prepared in pool] == [memoryview] * 2
        assert assigned(runner, endpoint, cell={"client": "library"}).pool[0].body == b""


@pytest.mark.parametrize(("protocol", "codec"), [("http", "v2-binary"), ("grpc", "v2-grpc")])
def test_a_compressed_pool_is_made_once_or_for_each_request(
    runner: WorkerRunner, protocol: Protocol, codec: str
) -> None:
    endpoint = replace(ONNX, protocol=protocol, codec=codec)
    plain = assigned(runner, endpoint).pool[0].sent_bytes
    packed = assigned(runner, endpoint, cell={"compression": "gzip"})
    assert (packed.codec.compression, packed.pool[0].packing) == ("gzip", "gzip")
    assert type(packed.pool[0].body) is memoryview
    assert packed.pool[0].sent_bytes < plain
    library = assigned(runner, endpoint, cell={"compression": "gzip", "client": "library"})
    made = library.codec.prepare(IMAGES, library.pool[0].indices)
    assert (library.pool[0].body, made.sent_bytes < plain) == (b"", True)


def test_inputs_in_shared_memory_must_lie_on_the_workers_host(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker_cell, "REGIONS", tmp_path)
    named = SharedInputs.of(ONNX.contract, "inferswarm-1-ab", f"{ONNX.name}/b2/c1", IMAGES, 2)
    with pytest.raises(AssertionError, match="host far: has no shared memory with the master"):
        assigned(runner, ONNX, cell={"shared_memory": "system"}, regions="inferswarm-1-ab")
    (tmp_path / named.region).touch()
    pool = assigned(runner, ONNX, cell={"shared_memory": "system"}, regions="inferswarm-1-ab").pool
    assert named.region.encode() in bytes(pool[0].body)
    assert max(prepared.sent_bytes for prepared in pool) < 400


@pytest.mark.parametrize(
    ("client", "trace", "copies"),
    [("prepared", False, False), ("prepared", True, True), ("library", False, True)],
)
def test_huge_pages_are_asked_for_where_requests_are_copied(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch, client: str, trace: bool, copies: bool
) -> None:
    asked: list[int] = []

    def ask(size: int) -> bool:
        asked.append(size)
        return True

    monkeypatch.setattr(worker_cell, "keep_memory", lambda: True)
    monkeypatch.setattr(worker_cell, "ask_for_huge_pages", ask)
    worker_cell.prepare_memory.cache_clear()
    for _ in range(2):
        assigned(runner, EMULATED, cell={"client": client}, trace=trace)
    worker_cell.prepare_memory.cache_clear()
    assert asked == [worker_cell.COPIES_BYTES] * copies, "once a process"


def test_a_worker_that_has_all_it_needs(
    runner: WorkerRunner, made: Certificates, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "hunter2-and-more")
    endpoint = at(address, Security(made.ca, made.client.cert, made.client.key, token=VARIABLE))
    reply = runner.ask("reach", endpoints=[endpoint.to_dict()], ways=[{}])
    assert set(reply["resolved"]["onnx-http"]) <= {"127.0.0.1", "::1"}
    assert reply["resolved"]["onnx-http"]


@pytest.mark.parametrize(
    ("security", "sentence"),
    [
        (
            Security(token=VARIABLE),
            f"host far: {VARIABLE} is not set; export the token that the servers accept",
        ),
        (
            Security("/nowhere/ca.pem"),
            "host far: /nowhere/ca.pem cannot be read (No such file or directory); put the same file there,"
            " or name another",
        ),
        (
            Security(cert="{folder}/client.pem", key="/nowhere/client.key"),
            "host far: /nowhere/client.key cannot be read (No such file or directory); put the same file"
            " there, or name another",
        ),
        (
            OPEN,
            "host far cannot set up TLS with onnx-http at {address}: its certificate is not accepted:"
            " self-signed"
            " certificate in certificate chain; the study's own host can: compare its clock, its files of"
            " certificates, and the address there",
        ),
    ],
)
def test_what_is_missing_is_told_before_any_load(
    runner: WorkerRunner, made: Certificates, address: str, security: Security, sentence: str
) -> None:
    cert = security.cert.format(folder=made.folder)
    endpoint = at(address, Security(security.ca, cert, security.key, token=security.token))
    reply = runner.ask("reach", endpoints=[endpoint.to_dict()], ways=[{}])
    assert reply["error"] == sentence.format(address=address)


@pytest.mark.parametrize("security", [Security(token=VARIABLE), Security("/nowhere/ca.pem")])
def test_one_that_comes_late_is_refused_with_its_first_cell(runner: WorkerRunner, security: Security) -> None:
    assigned(runner, ONNX)
    reply = runner.ask("cell", cells=[task(at("gpu:1", security))])
    assert reply["error"].startswith("host far: ")


def test_a_plain_server_is_reached_as_before() -> None:
    with stand_in("fake_service.py") as plain:
        check_reach(at(plain, OPEN, tls=False))
    with pytest.raises(StudyError, match=r"cannot connect to onnx-http at .* \(Connection refused\)"):
        check_reach(at(plain, OPEN, tls=False))
