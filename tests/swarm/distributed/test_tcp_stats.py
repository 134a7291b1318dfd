"""Which connections are the users': the kernel is asked, with real servers on the other side."""

import socket as plain_socket
from collections.abc import Iterator
from contextlib import ExitStack

import gevent
import psutil
import pytest
from gevent import socket
from tritonclient.grpc import service_pb2

from swarm.distributed.tcp_stats import ESTABLISHED, Connections, own_connections, standing
from tests.processes import eventually
from tests.stand_ins import stand_in
from tests.users.ways import IMAGES, codec_at
from users.codecs.base import Codec
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.endpoint import Endpoint
from users.transport.admin_connection import AdminConnection
from users.transport.connections import PER_USER, SAME_ARGS, SHARED
from users.transport.sockets import connect
from users.transport.transports import TRANSPORTS, client
from users.triton.api import triton_stub

USERS = 16

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not hasattr(plain_socket, "TCP_INFO"), reason="only Linux tells of its connections"),
]


@pytest.fixture(scope="module")
def http_address() -> Iterator[str]:
    with stand_in("fake_service.py") as address:
        yield address


@pytest.fixture(scope="module")
def grpc_address() -> Iterator[str]:
    with stand_in("fake_triton.py") as address:
        yield address


def all_connections(port: int) -> int:
    """Every connection of this process to the port, marked or not, by another way of asking the kernel."""
    held = psutil.Process().net_connections("tcp")
    return sum(bool(c.raddr) and c.raddr.port == port and c.status == "ESTABLISHED" for c in held)


@pytest.mark.parametrize(
    ("form", "by_library", "channels", "expected"),
    [
        *((Embed, False, PER_USER, 16), (Embed, False, SHARED, 1), (Embed, False, "pool:4", 4)),
        *((V2Grpc, False, PER_USER, 16), (V2Grpc, False, SHARED, 1), (V2Grpc, False, "pool:4", 4)),
        *((V2Grpc, True, PER_USER, 16), (V2Grpc, True, SHARED, 1), (V2Grpc, True, "pool:4", 4)),
        *((V2Grpc, False, SAME_ARGS, 16), (V2Grpc, True, SAME_ARGS, 1)),
    ],
)
def test_connections_of_sixteen_users(
    form: type[Codec], by_library: bool, channels: str, expected: int, http_address: str, grpc_address: str
) -> None:
    codec = codec_at(form, http_address if form is Embed else grpc_address)
    endpoint, prepared = codec.endpoint, codec.prepare(IMAGES, (0,))
    assert TRANSPORTS[codec.wire, by_library].connections(USERS, channels) == expected
    with ExitStack() as stack:
        users = [stack.enter_context(client(codec, 30, channels, by_library)) for _ in range(USERS)]
        for _ in range(2):
            asking = [gevent.spawn(user.send, prepared) for user in users]
            assert len(gevent.joinall(asking, timeout=60, raise_error=True)) == USERS
            seen = own_connections(endpoint.port)
            assert len(seen) == all_connections(endpoint.port) == expected
        assert {info["state"] for info in seen.values()} == {ESTABLISHED}
        assert standing(list(seen.values()))["connections"] == expected
        # Every request went over one of them, twice a user.
        assert sum(info["bytes_sent"] for info in seen.values()) >= 2 * USERS * len(prepared.body)
    assert eventually(lambda: own_connections(endpoint.port) == {})


def test_our_own_questions_over_http_are_not_counted(http_address: str) -> None:
    codec, line = codec_at(Embed, http_address), AdminConnection(http_address, 30)
    assert "ready" in line.get("/readyz")
    only_users_are_counted(codec)
    line.close()


@pytest.mark.parametrize("by_library", [False, True])
def test_our_own_questions_over_grpc_are_not_counted(grpc_address: str, by_library: bool) -> None:
    codec = codec_at(V2Grpc, grpc_address)
    with triton_stub(codec.endpoint) as stub:
        assert stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=30).ready
        only_users_are_counted(codec, by_library)


def only_users_are_counted(codec: Codec, by_library: bool = False) -> None:
    """There is one connection of our own, and then one of a user."""
    port = codec.endpoint.port
    assert (all_connections(port), own_connections(port)) == (1, {})
    with client(codec, 30, by_library=by_library) as user:
        user.send(codec.prepare(IMAGES, (0,)))
        assert (all_connections(port), len(own_connections(port))) == (2, 1)


def test_looking_leaves_no_descriptor_open_and_no_mode_changed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        client = socket.create_connection(address)
        peer, _ = listener.accept()
        before = psutil.Process().num_fds()
        for _ in range(10):
            (info,) = own_connections(address[1]).values()
        # Fewer are well: gRPC closes those of earlier tests in its own time.
        assert psutil.Process().num_fds() <= before
        assert not client._sock.getblocking(), "gevent needs it so"
        client.sendall(b"x" * 10_000)
        received = 0
        while received < 10_000:
            received += len(peer.recv(65536))
        assert own_connections(address[1])[client.getsockname()]["bytes_sent"] == 10_000
        assert own_connections(client.getsockname()[1])[address]["bytes_received"] == 10_000
        for made in (client, peer):
            made.close()
    assert info["bytes_sent"] == 0


def test_other_sockets_are_passed_over() -> None:
    pair = plain_socket.socketpair()
    with plain_socket.socket(plain_socket.AF_INET, plain_socket.SOCK_DGRAM) as datagrams:
        datagrams.connect(("127.0.0.1", 9))
        assert own_connections(9) == {}
    for made in pair:
        made.close()


def test_without_tcp_info_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert len(own_connections(port)) == 1
            monkeypatch.delattr(plain_socket, "TCP_INFO")
            assert own_connections(port) == {}
            connections = Connections()
            connections.watch(port)
            assert connections.take() == {}


def test_of_two_addresses_the_one_that_is_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = first.getsockname()[1]
        stack.enter_context(socket.create_server(("127.0.0.2", port)))
        tcp = socket.AF_INET, socket.SOCK_STREAM, 6, ""
        places = [(*tcp, (host, port)) for host in ("127.0.0.2", "127.0.0.1")]
        monkeypatch.setattr(gevent.socket, "getaddrinfo", lambda *_, **__: places)
        connections = Connections()
        connections.watch(port)
        for _ in range(2):
            made = connect(Endpoint("x", "pytorch", "http", "jpeg", f"two.test:{port}"))
            stack.callback(made.close)
        assert connections.take()["peers"] == {"127.0.0.2": 2}
