"""gRPC's interoperability cases on our own wire, against others' servers and proxies as processes of their own.

`python -m benchmarks.interop` asks more servers the same, which must be brought from registries first.
"""

from __future__ import annotations

from locust import User  # noqa: F401  (first: it patches sockets and threads)

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from benchmarks.interop_servers import cases
from benchmarks.interop_servers.callers import Own
from benchmarks.interop_servers.cases import Case
from benchmarks.interop_servers.environments import NotHere
from benchmarks.interop_servers.servers import SERVERS, Running, Server
from users.http2.figures import FIGURES

pytestmark = pytest.mark.system

NAMES = ("grpcio", "grpcio-aio", "h2-strict", "h2-awkward", "tritonserver", "nginx", "haproxy", "nghttpd")
HERE = {server.name: server for server in SERVERS if server.name in NAMES}
ASKED = [(name, case) for name in NAMES for case in HERE[name].cases]
CALLS = 200
"""At once: more than the streams that proxies allow on a connection."""


class Standing(NamedTuple):
    """A server and how it was started, or why it was not."""

    server: Server
    running: Running | None
    missing: str = ""


@contextmanager
def standing(name: str) -> Iterator[Standing]:
    server = HERE[name]
    try:
        with server.start() as running:
            yield Standing(server, running)
    except NotHere as error:
        yield Standing(server, None, str(error))


@pytest.fixture(scope="module")
def at(request: pytest.FixtureRequest) -> Iterator[Standing]:
    """The server that a test names: started once, as its tests follow each other."""
    with standing(request.param) as found:
        yield found


@pytest.mark.parametrize(("at", "name"), ASKED, indirect=["at"])
def test_a_case_holds(at: Standing, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if at.running is None:
        pytest.skip(at.missing)
    monkeypatch.setattr(cases, "CALLS", CALLS)
    monkeypatch.setattr(cases, "FP32_ROUNDS", 1)
    before = len(at.running.breaches())
    with called(at.running.address) as caller:
        at.server.cases[name](caller)
    assert at.running.breaches()[before:] == []


@contextmanager
def called(address: str) -> Iterator[Own]:
    caller = Own(address)
    try:
        yield caller
    finally:
        caller.close()


@pytest.mark.parametrize(
    "case", [cases.concurrent_large_unary, cases.rpc_soak], ids=lambda case: case.__name__
)
def test_all_calls_go_over_one_connection(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "CALLS", CALLS)
    with HERE["h2-strict"].start() as running, called(running.address) as caller:
        case(caller)
        assert running.connections() == 1


def test_a_proxy_that_ends_connections_fails_no_call() -> None:
    # nginx says GOAWAY behind a connection's thousandth call.
    with standing("nginx") as at:
        if at.running is None:
            pytest.skip(at.missing)
        before = FIGURES.counts["goaways"]
        with called(at.running.address) as caller:
            cases.rpc_soak(caller)
        assert FIGURES.counts["goaways"] - before == cases.SOAK_CALLS // 1000
