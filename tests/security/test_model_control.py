"""Nobody but the study changes the tritonservers that it has started: to load a model is to run code."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from users.redact import CONTROL as VARIABLE

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
SECRET = "control=0123456789abcdef0123456789abcdef"
TENSOR = {"name": "x", "data_type": "TYPE_FP32", "dims": [1]}
CONFIG = {"name": "evil", "backend": "python", "max_batch_size": 0, "input": [TENSOR], "output": [TENSOR]}
OPENED = ("--model-control",)


@contextmanager
def tritonserver(*options: str) -> Iterator[dict[str, Any]]:
    """`inferswarm up` with an emulated model, whose `ready` event it gives."""
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes", "--emulate", "5+1"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environ = {**environment(), VARIABLE: SECRET}
    with subprocess.Popen([*command, *options], **pipes, cwd=ROOT, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if (event := json.loads(line))["event"] == "ready":
                    yield event["endpoints"]["emulated"]
                    return
            raise AssertionError("it never was ready")
        finally:
            process.stdin.close()


def environment() -> dict[str, str]:
    """Ours, without what is for inferswarm."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INFERSWARM")}


@pytest.fixture(scope="module", params=[(), OPENED], ids=["as ever", "with model control"])
def server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with tritonserver(*request.param) as found:
        yield found


def model_that_writes(mark: Path) -> bytes:
    """A model of the Python backend; loading it runs it."""
    return f"open({str(mark)!r}, 'w').write('run')\nclass TritonPythonModel:\n    pass\n".encode()


def load_request(mark: Path) -> bytes:
    """What has tritonserver load such a model, without a file anywhere."""
    code = base64.b64encode(model_that_writes(mark)).decode()
    return json.dumps({"parameters": {"config": json.dumps(CONFIG), "file:1/model.py": code}}).encode()


def posted(address: str, path: str, body: bytes, headers: dict[str, str] | None = None) -> int:
    """The status of a request that a page may make without being asked for leave."""
    request = urllib.request.Request(
        f"http://{address}{path}", body, {"Content-Type": "text/plain", **(headers or {})}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_no_request_of_a_page_runs_code(server: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert posted(server["http"], "/v2/repository/models/evil/load", load_request(mark)) == 403
    assert not mark.exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/repository/models/emulated/unload", {}),
        ("/v2/repository/index", {}),
        ("/v2/systemsharedmemory/region/x/register", {"key": "/x", "offset": 0, "byte_size": 1}),
        ("/v2/trace/setting", {"trace_file": "/tmp/inferswarm-evil", "trace_level": ["TIMESTAMPS"]}),
        ("/v2/logging", {"log_file": "/tmp/inferswarm-evil"}),
    ],
)
def test_nothing_else_changes_it_or_has_it_open_files(
    server: dict[str, Any], path: str, body: dict[str, Any]
) -> None:
    assert posted(server["http"], path, json.dumps(body).encode()) == 403


def test_no_call_over_grpc_runs_code(server: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    parameter = service_pb2.ModelRepositoryParameter
    given = {
        "config": parameter(string_param=json.dumps(CONFIG)),
        "file:1/model.py": parameter(bytes_param=model_that_writes(mark)),
    }
    asked = service_pb2.RepositoryModelLoadRequest(model_name="evil", parameters=given)
    with grpc.insecure_channel(server["grpc"]) as channel, pytest.raises(grpc.RpcError, match="restricted"):
        service_pb2_grpc.GRPCInferenceServiceStub(channel).RepositoryModelLoad(asked, timeout=20)
    assert not mark.exists()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path")
def test_no_page_in_a_real_browser_runs_code(server: dict[str, Any], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    url = f"http://{server['http']}/v2/repository/models/evil/load"
    request = json.dumps({"method": "POST", "mode": "no-cors", "body": load_request(mark).decode()})
    script = f"""
        fetch({json.dumps(url)}, {request})
            .then(() => document.body.append("it was sent"), error => document.body.append(error));
    """
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    page = [sys.executable, "tests/security/page.py", str(CHROMIUM), profile]
    done = subprocess.run(page, cwd=ROOT, input=script, capture_output=True, text=True, timeout=90)
    assert "it was sent" in done.stdout.rpartition("</script>")[2], done
    assert not mark.exists()


def test_the_secret_stands_in_no_command_line(server: dict[str, Any]) -> None:
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    value = SECRET.partition("=")[2].encode()
    assert Path(f"/proc/{server['pid']}/cmdline").read_bytes().count(b"INFERSWARM_MODEL_CONTROL") == 2
    assert not [line for line in lines if value in line]


def test_who_knows_the_secret_loads_models(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    name, _, value = SECRET.partition("=")
    with tritonserver(*OPENED) as found:
        posted(found["http"], "/v2/repository/models/evil/load", load_request(mark), {name: value})
        assert mark.read_text() == "run"
    mark.unlink()
    # Without the option nobody does.
    with tritonserver() as found:
        code = posted(found["http"], "/v2/repository/models/evil/load", load_request(mark), {name: value})
        assert (code, mark.exists()) == (503, False)


STUDY = ("-f", "locustfiles/step7.py", "--headless", "--cells", "*/b1/c1/*")
BRIEF = ("--seconds", "1", "--warm-up", "2")


def study(folder: Path, found: dict[str, Any], secret: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Step 7 with two queue delays on a tritonserver that somebody else has started."""
    places = {f"--onnx-{way}-url": f"{way}://{found[way]}" for way in ("http", "grpc")} | {
        "--onnx-metrics-url": found["metrics"], "--onnx-model": "emulated", "--queue-delay-us": "0,3000",
        "--endpoints": "onnx-http,onnx-grpc", "--results-dir": str(folder),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "locust",
        *STUDY,
        *BRIEF,
        *(word for pair in places.items() for word in pair),
    ]
    given = {VARIABLE: secret} if secret else {}
    return subprocess.run(
        command, cwd=ROOT, env={**environment(), **given, **more}, capture_output=True, text=True, timeout=200
    )


@pytest.mark.slow
def test_a_study_of_queue_delays_has_the_secret_from_its_environment(tmp_path: Path) -> None:
    with tritonserver(*OPENED) as found:
        refused = study(tmp_path / "refused", found, "")
        began = time.monotonic()
        done = study(tmp_path / "done", found, SECRET)
    assert refused.returncode == 2
    assert f"set {VARIABLE} in the environment to NAME=VALUE" in refused.stdout + refused.stderr
    assert done.returncode in (0, 3), done.stdout + done.stderr
    told = done.stdout + done.stderr
    assert SECRET.partition("=")[2] not in told
    ledger = next((tmp_path / "done").glob("*/ledger.jsonl")).read_text()
    for way in ("http", "grpc"):
        for delay in ("delay-0ms", "delay-3ms"):
            assert f"onnx-{way}/b1/c1/{delay}" in ledger
    assert SECRET.partition("=")[2] not in ledger
    assert time.monotonic() - began < 200
