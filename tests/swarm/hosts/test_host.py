"""The command lines that start workers on hosts of every kind."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.hosts.host import ROOT, Host, in_checkout, ssh_command, tunnel_to
from swarm.hosts.hosts_file import HostSpec

SUPERVISOR = [sys.executable, "-I", "-S", str(ROOT / "swarm/launcher/supervisor.py")]
MASTER = ("10.1.2.3", 5557)
FAR = HostSpec("far", "ssh", address="bench@far")


def inside(host: str, argv: Sequence[str]) -> list[str]:
    return ["enter", host, *argv]


def test_a_worker_on_this_machine() -> None:
    host = Host(HostSpec("h1", "process"), inside)
    assert host.worker_command(["-f", "a b.py"], MASTER, 3) == [
        *SUPERVISOR, "INFERSWARM_HOST=h1", "INFERSWARM_WORKER=3", "--",
        sys.executable, "-P", "-m", "inferswarm", "locust", "-f", "a b.py",
        "--worker", "--master-host", "10.1.2.3", "--master-port", "5557",
    ]  # fmt: skip


def test_a_worker_in_a_network_namespace() -> None:
    command = Host(HostSpec("h1", "netns"), inside).worker_command(["-f", "a.py"], MASTER, 0)
    assert command[: len(SUPERVISOR)] == SUPERVISOR
    assert command[command.index("--") + 1 :][:6] == [
        "enter", "h1", sys.executable, "-P", "-m", "inferswarm",
    ]  # fmt: skip


def test_facts_of_this_machine_and_of_a_namespace() -> None:
    asked = [sys.executable, "-I", str(ROOT / "swarm/hosts/facts.py")]
    assert Host(HostSpec("h1", "process"), inside).facts_command() == asked
    assert Host(HostSpec("h1", "netns"), inside).facts_command() == ["enter", "h1", *asked]
    assert Host(HostSpec("h1", "netns")).facts_command() == asked


def test_a_worker_over_ssh_reaches_the_master_through_a_tunnel() -> None:
    command = Host(FAR).worker_command(["-f", "locustfiles/step7.py"], MASTER, 1)
    assert command[: len(SUPERVISOR) + 3] == [*SUPERVISOR, "--far", "--", "ssh"]
    assert command[-3:-1] == ["--", "bench@far"]
    tunnel = command[command.index("-R") + 1]
    port = int(tunnel.split(":")[1])
    assert tunnel == f"127.0.0.1:{port}:10.1.2.3:5557"
    assert 20_000 <= port < 30_000
    assert command[-1] == (
        "cd ./inferswarm && exec .venv/bin/python -I -S swarm/launcher/supervisor.py INFERSWARM_HOST=far "
        "INFERSWARM_WORKER=1 -- .venv/bin/python -m locust -f locustfiles/step7.py --worker "
        f"--master-host 127.0.0.1 --master-port {port}"
    )


def test_an_ssh_host_is_told_of_tokens_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INFERSWARM_TOKEN", "INFERSWARM_ONNX_TOKEN", "INFERSWARM_INFLUX_TOKEN"):
        monkeypatch.setenv(name, "the secret")
    monkeypatch.setenv("INFERSWARM_TRT_TOKEN", "")
    command = Host(FAR).worker_command(["-f", "a.py"], MASTER, 1)
    assert command[len(SUPERVISOR) :][:4] == [
        "--far", "--tell=INFERSWARM_ONNX_TOKEN,INFERSWARM_TOKEN", "--", "ssh",
    ]  # fmt: skip
    assert "supervisor.py --told INFERSWARM_HOST=far" in command[-1]
    assert not any("the secret" in word for word in command)
    near = Host(HostSpec("h1", "process"), inside).worker_command(["-f", "a.py"], MASTER, 1)
    assert not any("TOKEN" in word for word in near), "children inherit"


def test_every_tunnel_has_a_port_of_its_own() -> None:
    host = Host(FAR)
    tunnels = set()
    for _ in range(100):
        command = host.worker_command([], MASTER, 0)
        tunnels.add(command[command.index("-R") + 1])
    assert len(tunnels) == 100


def test_what_ssh_is_told() -> None:
    spec = HostSpec("far", "ssh", address="far", port=2222, identity="/keys/a b", config="/etc/c")
    command = ssh_command(spec, "true", tunnel_to(20001, "fe80::1", 5557))
    told = ["-F", "/etc/c", "-i", "/keys/a b", "-o", "IdentitiesOnly=yes", "-p", "2222"]
    assert command[-13:] == [*told, "-R", "127.0.0.1:20001:[fe80::1]:5557", "--", "far", "true"][-13:]
    settings = {command[at + 1] for at, word in enumerate(command) if word == "-o"}
    ours = "BatchMode=yes ExitOnForwardFailure=yes ControlMaster=no ServerAliveInterval=5"
    assert {*ours.split()} <= settings
    # Whose key a host must show is the user's own ssh to say: we never weaken it.
    assert not any(setting.startswith(("StrictHostKeyChecking", "UserKnownHosts")) for setting in settings)
    plain = ssh_command(HostSpec("far", "ssh", address="far"), "true")
    assert not {"-F", "-i", "-p", "-R"} & set(plain)


@pytest.mark.parametrize("name", ["it's $(touch made) here", "-P", "a;b", "*"])
def test_no_word_of_ours_is_read_by_the_shell_there(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    line = in_checkout(HostSpec("far", "ssh", path=name), ["printf", "%s|", "`touch made`", "$HOME 'x'"])
    done = subprocess.run(["sh", "-c", f"{line}"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "`touch made`|$HOME 'x'|"
    assert [file.name for file in tmp_path.rglob("*")] == [name]


def test_an_absolute_folder_there_and_one_from_home() -> None:
    assert in_checkout(HostSpec("far", "ssh", path="/opt/x"), ["true"]) == "cd /opt/x && exec true"
    assert shlex.split(in_checkout(HostSpec("far", "ssh", path="x y"), ["true"]))[:2] == ["cd", "./x y"]


def test_where_the_locustfile_lies_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "locustfiles")
    assert Host(HostSpec("h1", "process")).locustfile("step7.py") == str(ROOT / "locustfiles/step7.py")
    assert Host(FAR).locustfile("step7.py") == "locustfiles/step7.py"
    assert Host(FAR).locustfile(str(ROOT / "swarm/../locustfiles/step8.py")) == "locustfiles/step8.py"
    elsewhere = tmp_path / "mine.py"
    with pytest.raises(
        UsageError, match=f"^-f {elsewhere}: host far has only this checkout's files: put the "
    ):
        Host(FAR).locustfile(str(elsewhere))
