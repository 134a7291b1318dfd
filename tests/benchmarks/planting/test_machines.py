"""benchmarks.planting: control groups and what is left of them, the relay, the ensemble's repository."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from benchmarks.planting.machines_cgroup import Parent, files_of, group_of, parent_of
from benchmarks.planting.models_ensemble import SLOW, lay_out
from benchmarks.planting.peers import program
from benchmarks.planting.setup import HERE, Behind
from server.embedded.options import profile_of
from server.spec import FP32
from server.triton.repository import make_repository
from tests.processes import alive, eventually

PERIOD, HOLD_MS, DELAY_MS = 100_000, 60, 80
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
POST = b"POST /infer HTTP/1.1\r\ncontent-Length:3\r\n\r\nabc"
GET = b"GET /stats HTTP/1.1\r\n\r\n"


def test_version_2s_root_is_used_where_it_limits_cpu(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    assert parent_of(tmp_path, "0::/a/b\n") == Parent(tmp_path, True)
    assert files_of(0.3, True) == {"cpu.max": f"30000 {PERIOD}"}


def test_version_1s_own_group_is_used_where_cpu_is_one_of_its_controllers(tmp_path: Path) -> None:
    own = "9:cpuset:/x\n4:cpu,cpuacct:/pod/c\n0::/\n"
    assert parent_of(tmp_path, own) == Parent(tmp_path / "cpu,cpuacct" / "pod" / "c", False)
    assert files_of(0.3, False) == {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": "30000"}


def test_a_machine_without_such_groups_is_told(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory\n")
    with pytest.raises(SystemExit, match="neither version 2's nor version 1's cpu"):
        parent_of(tmp_path, "0::/a\n")


def test_a_command_runs_in_a_group_of_its_own_and_nothing_is_left() -> None:
    if not may_make_groups():
        pytest.skip("no control group may be made here")
    with group_of(0.5, ["WORD=said"]) as words:
        folder = Path(words[-3]).parent
        script = "cat /proc/self/cgroup; echo $WORD; sleep 60 >/dev/null & echo $!"
        done = subprocess.run(
            [*words, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        *groups, said, left = done.stdout.split()
        assert any(line.endswith(folder.name) for line in groups)
        assert said == "said"
        assert alive(int(left))
    assert eventually(lambda: not alive(int(left)))
    assert not folder.exists()


def test_requests_with_a_body_have_the_relay_in_turn(tmp_path: Path) -> None:
    with relayed(tmp_path, "--hold-ms", str(HOLD_MS)) as port:
        clients = [socket.create_connection((HERE, port)) for _ in range(4)]
        began = time.monotonic()
        for client in clients[:3]:
            client.sendall(POST)
        clients[3].sendall(GET)
        assert answer_of(clients[3]) == ANSWER
        looked_s = time.monotonic() - began
        assert [answer_of(client) for client in clients[:3]] == [ANSWER] * 3
        took_s = time.monotonic() - began
        for client in clients:
            client.close()
    assert looked_s < took_s
    assert took_s >= 3 * HOLD_MS / 1e3


def test_bytes_are_delayed_after_they_were_read(tmp_path: Path) -> None:
    with (
        relayed(tmp_path, "--delay-ms", str(DELAY_MS)) as port,
        socket.create_connection((HERE, port)) as client,
    ):
        began = time.monotonic()
        client.sendall(POST)
        assert answer_of(client) == ANSWER
        assert DELAY_MS / 1e3 <= time.monotonic() - began < 5


def test_the_ensembles_decoder_is_ours_and_all_else_is_the_suites(tmp_path: Path) -> None:
    ours = make_repository("emulated", 0, 1, profile_of("7+0").parameters(), (FP32, "jpeg"))
    made = lay_out(tmp_path / "models", ours, SLOW, "decode_jpeg")
    assert (made / "decode_jpeg" / "1" / "model.py").read_bytes() == SLOW.read_bytes()

    assert "count: 1" in (made / "decode_jpeg" / "config.pbtxt").read_text()
    assert {path.name for path in made.iterdir()} == {"decode_jpeg", "emulated", "emulated_jpeg", "null"}


def may_make_groups() -> bool:
    """Whether this user may, on a machine that has them."""
    with suppress(SystemExit), group_of(0.5):
        return True
    return False


def answer_of(client: socket.socket) -> bytes:
    client.settimeout(5)
    return client.recv(1000)


@contextmanager
def relayed(folder: Path, *options: str) -> Iterator[int]:
    """The port of a relay before a server that answers each chunk of bytes that comes."""
    server_program = f"""
import asyncio
async def connected(reader, writer):
    while await reader.read(1000):
        writer.write({ANSWER!r})
async def main():
    server = await asyncio.start_server(connected, {HERE!r}, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", server_program], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = f"{HERE}:{int(server.stdout.readline())}"
            with program("relay.py", *options)(Behind((address,), HERE, folder)) as port:
                yield port
        finally:
            server.kill()
