"""Whose processor time it was, of processes that are made up and of real ones."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from swarm.sampling.processes import EVERY_READINGS, OthersCpu, SeenProcess, seen_processes

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
NAMES = {2: "kthreadd", 3: "ksoftirqd", 10: "locust", 11: "relay", 20: "worker", 30: "gunicorn"}
NAMES |= {31: "gunicorn", 40: "redis", 50: "yes", 51: "cron", 52: "a", 53: "b"}
PARENTS = {3: 2, 11: 10, 31: 30}


def link(pid: int, port: int, to: int | None = None) -> Any:
    """A listener, or a connection to a port."""
    far = SimpleNamespace(port=to) if to else ()
    return SimpleNamespace(
        pid=pid, laddr=SimpleNamespace(port=port), raddr=far, status="ESTABLISHED" if to else "LISTEN"
    )


LINKS = (
    *(link(10, 5557), link(20, 40_001, 5557), link(30, 8000), link(31, 40_002, 6379), link(40, 6379)),
    *(link(20, 40_003, 8000), link(30, 8000, 40_003), link(51, 9100)),
)


def told(port: int | None, *used: dict[int, int], links: tuple[Any, ...] = LINKS, **names: str) -> Any:
    """What is told at the last of some looks, by what processes have used until each."""
    called = NAMES | {int(pid[1:]): name for pid, name in names.items()}
    looks = iter(
        {pid: SeenProcess(called[pid], PARENTS.get(pid, 1), 7, ticks.get(pid, 0)) for pid in NAMES}
        for ticks in used
    )
    cpu = OthersCpu(port, (), lambda: next(looks), lambda: links, own=10)
    found = {}
    for at in range((len(used) - 1) * EVERY_READINGS + 1):
        found = cpu.read()
        assert at % EVERY_READINGS == 0 or found == {}
    return found


def test_neither_the_study_nor_the_server_nor_the_kernel_is_another() -> None:
    every = {pid: 100 for pid in NAMES if pid < 50}
    named = {"yes": 150, "cron": 3, "a": 2, "others": 1}
    used = {**every, 50: 160, 51: 3, 52: 2, 53: 1}
    assert told(8000, {50: 10}, used)["others_ns"] == {name: n * TICK_NS for name, n in named.items()}
    assert told(8000, {50: 10}) == {}, "one look tells nothing"


def test_a_server_that_is_not_seen_is_not_taken_for_another() -> None:
    assert told(8001, {}, {50: 100}) == {}
    assert told(8000, {}, {50: 100}, p30="docker-proxy") == {}
    assert told(8000, {}, {30: 14, 50: 100}) == {}, "it hands on, and who computes for it is not seen"
    assert told(8000, {}, {31: 15, 50: 100})["others_ns"]["yes"] == 100 * TICK_NS
    away = told(None, {}, {30: 5, 50: 100})["others_ns"]
    assert (away["gunicorn"], away["yes"]) == (5 * TICK_NS, 100 * TICK_NS)


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux shows processes")
def test_real_processes_are_seen_with_what_they_used() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burning:
        try:
            began = seen_processes()[burning.pid].began
            while (seen := seen_processes()[burning.pid]).used < 5:
                pass
            assert (seen.name[:6], seen.parent, seen.began) == ("python", os.getpid(), began)
        finally:
            burning.kill()
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = OthersCpu(server.getsockname()[1], own=-1)
        assert here.read() == {}
        assert here.read() == {}
        while "others_ns" not in here.read():  # who listens is seen, and computes here
            pass
