"""gRPC's interoperability cases on our own wire, against others' servers and proxies in their own processes.

`python -m benchmarks.interop` asks more servers the same, which must be brought from registries first.
"""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from benchmarks.interop_servers import cases
from benchmarks.interop_servers.callers import Own
from benchmarks.interop_servers.environments import NotHere
from benchmarks.interop_servers.servers import SERVERS, Running
from users.http2.figures import FIGURES

pytestmark = pytest.mark.system

NAMES = ("grpcio", "grpcio-aio", "h2-strict", "h2-awkward", "tritonserver", "nginx", "haproxy", "nghttpd")
HERE = {server.name: server for server in SERVERS if server.name in NAMES}
ASKED = [(name, case) for name in NAMES for case in HERE[name].cases]
CALLS = 200
"""More at once than proxies allow streams on a connection."""


class Servers:
    """One server at a time, which runs until another is asked for: tests of one follow each other."""

    def __init__(self) -> None:
        self._name, self._running, self._stack = "", Running(""), ExitStack()

    def start(self, name: str) -> Running:
        """It, started where it is not; the test is skipped where it is not here."""
        if name != self._name:
            self.stop()
            try:
                self._running = self._stack.enter_context(HERE[name].start())
            except NotHere as error:
                pytest.skip(str(error))
            self._name = name
        return self._running

    def stop(self) -> None:
        self._name = ""
        self._stack.close()


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.stop()


@pytest.mark.parametrize(("server", "name"), ASKED)
def test_a_case_holds(servers: Servers, server: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    running = servers.start(server)
    monkeypatch.setattr(cases, "CALLS", CALLS)
    monkeypatch.setattr(cases, "SOAK_CALLS", CALLS)
    monkeypatch.setattr(cases, "FP32_ROUNDS", 1)
    before = len(running.breaches())
    with called(running.address) as caller:
        HERE[server].cases[name](caller)
    assert running.breaches()[before:] == []


@contextmanager
def called(address: str) -> Iterator[Own]:
    caller = Own(address)
    try:
        yield caller
    finally:
        caller.close()


@pytest.mark.parametrize("name", ["concurrent_large_unary", "rpc_soak"])
def test_calls_share_one_connection(servers: Servers, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "CALLS", CALLS)
    running = servers.start("h2-strict")
    before = running.connections()
    with called(running.address) as caller:
        cases.TEST_CASES[name](caller)
    assert running.connections() - before == 1


def test_a_proxy_that_ends_connections_fails_no_call(servers: Servers) -> None:
    # nginx says GOAWAY at a connection's thousandth call.
    running, before = servers.start("nginx"), FIGURES.counts["goaways"]
    with called(running.address) as caller:
        cases.rpc_soak(caller)
    assert FIGURES.counts["goaways"] - before == cases.SOAK_CALLS // 1000
