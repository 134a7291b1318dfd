"""A target that is not what its URL says is refused by one sentence, before any load."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import gevent
import pytest
from gevent.server import StreamServer

from swarm.errors import UsageError
from swarm.targets.preflight import First, verdict
from tests.certificates import Certificates
from tests.pictures import image_set
from tests.presets import preset
from tests.stand_ins import stand_in
from tests.swarm.wsgi import serving
from tests.tls_proxy import behind_tls
from users.redact import spellings
from users.tls import OPEN, TOKEN, Security

pytestmark = pytest.mark.system

SECRET = "hunter2-and-more"
IMAGES = image_set(1)
SERVICE, TRITON, TRITON_GRPC = "pytorch-http", "onnx-http", "onnx-grpc"
NO_TOKEN = "requires a token; export it as INFERSWARM_TOKEN, or for this server only as"
NO_TRITON = "; if it is no Triton, give Triton's"
HTTP_1 = "speaks HTTP/1.1, and gRPC needs HTTP/2"
HTTP_2 = "speaks HTTP/2, as gRPC does"


def page(environ: dict[str, Any], start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/html")])
    return [b"<html>welcome</html>"]


def elsewhere(environ: dict[str, Any], start: Any) -> list[bytes]:
    start("302 Found", [("Location", "http://127.0.0.1:1/")])
    return []


def short_embedding(environ: dict[str, Any], start: Any) -> list[bytes]:
    start("200 OK", [("Content-Type", "application/json")])
    return [b'{"embeddings": [[1.0, 0.0]]}']


def triton_like(environ: dict[str, Any], start: Any) -> list[bytes]:
    """Its HTTP, as one answers who asks it for what only a service has."""
    start("404 Not Found", [])
    return [b""]


@contextmanager
def speaker(words: bytes) -> Iterator[str]:
    def speak(peer: Any, _: Any) -> None:
        peer.sendall(words)
        gevent.sleep(0.05)

    server = StreamServer(("127.0.0.1", 0), speak)
    server.start()
    yield f"127.0.0.1:{server.server_port}"
    server.stop()


@pytest.fixture(scope="module")
def places(made: Certificates) -> Iterator[dict[str, str]]:
    """Addresses of servers of all kinds."""
    with ExitStack() as stack:
        service = stack.enter_context(stand_in("fake_service.py"))
        triton = stack.enter_context(stand_in("fake_triton.py"))

        def tls(upstream: str, identity: str, client_ca: str = "") -> str:
            context = getattr(made, identity).server_context(client_ca)
            return stack.enter_context(behind_tls(upstream, context)).address

        yield {
            "service": service,
            "triton": triton,
            "guarded": stack.enter_context(stand_in("fake_service.py", "--token", SECRET)),
            "guarded triton": stack.enter_context(stand_in("fake_triton.py", "--token", SECRET)),
            "page": stack.enter_context(serving(page)),
            "elsewhere": stack.enter_context(serving(elsewhere)),
            "short": stack.enter_context(serving(short_embedding)),
            "triton's http": stack.enter_context(serving(triton_like)),
            "ssh": stack.enter_context(speaker(b"SSH-2.0-OpenSSH_9.2\r\n")),
            "tls": tls(service, "server"),
            "tls misnamed": tls(service, "misnamed"),
            "tls expired": tls(service, "expired"),
            "tls mutual": tls(service, "server", made.ca),
            "tls triton": tls(triton, "server"),
            "tls triton misnamed": tls(triton, "misnamed"),
            "tls triton mutual": tls(triton, "server", made.ca),
        }


def ask(name: str, address: str, tls: bool = False, security: Security = OPEN) -> First:
    return verdict(preset(name, address, tls=tls, security=security), IMAGES, print)


@pytest.mark.parametrize(
    ("place", "name", "sentence"),
    [
        ("page", SERVICE, "welcome"),
        ("page", TRITON, f"GET /v2 with HTTP 200 <html>welcome</html>, which is no JSON{NO_TRITON}"),
        ("page", TRITON_GRPC, HTTP_1),
        ("elsewhere", SERVICE, "redirects requests, which a study does not follow (HTTP 302; "),
        ("short", SERVICE, "does not answer as expected to POST /embed (bad-reply: "),
        ("triton's http", SERVICE, "POST /embed with HTTP 404; it is another server, or"),
        ("ssh", SERVICE, "does not answer as expected to GET /readyz"),
        ("ssh", TRITON_GRPC, f"{NO_TRITON[5:]} gRPC port"),
        ("service", TRITON, "GET /v2 with HTTP 404 "),
        ("triton", SERVICE, HTTP_2),
        ("triton", TRITON, HTTP_2),
        ("guarded", SERVICE, f"{NO_TOKEN} INFERSWARM_PYTORCH_TOKEN"),
        ("guarded", TRITON, f"{NO_TOKEN} INFERSWARM_ONNX_TOKEN"),
        ("guarded triton", TRITON_GRPC, f"{NO_TOKEN} INFERSWARM_ONNX_TOKEN"),
        ("tls", SERVICE, "speaks TLS; give https://{address}"),
        ("tls", TRITON, "speaks TLS; give https://{address}"),
        ("tls triton", TRITON_GRPC, "speaks TLS; give grpcs://{address}"),
        ("tls mutual", SERVICE, "speaks TLS; give https://{address}"),
        ("tls triton mutual", TRITON_GRPC, "speaks TLS; give grpcs://{address}"),
    ],
)  # fmt: skip
def test_without_tls(places: dict[str, str], place: str, name: str, sentence: str) -> None:
    refused(places[place], name, sentence)


NO_CERTIFICATE = "demands a client certificate; give --tls-client-cert and --tls-client-key"
EXPIRED = "its certificate is not accepted: certificate has expired"
MISNAMED = "its certificate is not accepted: Hostname mismatch, certificate is not valid for 'localhost'"


@pytest.mark.parametrize(
    ("place", "name", "sentence"),
    [
        ("service", SERVICE, "does not speak TLS; give http://{address}, or the port that does"),
        ("triton", TRITON_GRPC, "does not speak TLS; give grpc://{address}, or the port that does"),
        ("ssh", TRITON, "does not speak TLS; give http://{address}, or the port that does"),
        ("tls misnamed", SERVICE, f"{MISNAMED}; use the name in it"),
        ("tls triton misnamed", TRITON_GRPC, f"{MISNAMED}; use the name in it"),
        ("tls expired", SERVICE, f"{EXPIRED}; renew it there, or correct this host's clock"),
        ("tls mutual", SERVICE, NO_CERTIFICATE),
        ("tls triton mutual", TRITON_GRPC, NO_CERTIFICATE),
        ("tls", TRITON, f"{NO_TRITON} HTTP port"),
        ("tls triton", SERVICE, HTTP_2),
    ],
)  # fmt: skip
def test_over_tls(places: dict[str, str], made: Certificates, place: str, name: str, sentence: str) -> None:
    refused(places[place], name, sentence, True, Security(made.ca))


def refused(address: str, name: str, sentence: str, *secured: Any) -> None:
    with pytest.raises(UsageError) as caught:
        ask(name, address, *secured)
    _, _, said = str(caught.value).partition(f"{address}: ")
    assert sentence.format(address=address) in said
    option = {SERVICE: "--pytorch-url", TRITON: "--onnx-http-url", TRITON_GRPC: "--onnx-grpc-url"}[name]
    assert str(caught.value).startswith(option)


@pytest.mark.parametrize(("place", "name"), [("tls", SERVICE), ("tls triton", TRITON_GRPC)])
def test_an_authority_that_is_not_trusted(places: dict[str, str], place: str, name: str) -> None:
    with pytest.raises(UsageError, match=r"not accepted: .*; give its authority's with --tls-ca$"):
        ask(name, places[place], True)


def test_a_client_certificate_of_a_stranger(places: dict[str, str], made: Certificates) -> None:
    stranger = Security(made.ca, made.stranger.cert, made.stranger.key)
    for place, name in (("tls mutual", SERVICE), ("tls triton mutual", TRITON_GRPC)):
        with pytest.raises(UsageError, match=r"refuses the handshake \(TLS alert: unknown ca\)$"):
            ask(name, places[place], True, stranger)


def test_those_that_are_right(places: dict[str, str], made: Certificates, monkeypatch: Any) -> None:
    own = Security(made.ca, made.client.cert, made.client.key)
    for place, name in (("service", SERVICE), ("triton", TRITON_GRPC)):
        first = ask(name, places[place])
        assert (first.embedding.shape, first.endpoint.name) == ((512,), name)
    for place, name in (("tls", SERVICE), ("tls mutual", SERVICE), ("tls triton mutual", TRITON_GRPC)):
        ask(name, places[place], True, own)
    ask(SERVICE, places["tls misnamed"], True, Security(verify=False))
    monkeypatch.setenv(TOKEN, SECRET)
    ask(SERVICE, places["guarded"], False, Security(token=TOKEN))
    ask(TRITON_GRPC, places["guarded triton"], False, Security(token=TOKEN))


def test_a_token_that_is_not_the_one(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "another-secret")
    spellings.cache_clear()  # which a process reads once
    for place, name in (("guarded", SERVICE), ("guarded", TRITON), ("guarded triton", TRITON_GRPC)):
        with pytest.raises(UsageError) as caught:
            ask(name, places[place], False, Security(token=TOKEN))
        assert "does not accept the token in INFERSWARM_TOKEN; export the right one" in str(caught.value)
        assert "another-secret" not in str(caught.value)
