"""TLS on every way of sending, against real servers and certificates good and bad."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import gevent
import pytest
from gevent import socket
from gevent.server import StreamServer

from tests.certificates import Certificates, Identity
from tests.pictures import jpegs
from tests.stand_ins import stand_in
from tests.tls_proxy import Proxy, behind_tls
from tests.users.ways import GRPC, GRPC_LIBRARY, IMAGES, LIBRARY, OWN, Way, ask, endpoint_of, user_of
from users.backends.asking import metrics_reader
from users.backends.registry import backend_of
from users.codecs.base import PreparedRequest
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.errors import TLS_WORDS, ErrorKind, RequestError
from users.inputs.images import ImageSet
from users.tls import Security
from users.transport.admin_connection import get
from users.transport.connections import PER_REQUEST, PER_USER, SAME_ARGS, SHARED
from users.transport.http import HttpConnection
from users.transport.transports import TRANSPORTS
from users.triton.api import open_api

pytestmark = pytest.mark.system

Servers = dict[str, str]
NAME = "elsewhere.example"


@pytest.fixture(scope="module")
def plain() -> Iterator[Servers]:
    """Plain servers' addresses by protocol."""
    with stand_in("fake_service.py") as http, stand_in("fake_triton.py") as grpc:
        yield {"http": http, "grpc": grpc}


@contextmanager
def before(plain: Servers, way: Way, identity: Identity, client_ca: str = "") -> Iterator[Proxy]:
    with behind_tls(plain[way[0].wire], identity.server_context(client_ca)) as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("way", "connections"),
    [
        *((way, 1) for way in (OWN, LIBRARY, GRPC, GRPC_LIBRARY, (Embed, SHARED, False))),
        *(
            ((V2Grpc, channels, by), 1)
            for channels, by in ((SHARED, False), (SHARED, True), (SAME_ARGS, True))
        ),
        *(((Embed, PER_REQUEST, by_library), 3) for by_library in (False, True)),
    ],
)
def test_connections_are_kept_over_tls(
    made: Certificates, plain: Servers, way: Way, connections: int
) -> None:
    with before(plain, way, made.server) as proxy:
        reply = ask(way, proxy.address, Security(made.ca), times=3)
        assert reply.embeddings.shape == (1, 512)
        assert proxy.connections == connections


@pytest.mark.parametrize(
    ("channels", "connections"), [(PER_USER, 4), (SHARED, 1), ("pool:2", 2), (SAME_ARGS, 4)]
)
def test_channels_over_tls(made: Certificates, plain: Servers, channels: str, connections: int) -> None:
    way: Way = (V2Grpc, channels, False)
    with before(plain, way, made.server) as proxy, ExitStack() as stack:
        endpoint = endpoint_of(way, proxy.address, Security(made.ca))
        prepared = V2Grpc(endpoint).prepare(IMAGES, (0,))
        for user in [stack.enter_context(user_of(way, endpoint)) for _ in range(4)]:
            assert user.send(prepared).embeddings.shape == (1, 512)
        transport = TRANSPORTS["grpc", way[2]]
        assert proxy.connections == connections == transport.connections(4, channels, tls=True)


@pytest.mark.parametrize("way", [OWN, LIBRARY])
def test_the_service_in_uvicorn(made: Certificates, way: Way) -> None:
    # Of some 50 KB, so that a batch of them is more than sockets hold.
    images = ImageSet(jpegs(1, 224), "test")
    with stand_in("tls_service.py", "--cert", made.server.cert, "--key", made.server.key) as address:
        endpoint = endpoint_of(way, address, Security(made.ca))
        with user_of(way, endpoint) as user:
            # Batches whose requests are of one record of TLS and of many.
            for size in (1, 2, 30):
                reply = user.send(user.codec.prepare(images, (0,) * size))
                assert reply.embeddings.shape == (size, 512)
                assert {"send", "wait", "receive", "decode"} <= set(reply.phases_ns)


@pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY])
@pytest.mark.parametrize(
    ("identity", "trusted"), [("server", ""), ("server", "other_ca"), ("misnamed", "ca"), ("expired", "ca")]
)
def test_the_unproven_get_nothing(
    made: Certificates, plain: Servers, way: Way, identity: str, trusted: str
) -> None:
    security = Security(getattr(made, trusted) if trusted else "")
    with before(plain, way, getattr(made, identity)) as proxy, pytest.raises(RequestError) as caught:
        ask(way, proxy.address, security)
    assert caught.value.kind is ErrorKind.TLS
    assert "its certificate is not accepted" in caught.value.detail


@pytest.fixture
def routing(made: Certificates) -> ssl.SSLContext:
    """Of a gateway that knows one server, by the name that TLS asks for."""

    def choose(_: object, asked: str | None, __: object) -> int | None:
        return None if asked == NAME else int(ssl.AlertDescription.ALERT_DESCRIPTION_UNRECOGNIZED_NAME)

    context = made.misnamed.server_context()
    context.sni_callback = choose  # type: ignore[assignment]
    return context


@pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY, (V2Grpc, SAME_ARGS, True)])
@pytest.mark.parametrize("authority", [NAME, f"{NAME}:8443"])
def test_a_gateway_is_asked_for_the_authority(
    made: Certificates, plain: Servers, routing: ssl.SSLContext, way: Way, authority: str
) -> None:
    with behind_tls(plain[way[0].wire], routing) as proxy:
        by_address = endpoint_of(way, f"127.0.0.1:{proxy.port}", Security(made.ca))
        with user_of(way, replace(by_address, authority=authority)) as user:
            assert user.send(user.codec.prepare(IMAGES, (0,))).embeddings.shape == (1, 512)
        with user_of(way, by_address) as user, pytest.raises(RequestError) as caught:
            user.send(user.codec.prepare(IMAGES, (0,)))
    assert caught.value.kind is ErrorKind.TLS
    assert caught.value.detail == TLS_WORDS["UNRECOGNIZED_NAME"]


def test_the_studys_own_questions_ask_for_the_authority(
    made: Certificates, plain: Servers, routing: ssl.SSLContext
) -> None:
    with behind_tls(plain["http"], routing) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        endpoint = replace(endpoint_of(OWN, address, Security(made.ca)), authority=NAME)
        assert get(endpoint, "/readyz").ok
        with backend_of(endpoint).counters(endpoint, 5) as read:
            assert "server" in read()
        with metrics_reader(f"https://{address}/metrics", endpoint, 5) as read:
            assert isinstance(read(), dict)
    with behind_tls(plain["grpc"], routing) as proxy:
        endpoint = endpoint_of(GRPC, f"127.0.0.1:{proxy.port}", Security(made.ca))
        with open_api(replace(endpoint, authority=NAME), 5) as api:
            assert api.is_triton()


@pytest.mark.parametrize("way", [OWN, LIBRARY])
@pytest.mark.parametrize("identity", ["misnamed", "expired", "server"])
def test_unverified_any_server_will_do(made: Certificates, plain: Servers, way: Way, identity: str) -> None:
    with before(plain, way, getattr(made, identity)) as proxy:
        assert ask(way, proxy.address, Security(verify=False)).embeddings.shape == (1, 512)


@pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY])
def test_a_client_certificate(made: Certificates, plain: Servers, way: Way) -> None:
    own = Security(made.ca, made.client.cert, made.client.key)
    strangers = Security(made.ca, made.stranger.cert, made.stranger.key)
    with before(plain, way, made.server, made.ca) as proxy:
        assert ask(way, proxy.address, own).embeddings.shape == (1, 512)
        for other in (Security(made.ca), strangers):
            with pytest.raises(RequestError) as caught:
                ask(way, proxy.address, other)
            # grpcio learns only that the connection has ended.
            reset = caught.value.kind is ErrorKind.RESET and way is GRPC_LIBRARY
            assert reset or caught.value.kind is ErrorKind.TLS


@pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY])
def test_a_plain_server_behind_https(plain: Servers, way: Way) -> None:
    with pytest.raises(RequestError) as caught:
        ask(way, plain[way[0].wire])
    assert caught.value.kind in (ErrorKind.TLS, ErrorKind.RESET)


def test_grpc_is_told_of_a_server_without_http2(made: Certificates) -> None:
    context = made.server.server_context()
    context.set_alpn_protocols(["http/1.1"])
    server = StreamServer(("127.0.0.1", 0), lambda peer, _: peer.recv(1), ssl_context=context)
    server.start()
    with pytest.raises(RequestError) as caught:
        ask(GRPC, f"localhost:{server.server_port}", Security(made.ca))
    assert caught.value.kind is ErrorKind.TLS
    assert caught.value.detail == "the server does not offer HTTP/2 (ALPN h2), which gRPC needs"
    server.stop()


@pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY])
def test_a_server_with_tls_behind_http(made: Certificates, plain: Servers, way: Way) -> None:
    with before(plain, way, made.server) as proxy, pytest.raises(RequestError) as caught:
        ask(way, proxy.address, tls=False)
    assert caught.value.kind in (ErrorKind.RESET, ErrorKind.BAD_REPLY)


def test_the_deadline_covers_the_handshake() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = endpoint_of(OWN, f"127.0.0.1:{silent.getsockname()[1]}")
        with user_of(OWN, endpoint, timeout_s=0.2) as user, pytest.raises(RequestError) as caught:
            user.send(user.codec.prepare(IMAGES, (0,)))
        assert caught.value.kind is ErrorKind.TIMEOUT
        peer, _ = silent.accept()
        with peer, gevent.Timeout(10):
            while peer.recv(4096):
                pass  # a hello, and then the end: the connection is closed, not left lying


@pytest.mark.timeout(60)
def test_who_cannot_hand_over_lets_others_run(made: Certificates) -> None:
    """The server is in the same event loop: it reads when the client, whose socket is full, waits."""
    body = bytes(16_000_000)
    heard = []

    def slow(peer: socket.socket, _: object) -> None:
        gevent.sleep(0.1)
        data = bytearray()
        while len(data) < len(body):
            data += peer.recv(1 << 16)
        heard.append(len(data))
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    server = StreamServer(("127.0.0.1", 0), slow, ssl_context=made.server.server_context())
    server.start()
    endpoint = endpoint_of(OWN, f"localhost:{server.server_port}", Security(made.ca))
    connection = HttpConnection(endpoint, 30)
    assert connection.post("/embed", PreparedRequest(body, (0,))).body == b"done"
    assert heard[0] >= len(body)
    connection.close()
    server.stop()


def test_an_answer_that_is_cut_off_is_no_answer(made: Certificates) -> None:
    def cut(peer: socket.socket, _: object) -> None:
        peer.recv(1 << 16)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b'{"embeddings": [[1')
        peer.close()  # which gevent does without TLS' farewell, as anybody on the way can

    server = StreamServer(("127.0.0.1", 0), cut, ssl_context=made.server.server_context())
    server.start()
    with pytest.raises(RequestError) as caught:
        ask(OWN, f"localhost:{server.server_port}", Security(made.ca))
    assert caught.value.kind is ErrorKind.RESET
    server.stop()
