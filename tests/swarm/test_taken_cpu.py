"""Processor time that was taken away, from the files of a kernel: cgroup v2 and v1, steal, pressure."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm.taken_cpu import (
    Mount,
    Quota,
    TakenCpu,
    Throttling,
    directories,
    host_cpu_ns,
    mounts,
    parts_below,
    pressure_ns,
    quota_of,
    stopped_ns,
)

MS = 1_000_000
PERIOD_NS = 100 * MS
HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
41 31 0:38 /pods /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_where_hierarchies_with_quotas_are_mounted() -> None:
    assert mounts(HYBRID) == [
        Mount(False, "/", Path("/sys/fs/cgroup/cpu")),
        Mount(True, "/pods", Path("/sys/fs/cgroup/unified")),
    ]


def test_a_process_is_in_its_cgroup_and_in_all_above_it() -> None:
    text = "4:memory:/other\n1:cpu,cpuacct:/a/b\n0::/pods/one\n"
    assert directories(text, mounts(HYBRID)) == [
        Path("/sys/fs/cgroup/cpu/a/b"),
        Path("/sys/fs/cgroup/cpu/a"),
        Path("/sys/fs/cgroup/cpu"),
        Path("/sys/fs/cgroup/unified/one"),
        Path("/sys/fs/cgroup/unified"),
    ]


@pytest.mark.parametrize(
    ("path", "root", "parts"),
    [
        ("/", "/", ()),
        ("/docker/9f/x", "/docker/9f", ("x",)),
        ("/elsewhere", "/docker/9f", ()),  # what is mounted is then the container's own
        ("/../other", "/", ()),
    ],
)
def test_paths_below_a_mount(path: str, root: str, parts: tuple[str, ...]) -> None:
    assert parts_below(path, root) == parts


def v2(place: Path, allowed: str, periods: int = 0, throttled_us: int = 0) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "cpu.max").write_text(f"{allowed}\n")
    stat = f"usage_usec 9\nnr_periods 99\nnr_throttled {periods}\nthrottled_usec {throttled_us}\n"
    (place / "cpu.stat").write_text(stat)


def v1(place: Path, quota: int, throttled_ns: int = 0) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (place / "cpu.cfs_period_us").write_text("100000\n")
    (place / "cpu.stat").write_text(f"nr_periods 99\nnr_throttled 20\nthrottled_time {throttled_ns}\n")


def test_quotas_of_cgroups_v2_and_v1_and_none(tmp_path: Path) -> None:
    v2(tmp_path / "a", "50000 100000", 38, 1_900_000)
    v1(tmp_path / "b", 150_000, 443 * MS)
    v2(tmp_path / "c", "max 100000")
    v1(tmp_path / "d", -1)
    two, one = Quota(0.5, PERIOD_NS, 38, 1_900 * MS), Quota(1.5, PERIOD_NS, 20, 443 * MS)
    assert [quota_of(tmp_path / name) for name in ("a", "b", "c", "d", "gone")] == [
        two,
        one,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("cores", "threads", "stopped_share"),
    [(0.5, 1, 0.5), (0.5, 2, 0.75), (2.0, 8, 0.75), (1.0, 4, 0.75), (3.0, 4, 0.25)],
)
def test_a_quota_that_threads_use_up(cores: float, threads: int, stopped_share: float) -> None:
    """Exact: after Q / n of each period n processors stop, which the kernel adds up."""
    summed_ns = round(10 * PERIOD_NS * (threads - cores))
    found = stopped_ns(Quota(cores, PERIOD_NS, 5, 7), Quota(cores, PERIOD_NS, 15, 7 + summed_ns))
    assert found == pytest.approx(10 * PERIOD_NS * stopped_share)


@pytest.mark.parametrize("periods", [0, 1, 2])
def test_a_sum_that_fewer_than_one_thread_explain_or_no_period_is_all_of_it(periods: int) -> None:
    """In one period or two a thread used half a core, slept, and was stopped for a tenth."""
    found = stopped_ns(Quota(0.5, PERIOD_NS, 9, 5), Quota(0.5, PERIOD_NS, 9 + periods, 5 + 10 * MS))
    assert found == 10 * MS


class Machine:
    """A `/proc` with one process and a hierarchy of cgroup v2 in it."""

    def __init__(self, root: Path, cgroup: str = "/pod/app") -> None:
        self.proc, self.cgroups = root / "proc", root / "cgroup"
        for name in ("self", "7"):
            (self.proc / name).mkdir(parents=True)
        (self.proc / "self" / "mountinfo").write_text(f"1 1 0:1 / {self.cgroups} rw - cgroup2 cgroup2 rw\n")
        self.enter("self", cgroup)
        self.enter("7", cgroup)

    def enter(self, pid: str, cgroup: str) -> None:
        (self.proc / pid / "cgroup").write_text(f"0::{cgroup}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_growth_of_the_tightest(machine: Machine) -> None:
    pod, app = machine.cgroups / "pod", machine.cgroups / "pod" / "app"
    v2(pod, "200000 100000", 0, 0)
    v2(app, "50000 100000", 10, 500_000)
    throttling = Throttling(proc=machine.proc)
    v2(app, "50000 100000", 20, 1_000_000)
    assert throttling.take() == (0.5, 500 * MS, 1_000 * MS)
    # Others in the pod use up what it has: now that is what stops the process.
    v2(pod, "200000 100000", 10, 6_000_000)
    assert throttling.take() == (2.0, 750 * MS, 1_000 * MS)
    assert throttling.take() == (0.5, 0, 0)


def test_a_process_that_is_moved_into_a_cgroup(machine: Machine) -> None:
    v2(machine.cgroups / "box", "25000 100000", 40, 9_000_000)
    throttling = Throttling(proc=machine.proc)
    assert throttling.take() is None
    machine.enter("self", "/box")
    assert throttling.take() == (0.25, 0, 0)  # what was before is not its own


def test_whose_cgroup_it_is(machine: Machine) -> None:
    v2(machine.cgroups / "pod", "100000 100000")
    throttling = Throttling(["7", "8"], machine.proc)
    assert not throttling.holds("self")  # before the first take nothing is known
    assert throttling.take() == (1.0, 0, 0)
    assert throttling.holds("self")
    machine.enter("self", "/other")
    assert not throttling.holds("self")


def test_a_system_without_these_files(tmp_path: Path) -> None:
    assert Throttling(proc=tmp_path).take() is None
    assert host_cpu_ns(tmp_path) is None
    assert pressure_ns(tmp_path) is None


def test_what_a_host_wanted_and_what_was_stolen(tmp_path: Path) -> None:
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    (tmp_path / "stat").write_text("cpu  100 2 30 900 50 4 5 60 7 0\ncpu0 1 2 3\n")
    assert host_cpu_ns(tmp_path) == ((100 + 2 + 30 + 4 + 5 + 60) * tick_ns, 60 * tick_ns)
    (tmp_path / "stat").write_text("cpu  100 2 30 900\n")
    assert host_cpu_ns(tmp_path) is None


def test_pressure(tmp_path: Path) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text(
        "some avg10=1.00 avg60=0.1 total=14235\nfull avg10=0 total=9\n"
    )
    assert pressure_ns(tmp_path) == 14_235_000


def test_all_that_was_taken_is_told_as_growth(machine: Machine) -> None:
    v2(machine.cgroups / "pod", "50000 100000")
    host = iter([(1_000, 10), (1_500, 60), (1_600, 40)])
    pressure = iter([700, 900, None])
    taken = TakenCpu(Throttling(proc=machine.proc), lambda: next(host), lambda: next(pressure))
    v2(machine.cgroups / "pod", "50000 100000", 4, 200_000)
    assert taken.take() == {
        "wanted_ns": 500, "stolen_ns": 50, "pressure_ns": 200, "cpu_quota": 0.5, "throttled_ns": 200 * MS,
        "used_up_ns": 400 * MS,
    }  # fmt: skip
    # A machine that moved counts anew: nothing is negative.
    quota = {"cpu_quota": 0.5, "throttled_ns": 0, "used_up_ns": 0}
    assert taken.take() == {"wanted_ns": 100, "stolen_ns": 0, **quota}


@pytest.fixture
def box() -> Iterator[Path]:
    """A real cgroup that allows a fifth of a core; skipped where none may be made."""
    place = next((at for at in own_places() if (at / "cgroup.procs").exists()), None)
    if place is None:
        pytest.skip("no cgroup with the processor's controller")
    made = place / f"taken-cpu-{os.getpid()}"
    try:
        made.mkdir()
        if (made / "cpu.max").exists():
            (made / "cpu.max").write_text("20000 100000")
        else:
            (made / "cpu.cfs_quota_us").write_text("20000")
    except OSError:
        if made.exists():
            made.rmdir()
        pytest.skip("cgroups may not be made here")
    yield made
    made.rmdir()


def own_places() -> list[Path]:
    if not Path("/proc/self/cgroup").exists():
        return []
    mounted = mounts(Path("/proc/self/mountinfo").read_text())
    return directories(Path("/proc/self/cgroup").read_text(), mounted)


BURN = """\
import sys, time
sys.path.insert(0, sys.argv[2])
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
from swarm.taken_cpu import Throttling
seen, end = Throttling(), time.monotonic() + 1
while time.monotonic() < end:
    pass
print(*seen.take())
"""


@pytest.mark.system
def test_a_real_cgroup(box: Path) -> None:
    root = str(Path(__file__).parents[2])
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", BURN, str(box), root], capture_output=True, text=True, timeout=60
    )
    took_s = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    quota, throttled_ns, used_up_ns = map(float, done.stdout.split())
    assert quota == 0.2
    assert 0.6 <= used_up_ns / 1e9 <= took_s + 0.1
    assert 0.2 <= throttled_ns / 1e9 <= took_s
