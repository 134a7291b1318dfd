"""Which connections are the users': the kernel is asked, with real servers on the other side."""

from __future__ import annotations

import socket as plain_socket
from collections.abc import Iterator
from contextlib import ExitStack

import gevent
import numpy as np
import psutil
import pytest
from gevent import socket
from tritonclient.grpc import service_pb2

from swarm.distributed.tcp_stats import ESTABLISHED, Connections, own_connections, standing
from tests.processes import eventually
from tests.stand_ins import stand_in
from tests.users.ways import sent_by
from users.backends.embed_service import JpegHttp
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.transport.admin_connection import AdminConnection, is_marked, mark
from users.transport.base import Transport
from users.transport.connections import PER_USER, SHARED
from users.triton.api import triton_stub
from users.codecs.v2_grpc import TritonGrpc

USERS = 16
IMAGES = ImageSet((b"one",), np.zeros((1, 3, 224, 224), dtype=np.float32), "test")

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


def endpoint_at(address: str, transport: type[Transport]) -> Endpoint:
    model = "" if transport is JpegHttp else "m"
    return Endpoint("x", "onnx", *sent_by(transport), address, model)


def all_connections(port: int) -> int:
    """Every connection of this process to the port, marked or not, by another way of asking the kernel."""
    held = psutil.Process().net_connections("tcp")
    return sum(bool(c.raddr) and c.raddr.port == port and c.status == "ESTABLISHED" for c in held)


@pytest.mark.parametrize(
    ("transport", "channels", "expected"),
    [
        *((JpegHttp, PER_USER, 16), (JpegHttp, SHARED, 1), (JpegHttp, "pool:4", 4)),
        *((TritonGrpc, PER_USER, 16), (TritonGrpc, SHARED, 1), (TritonGrpc, "pool:4", 4)),
        (TritonGrpc, "same-args", 1),
    ],
)
def test_connections_of_sixteen_users(
    transport: type[Transport], channels: str, expected: int, http_address: str, grpc_address: str
) -> None:
    endpoint = endpoint_at(http_address if transport is JpegHttp else grpc_address, transport)
    prepared = transport.prepare(IMAGES, (0,), endpoint)
    assert transport.connections(USERS, channels) == expected
    with ExitStack() as stack:
        users = [stack.enter_context(transport(endpoint, 30, channels)) for _ in range(USERS)]
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


def test_a_shared_channel_lives_until_its_last_user_has_gone(grpc_address: str) -> None:
    endpoint = endpoint_at(grpc_address, TritonGrpc)
    prepared = TritonGrpc.prepare(IMAGES, (0,), endpoint)
    first, second = (TritonGrpc(endpoint, 30, SHARED) for _ in range(2))
    first.open()
    second.open()
    first.send(prepared)
    (address,) = own_connections(endpoint.port)
    first.close()
    first.close()
    second.send(prepared)
    assert list(own_connections(endpoint.port)) == [address]
    second.close()
    assert eventually(lambda: own_connections(endpoint.port) == {})
    with TritonGrpc(endpoint, 30, SHARED) as third:
        assert third.send(prepared).embeddings.shape == (1, 512)


def test_our_own_questions_over_http_are_not_counted(http_address: str) -> None:
    endpoint = endpoint_at(http_address, JpegHttp)
    line = AdminConnection(http_address, 30)
    assert "ready" in line.get("/readyz")
    assert all_connections(endpoint.port) == 1
    assert own_connections(endpoint.port) == {}
    with JpegHttp(endpoint, 30) as user:
        user.send(JpegHttp.prepare(IMAGES, (0,), endpoint))
        assert all_connections(endpoint.port) == 2
        assert len(own_connections(endpoint.port)) == 1
    line.close()


def test_our_own_questions_over_grpc_are_not_counted(grpc_address: str) -> None:
    endpoint = endpoint_at(grpc_address, TritonGrpc)
    with triton_stub(endpoint) as stub:
        assert stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=30).ready
        assert all_connections(endpoint.port) == 1
        assert own_connections(endpoint.port) == {}
        with TritonGrpc(endpoint, 30) as user:
            user.send(TritonGrpc.prepare(IMAGES, (0,), endpoint))
            assert all_connections(endpoint.port) == 2
            assert len(own_connections(endpoint.port)) == 1


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


def test_mark() -> None:
    with plain_socket.socket() as marked:
        assert not is_marked(marked)
        mark(marked)
        assert is_marked(marked)


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
