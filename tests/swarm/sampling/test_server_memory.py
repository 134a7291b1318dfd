"""What servers hold in memory: of real process trees, of played ones, and in the ledger."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from swarm.sampling.gpus import memory_by_process
from swarm.sampling.machine import ServerMemory, family, held_by, memory_of, parts_of
from tests.fake_nvml import FakeNvml, NVMLError
from tests.swarm.stand import Stand, a_run
from users.endpoint import Endpoint

MB = 1_000_000
ALLOCATED, MAPPED = 96 * MB, 48 * MB
TREE = f"""
import mmap, os, sys
zombie = os.fork() or os._exit(0)
os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
kept = bytearray(b"x") * {ALLOCATED}
common = mmap.mmap(-1, {MAPPED})
common.write(b"y" * {MAPPED})
if os.fork() == 0:
    common.seek(0)
    common.read({MAPPED})
    print("there", flush=True)
sys.stdin.read()
"""
ROLLUP = """55d0c0000000-7ffd00000000 ---p 00000000 00:00 0                          [rollup]
Rss:              104000 kB
Pss:               60000 kB
Pss_Dirty:         50000 kB
Pss_Anon:          40000 kB
Pss_File:          15000 kB
Pss_Shmem:          5000 kB
"""
ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "127.0.0.1:8010", "m")


@pytest.fixture(scope="module")
def tree() -> Iterator[int]:
    """A process that has allocated 96 MB, a fork that shares them and 48 MB more, and one that has ended."""
    command = [sys.executable, "-I", "-S", "-c", TREE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def test_what_a_tree_shares_counts_once(tree: int) -> None:
    assert len(family(tree)) == 3, "one of them is a zombie"
    held = held_by(family(tree))
    assert (held["processes"], held["how"]) == (2, "pss")
    assert held["anonymous_bytes"] == pytest.approx(ALLOCATED, abs=12 * MB)
    assert held["shared_bytes"] == pytest.approx(MAPPED, abs=MB)
    parts = held["anonymous_bytes"] + held["file_bytes"] + held["shared_bytes"]
    assert held["resident_bytes"] == pytest.approx(parts, abs=MB)


def test_where_shares_cannot_be_read_it_counts_for_each_and_says_so(tree: int) -> None:
    held = held_by(family(tree), lambda pid: {"rss": memory_of(pid)["rss"]})
    assert held["how"] == "rss"
    assert 2 * (ALLOCATED + MAPPED) <= held["resident_bytes"] <= 2 * (ALLOCATED + MAPPED) + 40 * MB
    assert "anonymous_bytes" not in held


def test_one_process_whose_shares_are_hidden_makes_all_of_them_plain() -> None:
    told = {1: {"rss": 100, "resident_bytes": 5}, 2: {"rss": 200}}
    held = held_by(told, told.__getitem__)
    assert held == {"resident_bytes": 300, "processes": 2, "how": "rss"}


def test_processes_that_have_gone_are_left_out() -> None:
    def tell(pid: int) -> dict[str, int]:
        if pid == 2:
            raise ProcessLookupError(pid)
        return {"rss": 100, "resident_bytes": 5}

    assert held_by([1, 2], tell) == {"resident_bytes": 5, "processes": 1, "how": "pss"}
    assert held_by([2], tell) == {}


def test_a_process_that_has_ended_holds_nothing() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ""]) as process:
        pass
    assert family(process.pid) == []
    assert ServerMemory({"endpoints": {"onnx": {"pid": process.pid}}}, dict).read(ONNX) == {}


def test_the_kernels_summary_by_our_names() -> None:
    known = {"resident_bytes": 61_440_000, "file_bytes": 15_360_000, "shared_bytes": 5_120_000}
    assert parts_of(ROLLUP) == {**known, "anonymous_bytes": 40_960_000}
    assert parts_of(ROLLUP.replace("Pss_Anon", "Of_Later")) == known
    assert parts_of("") == {}


def test_a_server_and_its_floor_are_one_and_others_are_unknown(tree: int) -> None:
    memory = ServerMemory({"endpoints": {"onnx": {"pid": tree}}}, dict)
    found = memory.read(ONNX)
    assert (found["server"], found["processes"]) == ("onnx", 2)
    assert memory.read(ONNX.floor())["server"] == "onnx"
    assert memory.read(Endpoint("pytorch-http", "pytorch", "http", "jpeg", "127.0.0.1:8002")) == {}
    assert ServerMemory({}, dict).read(ONNX) == {}
    named = ServerMemory({"endpoints": {"mine": {"pid": tree}}}, dict)
    assert named.read(replace(ONNX, server="mine"))["server"] == "mine"
    assert named.read(ONNX) == {}


def test_gpu_memory_is_of_the_servers_own_processes(tree: int) -> None:
    servers = {"endpoints": {"onnx": {"pid": tree}}}
    child = family(tree)[1]
    own = ServerMemory(servers, lambda: {tree: 1_000, child: 20, 1: 400_000}).read(ONNX)
    assert own["gpu_memory_bytes"] == 1_020
    assert "gpu_memory_bytes" not in ServerMemory(servers, lambda: {1: 400_000}).read(ONNX)


class Processes(FakeNvml):
    """Two GPUs; one process is on both, one does not tell how much it holds, and a third GPU is lost."""

    @property
    def open(self) -> int:
        return self.started - self.stopped

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        if handle == 2:
            raise NVMLError("GPU is lost")
        both = SimpleNamespace(pid=70, usedGpuMemory=100 * (handle + 1))
        return [both, SimpleNamespace(pid=80 + handle, usedGpuMemory=None)]


def test_a_process_on_several_gpus_holds_what_it_has_on_all() -> None:
    nvml = Processes()
    assert memory_by_process(nvml) == {70: 300}
    assert nvml.open == 0


def test_the_ledger_has_it_before_and_after_the_measure_phase(stand: Stand) -> None:
    stand.held = [{"server": "a", "resident_bytes": held, "how": "pss"} for held in (5, 9)]
    stand.conductor(a_run()).walk()
    line = {"kind": "memory", "cell": "a-http/b4/c2", "repeat": 1, "server": "a", "how": "pss"}
    before, after = (record for record in stand.records() if record["kind"] == "memory")
    assert before == line | {"when": "before", "resident_bytes": 5}
    assert after == line | {"when": "after", "resident_bytes": 9}


def test_nothing_is_noted_of_a_server_of_others(stand: Stand) -> None:
    stand.conductor(a_run()).walk()
    assert "memory" not in {record["kind"] for record in stand.records()}
