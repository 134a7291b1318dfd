"""Each mistake on the command line ends with one sentence and exit code 2, before any load."""

import re
import socket
from pathlib import Path

import pytest

from server.triton.tritonserver import find_wheel, make_backends
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import study
from tests.processes import wait_until

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--pytorch-url", "127.0.0.1:1"), "url 127.0.0.1:1: cannot be reached (connection refused)"),
        (("--onnx-grpc-url", "127.0.0.1:1"), "--onnx-grpc-url 127.0.0.1:1: cannot be reached"),
        (("--pytorch-url", "nowhere.invalid:80"), "cannot be reached (unknown host name)"),
        (("--onnx-http-url", "127.0.0.1:{port}"), "answers GET /v2 with HTTP "),
        (("--onnx-grpc-url", "127.0.0.1:{port}"), "speaks HTTP/1.1, and gRPC needs HTTP/2"),
        (("--pytorch-url", "gpu-host"), "--pytorch-url 'gpu-host': give host:port or http://host:port"),
        (("--images", "{empty}"), "no .jpg, .jpeg or .png file in it"),
        (("--images", "{texts}"), "is not a readable JPEG or PNG picture; remove it"),
        (("--iterations", "0"), "--iterations 0: must be at least 1"),
        (("--pytorch-url", "127.0.0.1:1", "--processes", "2"), "cannot be reached (connection refused)"),
        (
            ("--onnx-http-url", "127.0.0.1:1", "--onnx-metrics-url", "127.0.0.1:1"),
            "--onnx-metrics-url http://127.0.0.1:1/metrics: cannot be read (refused",
        ),
        (("--results-dir", "/proc/none"), "--results-dir: cannot make /proc/none"),
        (("--rates", "0"), "--rates 0: give requests a second, up to 100,000"),
        (("--find-rate", "p98<=1"), "--find-rate p98<=1: give p50, p90, p95, p99 or p99.9 and ms"),
        (("--arrivals", "often"), "--arrivals often: give one of constant, poisson"),
        (("--prometheus-port", "{port}"), "--prometheus-port"),
        (("--cells", "nonsense"), "--cells nonsense: matches no cell of this study; there are b1/c1, "),
        (("--endpoints", "onx-http"), "--endpoints onx-http: matches no endpoint; closest: onnx-http, "),
    ],
)
def test_each_mistake_is_one_sentence_and_exit_code_2(
    start_service: StartService, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    empty, texts = tmp_path / "empty", tmp_path / "texts"
    empty.mkdir()
    texts.mkdir()
    (texts / "a.jpg").write_text("this is text")
    port = start_service()
    filled = [value.format(port=port, empty=empty, texts=texts) for value in arguments]
    results = tmp_path / "results"
    results.mkdir()
    console = study(results, *filled)
    assert console.wait(15) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert sentence in line
    assert "Traceback" not in console.text
    assert [path for path in results.iterdir() if path.is_dir()] == []
    wait_until(lambda: not console.left_behind(), 12, lambda: console.text)


def test_a_machine_without_tritonserver_is_told_so_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shim" / "pytriton").mkdir(parents=True)
    (tmp_path / "shim" / "pytriton" / "__init__.py").write_text("# a wheel without its server")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shim"))
    console = study(tmp_path / "shim")
    assert console.wait(15) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    assert "nvidia-pytriton has no tritonserver for Python 3.1" in line
    assert "servers: starting" not in console.text


def test_servers_that_cannot_start_leave_their_logs_where_the_study_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path / "cache"))
    (make_backends(find_wheel()) / "python" / "triton_python_backend_stub").write_text("#!/no\n")
    console = study(tmp_path, "--emulate", "1+0")
    assert console.wait(30) == 2, console.text
    (line,) = [line for line in console.text.splitlines() if line.startswith("inferswarm: ")]
    found = re.fullmatch(r"inferswarm: emulated cannot start; (\S+) says: (bash: .+)", line)
    assert found, line
    assert found[2] in Path(found[1]).read_text()
    assert not list(tmp_path.glob("step7-*"))


def test_a_busy_master_port_is_said(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = str(held.getsockname()[1])
        console = study(tmp_path, "--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
        assert console.wait(15) != 0
    assert "Address already in use" in console.text
    assert port in console.text
