"""The parts of `up` that need no server: ports, run-time copies, what is missing, how processes end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server import shared_memory, up, wheel
from server.child import Child, stop_all
from server.errors import SetUpError
from server.fleet import Fleet
from server.net import choose_ports, get, reachable
from server.repository import make_repository, render_config
from server.spec import ROOT
from server.voice import Voice

DEADLINE_S = 20


def until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_taken_port_is_replaced_and_a_free_one_kept():
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as freed:
        free = freed.getsockname()[1]
        freed.close()
        ports = choose_ports("127.0.0.1", [taken.getsockname()[1], free])
        assert ports[1] == free
        assert ports[0] not in (taken.getsockname()[1], free)


def test_a_host_that_is_not_ours_is_named():
    with pytest.raises(SetUpError, match=r"^--host 192\.0\.2\.1 is no IPv4 address of this machine"):
        choose_ports("192.0.2.1", [0])
    assert reachable("0.0.0.0") == "127.0.0.1"
    assert get("127.0.0.1:1", "/") is None


def test_a_configuration_is_rendered_with_its_delay_and_parameters():
    text = "dynamic_batching {\n  max_queue_delay_microseconds: 10000\n}\n"
    assert render_config(text, 250, {"weights": 'my "best"'}) == (
        "dynamic_batching {\n  max_queue_delay_microseconds: 250\n}\n"
        'parameters { key: "weights" value { string_value: "my \\"best\\"" } }\n'
    )


@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_a_repository_is_made_once_and_read_by_its_own_name(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("server.repository.CACHE", tmp_path)
    first = make_repository(engine, 250, {"weights": "w"})
    assert make_repository(engine, 250, {"weights": "w"}) == first
    assert make_repository(engine, 251, {"weights": "w"}) != first
    (model,) = first.iterdir()
    config = (model / "config.pbtxt").read_text()
    assert f'name: "{model.name}"' in config
    assert "max_queue_delay_microseconds: 250\n" in config
    source = ROOT / "triton_repo" / engine / model.name / "1" / "model.py"
    assert (model / "1" / "model.py").read_text() == source.read_text()


def test_an_unsupported_machine_is_told_so_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(SetUpError, match=r"^tritonserver's wheel runs on Linux x86-64 only: "):
        up.run(up.parse(["--log-dir", str(tmp_path)]), Voice(as_json=True))
    assert list(tmp_path.iterdir()) == []


def test_what_tritonserver_lacks_is_named(monkeypatch):
    monkeypatch.setattr(wheel, "version", lambda _: "2.4.1")
    with pytest.raises(
        SetUpError, match=r"^numpy is 2\.4\.1, and tritonserver's Python backend returns empty"
    ):
        wheel.find_wheel()
    monkeypatch.setattr(wheel, "find_spec", lambda _: None)
    with pytest.raises(SetUpError, match=r"^tritonserver is not installed: run `pip install"):
        wheel.find_wheel()
    monkeypatch.setattr(wheel, "PYTHON", "3.99")
    with pytest.raises(SetUpError, match=r"^this Python was built without libpython3\.99\.so\.1\.0"):
        wheel.find_libpython()


@pytest.mark.parametrize("names", ["pytorch,tensorrt", "", ","])
def test_only_takes_known_servers(names, capsys):
    with pytest.raises(SystemExit) as caught:
        up.parse(["--only", names])
    assert caught.value.code == 2
    assert "--only: takes some of pytorch,onnx,openvino" in capsys.readouterr().err


def test_events_are_json_lines(capsys):
    voice = Voice(as_json=True)
    voice.progress("starting onnx...")
    voice.died("onnx", -6, "onnx.log", "the end")
    voice.error("no numpy.", "")
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [
        {"event": "progress", "text": "starting onnx..."},
        {"event": "died", "server": "onnx", "exit": -6, "log": "onnx.log", "log_tail": "the end"},
        {"event": "error", "text": "no numpy.", "log_tail": ""},
    ]
    assert err == ""


def test_people_hear_of_errors_on_stderr(capsys):
    Voice(as_json=False).error("no numpy.", "")
    Voice(as_json=False).error("onnx ended while starting.", "one\ntwo")
    assert capsys.readouterr() == ("", "no numpy.\nonnx ended while starting.\none\ntwo\n")


def test_people_get_a_table(capsys):
    Voice(as_json=False).ready(
        {"model": "ViT-B-32", "weights": "random (seed 0)"},
        {"onnx": {"http": "127.0.0.1:8010", "grpc": "127.0.0.1:8011", "pid": 1}},
    )
    assert capsys.readouterr().out == (
        "ready: ViT-B-32, weights random (seed 0)\n"
        "  onnx      http 127.0.0.1:8010  grpc 127.0.0.1:8011\n"
        "Ctrl-C stops them.\n"
    )


def test_a_stopped_child_takes_its_helpers_along_even_if_it_is_deaf(tmp_path):
    script = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '100']).pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    child = Child("deaf", [sys.executable, "-c", script], os.environ, tmp_path)
    until(lambda: child.log_tail())
    helper = int(child.log_tail())
    started = time.monotonic()
    stop_all([child])
    assert time.monotonic() - started < 6
    assert child.exit_code() == -signal.SIGKILL
    until(lambda: not alive(helper))


def test_a_child_and_its_helpers_end_when_its_parent_is_killed(tmp_path):
    script = (
        "import os, pathlib, sys, time\n"
        "from server.child import Child\n"
        "command = ['sh', '-c', 'nohup sleep 100 & echo $!; wait']\n"
        "child = Child('orphan', command, os.environ, pathlib.Path(sys.argv[1]))\n"
        "while not child.log_tail(): time.sleep(0.01)\n"
        "print(child.pid, child.log_tail().split()[0], flush=True)\n"
        "time.sleep(100)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        orphans = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    until(lambda: not any(alive(pid) for pid in orphans))


def test_a_failed_command_gives_its_last_line(tmp_path):
    fleet = Fleet(tmp_path, Voice(as_json=True), lambda: time.sleep(0.01))
    with pytest.raises(SetUpError, match=r"^no such model\.$"):
        fleet.run("export", ["sh", "-c", "echo trying; echo no such model.; exit 2"], os.environ)


def test_tritonservers_tables_stay_out_of_a_log_tail(tmp_path):
    child = Child("tables", ["printf", "one\\n+--+\\n| a |\\n+--+\\n\\ntwo\\n"], os.environ, tmp_path)
    assert child.wait(DEADLINE_S)
    assert child.log_tail() == "one\ntwo"
    child.bury()


def test_a_queue_delay_below_zero_is_refused(capsys):
    with pytest.raises(SystemExit):
        up.parse(["--queue-delay-us", "-1"])
    assert "--queue-delay-us takes microseconds, 0 or more" in capsys.readouterr().err


def test_shared_memory_of_supervisors_that_are_gone_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "FOLDER", tmp_path)
    monkeypatch.setattr(shared_memory, "PROC", tmp_path / "proc")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    for name in (
        "inferswarm_6_onnx_a",
        "inferswarm_7_onnx_b",
        "inferswarm_7_openvino_c",
        "inferswarm_x_y",
        "other",
    ):
        (tmp_path / name).touch()
    shared_memory.remove_orphans()
    left = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert left == {"inferswarm_7_onnx_b", "inferswarm_7_openvino_c", "inferswarm_x_y", "other"}
    shared_memory.remove("inferswarm_7_onnx_")
    assert not (tmp_path / "inferswarm_7_onnx_b").exists()
