"""Workers on the far side of a real sshd: what they are told, the tunnel, and that they end with us."""

import itertools
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from swarm.hosts.host import PORT_TAKEN, SSH_FAILED, Host
from swarm.hosts.hosts_file import HostSpec, read_hosts
from tests.processes import alive, children, eventually
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd

pytestmark = [pytest.mark.system, needs_sshd]
FOLDER = "it's $HOME there"
# Stands for Locust: says to its master what it was given, ends as its first argument says, and says goodbye.
WORKER = """
import json, os, signal, socket, sys
def goodbye(*_):
    master.sendall(b"goodbye")
    sys.exit(5)
signal.signal(signal.SIGTERM, goodbye)
where = sys.argv[sys.argv.index("--master-host") + 1], int(sys.argv[-1])
with socket.create_connection(where) as master:
    told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "pid": os.getpid()}
    told["host"] = os.environ["INFERSWARM_HOST"]
    told["token"] = os.environ.get("INFERSWARM_TOKEN")
    master.sendall(json.dumps(told).encode() + b"\\n")
    print("a line from afar", flush=True)
    if sys.argv[1] != "wait":
        sys.exit(int(sys.argv[1]))
    while True:
        signal.pause()
"""


class Master:
    """Where workers connect to."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(20)
        self.address: tuple[str, int] = self._socket.getsockname()

    def hears(self) -> tuple[socket.socket, dict[str, Any]]:
        """The next worker's connection, and what it says of itself."""
        found, _ = self._socket.accept()
        found.settimeout(20)
        told: dict[str, Any] = json.loads(found.makefile().readline())
        return found, told

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def master() -> Iterator[Master]:
    made = Master()
    yield made
    made.close()


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSpec]:
    folder = tmp_path_factory.mktemp("ssh")
    there = checkout_at(folder / FOLDER)
    (there / "locust").mkdir()
    (there / "locust/__init__.py").touch()
    (there / "locust/__main__.py").write_text(WORKER)
    with Sshd(folder) as sshd:
        table = folder / "hosts.toml"
        table.write_text(sshd.host_entry("far", there))
        (found,) = read_hosts(table, str(sshd.config))
        yield found


def started(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def test_what_a_worker_is_told_and_what_it_says(spec: HostSpec, master: Master) -> None:
    odd = "--cells=onnx-*/b1/* $(touch made) it's"
    with started(Host(spec).worker_command(["7", odd], master.address, 0)) as process:
        connection, told = master.hears()
        connection.close()
        assert process.stdout is not None
        assert process.stdout.read() == "a line from afar\n"
        assert process.wait() == 7
    assert told["argv"][:5] == ["7", odd, "--worker", "--master-host", "127.0.0.1"]
    assert (told["host"], told["cwd"]) == ("far", spec.path)
    assert not list(Path(spec.path).glob("made"))


def test_a_token_comes_to_the_worker_and_to_no_command_line(
    spec: HostSpec, master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "it's $HOME `secret`"
    monkeypatch.setenv("INFERSWARM_TOKEN", secret)
    with started(Host(spec).worker_command(["wait"], master.address, 0)) as process:
        connection, told = master.hears()
        assert told["token"] == secret
        shown = [path.read_bytes() for path in map(command_line, psutil.pids()) if path.exists()]
        assert not [line for line in shown if secret.encode() in line]
        connection.close()
        assert process.stdin is not None
        process.stdin.close()


def command_line(pid: int) -> Path:
    return Path(f"/proc/{pid}/cmdline")


def test_it_may_say_goodbye_through_the_tunnel_when_our_end_is_closed(spec: HostSpec, master: Master) -> None:
    with started(Host(spec).worker_command(["wait"], master.address, 0)) as process:
        connection, told = master.hears()
        assert process.stdin is not None
        process.stdin.close()
        # As long as we hold it, ssh holds the tunnel.
        with connection:
            assert connection.recv(100) == b"goodbye"
        assert process.wait() == 5
    assert not alive(told["pid"])


@pytest.mark.parametrize("killed", ["supervisor", "ssh"])
def test_it_ends_when_what_leads_to_it_is_killed(spec: HostSpec, master: Master, killed: str) -> None:
    process = started(Host(spec).worker_command(["wait"], master.address, 0))
    connection, told = master.hears()
    (ssh,) = children(process.pid)
    os.kill(process.pid if killed == "supervisor" else ssh, signal.SIGKILL)
    assert eventually(lambda: not alive(told["pid"]))
    assert eventually(lambda: not alive(ssh))
    process.communicate()
    connection.close()
    assert process.returncode == (-signal.SIGKILL if killed == "supervisor" else 128 + signal.SIGKILL)


def test_a_tunnel_whose_port_is_taken_is_told_and_the_next_has_another(
    spec: HostSpec, master: Master
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        host = Host(spec)
        host.ports = itertools.chain([holder.getsockname()[1]], host.ports)
        with started(host.worker_command(["0"], master.address, 0)) as process:
            assert process.stderr is not None
            error = process.stderr.read()
            assert process.wait() == SSH_FAILED
        assert PORT_TAKEN in error
        with started(host.worker_command(["0"], master.address, 0)) as process:
            master.hears()[0].close()
            assert process.wait() == 0


def test_a_key_that_is_not_known_there(spec: HostSpec, master: Master, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    config = tmp_path / "config"
    text = Path(spec.config).read_text()
    config.write_text("\n".join(line for line in text.splitlines() if "IdentityFile" not in line) + "\n")
    stranger = replace(spec, config=str(config), identity=str(tmp_path / "key"))
    with started(Host(stranger).worker_command(["0"], master.address, 0)) as process:
        assert process.stderr is not None
        error = process.stderr.read()
        assert process.wait() == SSH_FAILED
    assert "Permission denied (publickey)" in error
