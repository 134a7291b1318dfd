"""The real tritonserver over TLS: its own of gRPC, and a proxy's before its HTTP and its metrics."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

from swarm.errors import UsageError
from swarm.targets.preflight import verdict
from tests.certificates import Certificates
from tests.locustfiles.console import ROOT
from tests.pictures import image_set
from tests.presets import preset
from tests.processes import free_port, wait_until
from tests.tls_proxy import behind_tls
from users.backends.asking import read_counters, read_serving
from users.tls import OPEN, Security

pytestmark = pytest.mark.system

HANGS_UP = "hangs up after the TLS handshake"


@pytest.fixture(scope="module")
def ports(made: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Of a tritonserver's gRPC and HTTP."""
    grpc, http = free_port(), free_port()
    log = tmp_path_factory.mktemp("triton") / "log"
    command = [sys.executable, str(ROOT / "tests" / "tls_triton.py"), str(grpc), str(http)]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, made.server.cert, made.server.key, made.ca], stdout=file, stderr=file, cwd=ROOT
        )
    try:
        wait_until(lambda: is_ready(http), 60, log.read_text)
        yield grpc, http
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def whole(name: str, address: str, security: Security, tls: bool = True) -> None:
    """Checked before load, asked for its counters and its configuration."""
    endpoint = preset(name, address, "null", tls=tls, security=security)
    assert verdict(endpoint, image_set(1), print).embedding.shape == (512,)
    assert read_counters(endpoint)["counters"]["successes"] >= 1
    assert read_serving(endpoint)["max_batch"] > 0


def test_its_grpc(made: Certificates, ports: tuple[int, int]) -> None:
    own, strange = (Security(made.ca, one.cert, one.key) for one in (made.client, made.stranger))
    address = f"localhost:{ports[0]}"
    whole("onnx-grpc", address, own)
    for security, tls, sentence in (
        (Security(made.ca), True, f"{HANGS_UP}; give a client certificate by --tls-client-cert"),
        (OPEN, True, r"not accepted: .*; give its authority's with --tls-ca"),
        (OPEN, False, f"speaks TLS; give grpcs://{address}"),
        (strange, True, f"{HANGS_UP}; give another client certificate by"),
    ):
        with pytest.raises(UsageError, match=sentence):
            whole("onnx-grpc", address, security, tls)


def test_its_http_behind_a_proxy(made: Certificates, ports: tuple[int, int]) -> None:
    context = made.server.server_context()
    with behind_tls(f"127.0.0.1:{ports[1]}", context) as proxy:
        whole("onnx-http", proxy.address, Security(made.ca))
        with pytest.raises(UsageError, match=f"speaks TLS; give https://{proxy.address}"):
            whole("onnx-http", proxy.address, OPEN, False)
