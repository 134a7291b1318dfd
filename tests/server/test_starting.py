"""Starting with `up`: ports, run-time copies, what is missing, how it speaks, and a start that fails."""

import json
import socket
import subprocess
import sys

import pytest
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from server.embedded import up
from server.embedded.events import Events
from server.embedded.options import wanted
from server.errors import SetUpError
from server.net import choose_ports, get, reachable
from server.spec import ROOT
from server.triton import tritonserver
from server.triton.repository import TRITON_MODELS, make_repository, render_config
from server.triton.tritonserver import make_backends

DEADLINE_S = 120


def test_a_taken_port_is_replaced_and_a_free_one_kept():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as freed:
        free = freed.getsockname()[1]
        freed.close()
        ports = choose_ports("127.0.0.1", [taken.getsockname()[1], free])
        assert ports[1] == free
        assert ports[0] not in (taken.getsockname()[1], free)


def test_a_host_that_is_not_ours_is_named():
    with pytest.raises(SetUpError, match=r"^--host 192\.0\.2\.1 is not an IPv4 address of this machine"):
        choose_ports("192.0.2.1", [0])
    assert reachable("0.0.0.0") == "127.0.0.1"
    assert get("127.0.0.1:1", "/") is None


def test_a_configuration_is_rendered_with_its_delay_and_parameters():
    text = "dynamic_batching {\n  max_queue_delay_microseconds: 10000\n}\ninstance_group [ { count: 1 } ]\n"
    assert render_config(text, 250, 3, {"weights": 'my "best"'}) == (
        "dynamic_batching {\n  max_queue_delay_microseconds: 250\n}\ninstance_group [ { count: 3 } ]\n"
        'parameters { key: "weights" value { string_value: "my \\"best\\"" } }\n'
    )


@pytest.mark.parametrize("engine", ["onnx", "openvino", "emulated"])
def test_a_repository_is_made_once_and_read_by_its_own_name(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path))
    first = make_repository(engine, 250, 2, {"weights": "w"})
    assert make_repository(engine, 250, 2, {"weights": "w"}) == first
    assert make_repository(engine, 251, 2, {"weights": "w"}) != first
    assert make_repository(engine, 250, 1, {"weights": "w"}) != first
    null = ROOT / "triton_repo" / "null" / "null"
    for file in ("config.pbtxt", "1/model.py"):
        assert (first / "null" / file).read_bytes() == (null / file).read_bytes()
    (model,) = (folder for folder in first.iterdir() if folder.name != "null")
    config = (model / "config.pbtxt").read_text()
    assert f'name: "{model.name}"' in config
    assert "max_queue_delay_microseconds: 250\n" in config
    assert "count: 2 } ]\n" in config
    source = ROOT / "triton_repo" / engine / model.name / "1" / "model.py"
    assert (model / "1" / "model.py").read_text() == source.read_text()


@pytest.mark.parametrize("engine", ["onnx", "emulated"])
def test_a_repository_holds_what_takes_other_payloads(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path))
    model = TRITON_MODELS[engine]
    plain = make_repository(engine, 250, 2, {})
    made = make_repository(engine, 250, 2, {}, ("fp32", "jpeg", "uint8"))
    new = {folder.name for folder in made.iterdir()} - {folder.name for folder in plain.iterdir()}
    assert new == {"decode_jpeg", "normalise_uint8", f"{model}_jpeg", f"{model}_uint8"}
    for payload, step in (("jpeg", "decode_jpeg"), ("uint8", "normalise_uint8")):
        folder = made / f"{model}_{payload}"
        config = text_format.Parse((folder / "config.pbtxt").read_text(), ModelConfig())
        assert config.name == folder.name
        assert [step.model_name for step in config.ensemble_scheduling.step] == [step, model]
        assert [path.name for path in (folder / "1").iterdir()] == []
        source = ROOT / "triton_repo" / "payloads" / step / "1" / "model.py"
        assert (made / step / "1" / "model.py").read_text() == source.read_text()


@pytest.mark.parametrize(
    ("line", "servers", "upstream"),
    [
        ("--only pytorch,onnx", ("pytorch", "onnx"), ""),
        ("--only gateway", ("gateway", "onnx"), "onnx"),
        ("--only pytorch,gateway,onnx", ("pytorch", "gateway", "onnx"), "onnx"),
        ("--only gateway --emulate 1+0", ("gateway", "emulated"), "emulated"),
        ("--only onnx,emulated,gateway --emulate 1+0", ("onnx", "emulated", "gateway"), "onnx"),
    ],
)
def test_a_gateway_brings_its_upstream(line, servers, upstream):
    found = wanted(up.parse(line.split()))
    assert (found.servers, found.upstream) == (servers, upstream)


def test_a_tritonserver_takes_float32_in_any_case():
    assert up.parse([]).payloads == ("fp32",)
    assert up.parse(["--payloads", "uint8, jpeg"]).payloads == ("fp32", "uint8", "jpeg")


def test_an_unsupported_machine_is_told_so_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(SetUpError, match=r"^tritonserver's wheel runs on Linux x86-64 only: "):
        up.run(up.parse(["--log-dir", str(tmp_path)]), Events(as_json=True))
    assert list(tmp_path.iterdir()) == []


def test_what_tritonserver_lacks_is_named(monkeypatch):
    monkeypatch.setattr(tritonserver, "find_spec", lambda _: None)
    with pytest.raises(SetUpError, match=r"^tritonserver is not installed: run `pip install"):
        tritonserver.find_wheel()
    monkeypatch.setattr(tritonserver, "lack", lambda _: "no stub.")
    with pytest.raises(SetUpError, match=r"^no stub\.$"):
        tritonserver.find_wheel()


def test_events_are_json_lines(capsys):
    events = Events(as_json=True)
    events.progress("starting onnx...")
    events.died("onnx", -6, "onnx.log", "the end")
    events.error("no numpy.", "")
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [
        {"event": "progress", "text": "starting onnx..."},
        {"event": "died", "server": "onnx", "exit": -6, "log": "onnx.log", "log_tail": "the end"},
        {"event": "error", "text": "no numpy.", "log_tail": ""},
    ]
    assert err == ""


def test_people_hear_of_errors_on_stderr(capsys):
    Events(as_json=False).error("no numpy.", "")
    Events(as_json=False).error("onnx ended while starting.", "one\ntwo")
    assert capsys.readouterr() == ("", "no numpy.\nonnx ended while starting.\none\ntwo\n")


def test_people_get_a_table(capsys):
    Events(as_json=False).ready(
        {"model": "ViT-B-32", "weights": "random (seed 0)"},
        {"onnx": {"http": "127.0.0.1:8010", "grpc": "127.0.0.1:8011", "pid": 1}},
    )
    assert capsys.readouterr().out == (
        "ready: ViT-B-32, weights random (seed 0)\n"
        "  onnx      http 127.0.0.1:8010  grpc 127.0.0.1:8011\n"
        "Ctrl-C stops them.\n"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--queue-delay-us=-1", "--queue-delay-us must be at least 0 microseconds"),
        ("--start-timeout-s=0", "--start-timeout-s must be more than 0 seconds"),
        ("--start-timeout-s=nan", "--start-timeout-s must be more than 0 seconds"),
        ("--instances=0", "--instances must be a whole number, at least 1"),
        ("--payloads=fp32,png", "--payloads: takes some of fp32,jpeg,uint8, not 'fp32,png'"),
        ("--only=pytorch,tensorrt", "--only: takes some of pytorch,onnx,openvino"),
        ("--only=,", "--only: takes some of pytorch,onnx,openvino"),
    ],
)
def test_an_option_that_will_not_do_is_refused(given, said, capsys):
    with pytest.raises(SystemExit) as caught:
        up.parse([given])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def refused(*options):
    """The error with which `up` ends."""
    command = [sys.executable, "-m", "server", "up", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=DEADLINE_S)
    assert done.returncode == 2
    error = json.loads(done.stdout.splitlines()[-1])
    assert error["event"] == "error"
    return error


@pytest.mark.system
def test_a_server_that_cannot_start_is_an_error(tmp_path):
    error = refused("--only", "pytorch", "--log-dir", str(tmp_path), "--model", "ViT-Z")
    log = tmp_path / "pytorch.log"
    assert error["text"].startswith(f"pytorch ended while starting; {log} ends with: open_clip has no model ")
    assert log.read_text().strip() == error["log_tail"]


@pytest.mark.system
def test_a_model_whose_process_cannot_be_started_is_told_at_once(tmp_path, monkeypatch):
    """Tritonserver itself goes on waiting for it, for as long as anybody does."""
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path))
    stub = make_backends(tritonserver.find_wheel()) / "python" / "triton_python_backend_stub"
    stub.write_text("#!/no/such/loader\n")
    error = refused("--emulate", "1+0", "--start-timeout-s", "3600")
    (log,) = tmp_path.glob("logs/*/emulated.log")
    assert error["text"].startswith(f"emulated cannot start; {log} says: bash: line ")
    assert str(stub) in error["text"]
    assert error["text"].partition("says: ")[2] in log.read_text()
