"""The study's own questions: over TLS, with the token, and to nobody but the target."""

import socket as plain_socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from swarm.distributed.tcp_stats import own_connections
from swarm.targets.endpoints import check_metrics, metrics_addresses
from tests.certificates import Certificates
from tests.stand_ins import stand_in
from tests.swarm.wsgi import serving
from tests.tls_proxy import Proxy, behind_tls
from users.backends.asking import metrics_reader, read_counters, read_serving
from users.endpoint import Endpoint
from users.errors import RequestError
from users.tls import TOKEN, Security
from users.transport.admin_connection import AdminConnection, get
from users.triton.api import model_config

pytestmark = pytest.mark.system

SECRET = "hunter2-and-more"
PAGE = b'nv_inference_pending_request_count{model="m"} 3\n'


class Pages:
    """A server of metrics that notes who asks, and sends everybody on from `/moved`."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.address = ""

    def __call__(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        self.heard.append((environ["PATH_INFO"], environ.get("HTTP_AUTHORIZATION", "")))
        if environ["PATH_INFO"] == "/moved":
            start("302 Found", [("Location", f"http://{self.address}/elsewhere")])
            return []
        start("200 OK", [("Content-Type", "text/plain")])
        return [PAGE]


@pytest.fixture
def pages() -> Iterator[Pages]:
    found = Pages()
    with serving(found) as found.address:
        yield found


@pytest.fixture
def secured(pages: Pages, made: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The same behind TLS, its token in the environment."""
    monkeypatch.setenv(TOKEN, SECRET)
    with behind_tls(pages.address, made.server.server_context()) as proxy:
        yield proxy


def test_metrics_over_tls_with_the_token(pages: Pages, secured: Proxy, made: Certificates) -> None:
    security = Security(made.ca, token=TOKEN)
    endpoint = Endpoint("x", "onnx", "http", "fp32", "nowhere:1", "m", True, security)
    with metrics_reader(f"https://{secured.address}/metrics", endpoint, 5) as read:
        assert [read(), read()] == [{"pending_requests": 3}] * 2
    assert pages.heard == [("/metrics", f"Bearer {SECRET}")] * 2
    assert secured.connections == 1


def test_a_page_of_another_host_hears_no_token(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    url = f"http://{pages.address}/metrics"
    for host, settings in (("127.0.0.1", {"metrics": url}), ("nowhere", {"metrics": url}), ("nowhere", {})):
        security = Security(token=TOKEN)
        endpoint = Endpoint("x", "onnx", "http", "fp32", f"{host}:1", "m", False, security, settings=settings)
        with metrics_reader(url, endpoint, 5) as read:
            read()
    assert [token for _, token in pages.heard] == [f"Bearer {SECRET}", "", f"Bearer {SECRET}"]


def test_metrics_of_the_options(pages: Pages, secured: Proxy, made: Certificates) -> None:
    urls = {"onnx_metrics_url": f"https://{secured.address}"}
    assert metrics_addresses(urls, {}) == {"onnx": f"https://{secured.address}/metrics"}
    check_metrics(urls, Security(made.ca))
    assert pages.heard == [("/metrics", f"Bearer {SECRET}")]


def test_nobody_is_followed_with_the_token(pages: Pages, secured: Proxy, made: Certificates) -> None:
    security = Security(made.ca, token=TOKEN)
    endpoint = Endpoint("x", "onnx", "http", "fp32", secured.address, "m", True, security)
    with closing(AdminConnection.to(endpoint, 5)) as connection:
        posted = connection.ask("POST", "/moved", {"a": 1})
    assert [get(endpoint, "/moved").status, posted.status] == [302, 302]
    assert [path for path, _ in pages.heard] == ["/moved", "/moved"]


def test_a_line_that_proves_nothing_asks_nothing(pages: Pages, secured: Proxy) -> None:
    line = AdminConnection(secured.address, 5, tls=True, security=Security(token=TOKEN))
    with pytest.raises(RequestError, match="tls: its certificate is not accepted"):
        line.get("/metrics")
    line.close()
    assert pages.heard == []


@pytest.mark.skipif(not hasattr(plain_socket, "TCP_INFO"), reason="only Linux tells of its connections")
def test_lines_over_tls_are_not_counted_as_the_users(secured: Proxy, made: Certificates) -> None:
    line = AdminConnection(secured.address, 5, True, Security(made.ca))
    line.get("/metrics")
    assert own_connections(secured.port) == {}
    line.close()


@pytest.mark.parametrize(
    ("script", "protocol", "payload", "model"),
    [("fake_service.py", "http", "jpeg", ""), ("fake_triton.py", "grpc", "fp32", "m")],
)
def test_counters_and_configuration(
    made: Certificates, monkeypatch: pytest.MonkeyPatch, script: str, protocol: Any, payload: Any, model: str
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    context, security = made.server.server_context(), Security(made.ca, token=TOKEN)
    with stand_in(script, "--token", SECRET) as plain, behind_tls(plain, context) as proxy:
        backend = "onnx" if model else "pytorch"
        endpoint = Endpoint("x", backend, protocol, payload, proxy.address, model, True, security)
        assert read_counters(endpoint)["counters"]["successes"] == (2 if model else 0)
        assert "error" not in read_serving(endpoint)
        if model:
            assert model_config(endpoint)["name"] == "m"
        monkeypatch.setenv(TOKEN, "another-secret")
        assert read_counters(endpoint)["error_kind"] == "rejected"
