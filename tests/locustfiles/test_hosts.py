"""Studies on several client hosts, for real: namespaces, ssh, hosts that die, launchers that are stopped."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from swarm.launcher.orphans import launcher_of
from swarm.links.namespace import NAMESPACES
from tests.locustfiles.console import ONCE, ROOT, Console, all_gone
from tests.locustfiles.test_workers import wait_until_measuring
from tests.processes import free_port, is_listening, wait_until
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd
from tests.swarm.links.means import real

pytestmark = [pytest.mark.system, pytest.mark.slow]

SWARM = [sys.executable, "-m", "swarm"]
ADDRESS = "198.51.100.7"
"""Set apart for documentation (RFC 5737): an address of this machine's that every host can reach."""
SLOW = ("--host", ADDRESS, "--delay-ms", "40")
NETNS = '[[host]]\nname = "{0}"\nkind = "netns"\n'


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """A stand-in for the PyTorch service, at an address that is not loopback."""
    add, port = ["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], free_port()
    subprocess.run(add, check=True)
    try:
        fake = str(ROOT / "tests/fake_service.py")
        Console([sys.executable, fake, str(port), *SLOW], tmp_path, "service")
        wait_until(lambda: is_listening(port, ADDRESS), 20)
        yield f"{ADDRESS}:{port}"
    finally:
        subprocess.run([*add[:2], "delete", *add[3:]], check=True)


def launched(folder: Path, *arguments: str) -> Console:
    """`inferswarm run`, its results in a folder."""
    folder.mkdir()
    return Console([*SWARM, "run", "--results-dir", str(folder), *ONCE, *arguments], folder)


def eight_users(folder: Path, service: str, hosts: str, *amounts: str) -> Console:
    """One cell of eight users on some hosts."""
    cell = ("--cells", "*/b1/c8", "--warm-up", "1", *amounts)
    target = ("--pytorch-url", service, "--hosts", hosts)
    return launched(folder, "-f", "locustfiles/step7.py", *target, *cell)


def three_hosts(sshd: Sshd, folder: Path) -> str:
    """A hosts.toml of two namespaces here and a machine that is reached by ssh."""
    file = folder / "hosts.toml"
    far = sshd.host_entry("far", checkout_at(folder / "far"))
    file.write_text(NETNS.format("near") + NETNS.format("next") + far)
    return str(file)


def worker_on(host: str) -> psutil.Process:
    """The process of the one worker on a host."""
    for process in psutil.process_iter():
        try:
            environ, command = process.environ(), process.cmdline()
        except psutil.Error:
            continue
        if environ.get("INFERSWARM_HOST") == host and "--worker" in command and "locust" in command:
            return process
    raise AssertionError(f"no worker on {host}")


def of_launcher(console: Console) -> list[psutil.Process]:
    """All processes that a launcher has started, directly or not."""
    own = f"{console.process.pid}-"
    return [process for process in psutil.process_iter() if launcher_of(process.pid).startswith(own)]


def left_by(pid: int) -> list[str]:
    """Namespaces, devices and temporary folders of a launcher."""
    devices = [entry.name for entry in Path("/sys/class/net").iterdir() if entry.name.startswith("is")]
    folders = [entry.name for entry in Path(tempfile.gettempdir()).glob(f"inferswarm-*-{pid}-*")]
    return [entry.name for entry in NAMESPACES.glob(f"inferswarm-{pid}-*")] + devices + folders


@real
@needs_sshd
def test_two_namespaces_and_a_machine_by_ssh_run_one_study(service: str, tmp_path: Path) -> None:
    with Sshd(tmp_path) as sshd:
        hosts = three_hosts(sshd, tmp_path)
        more = ("--ssh-config", str(sshd.config))
        console = eight_users(tmp_path / "out", service, hosts, "--seconds", "2", *more)
        assert console.wait(90) == 0, console.text
    (row,) = console.cells()
    assert (row["workers"], row["hosts"], row["failures"]) == ("3", "3", "0")
    header, *records = console.ledger()
    assert [(host["name"], host["kind"], host["workers"]) for host in header["hosts"]] == [
        ("near", "netns", 1), ("next", "netns", 1), ("far", "ssh", 1),
    ]  # fmt: skip
    users = [record["users"] for record in records if record["kind"] == "drained"]
    assert sorted(users) == [2, 3, 3]
    assert {path.name for path in (console.result() / "logs").glob("worker-*")} == {
        "worker-near-1.log", "worker-next-1.log", "worker-far-1.log",
    }  # fmt: skip
    assert left_by(console.process.pid) == []
    assert "the master's port got" not in console.text


@real
@needs_sshd
def test_a_host_that_is_killed_is_noticed_and_the_study_ends(service: str, tmp_path: Path) -> None:
    with Sshd(tmp_path) as sshd:
        hosts = three_hosts(sshd, tmp_path)
        more = ("--ssh-config", str(sshd.config))
        console = eight_users(tmp_path / "out", service, hosts, "--seconds", "6", *more)
        wait_until_measuring(console)
        worker_on("far").kill()
        assert console.wait(60) == 3, console.text
    (row,) = console.cells()
    assert "worker-lost" in row["caveats"].split(";")
    assert "worker far-1 ended (exit code 137)" in console.text
    assert left_by(console.process.pid) == []


@real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_launcher_that_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    console = launched(
        tmp_path / "out", "-f", "locustfiles/step7_contention.py", "--link", "lan",
        "--cells", "*/same-args/*", "--seconds", "60", "--warm-up", "1",
    )  # fmt: skip
    wait_until_measuring(console)
    processes = of_launcher(console)
    assert len(processes) >= 6, "master, four workers, their supervisors, servers"
    assert len(left_by(console.process.pid)) >= 3, "two namespaces, and a way to them"
    os.kill(console.process.pid, number)
    code = console.wait(60)
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
        subprocess.run([*SWARM, "link"], check=True, capture_output=True, cwd=ROOT, timeout=60)
    else:
        assert code == 3, console.text
    assert all_gone(processes)
    assert left_by(console.process.pid) == []
    assert (console.result() / "report.html").exists(), "what was measured is kept"


def test_topologies_and_channels_are_axes_and_the_kernel_sees_their_connections(tmp_path: Path) -> None:
    console = launched(
        tmp_path / "out", "-f", "locustfiles/step7.py", "--workers", "4", "--emulate", "a100",
        "--topology", "1,4", "--channels", "shared,pool:2", "--cells", "emulated-grpc/b1/c8/*",
        "--iterations", "20", "--seconds", "1.2", "--warm-up", "1",
    )  # fmt: skip
    # 3 where this machine is too busy for four workers, which is said; their connections are the same.
    assert console.wait(90) in (0, 3), console.text
    rows = {row["cell"]: row for row in console.cells()}
    seen = {name: (row["channels"], row["workers"], row["tcp_connections"]) for name, row in rows.items()}
    expected = {
        "shared/1w": ("shared", "1", "1"), "shared/4w": ("shared", "4", "4"),
        "pool:2/1w": ("pool:2", "1", "2"), "pool:2/4w": ("pool:2", "4", "8"),
    }  # fmt: skip
    assert seen == {f"emulated-grpc/b1/c8/{variant}": values for variant, values in expected.items()}
    assert not any("connections-differ" in row["caveats"] for row in rows.values())
