"""What quotas and a hypervisor took from the service, and how its page of metrics says so."""

import os

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from server.hardware.taken_cpu import Allowance, Quotas, host_cpu_s, stopped_ns
from server.service.metrics import CpuCollector

MS = 1_000_000


@pytest.fixture
def machine(tmp_path):
    """A `/proc` whose process is in `/pod/app` of a cgroup v2."""
    (tmp_path / "self").mkdir()
    cgroups = tmp_path / "cgroup"
    (tmp_path / "self/mountinfo").write_text(
        f"1 1 0:1 / {cgroups} rw - cgroup2 cgroup2 rw\n2 1 0:2 / /none rw - cgroup cgroup rw,cpuset\n"
    )
    (tmp_path / "self/cgroup").write_text("0::/pod/app\n3:cpuset:/pod\n")
    return tmp_path


def allow(place, allowed, periods=0, throttled_us=0):
    place.mkdir(parents=True, exist_ok=True)
    (place / "cpu.max").write_text(f"{allowed}\n")
    (place / "cpu.stat").write_text(f"usage_usec 1\nnr_throttled {periods}\nthrottled_usec {throttled_us}\n")


def test_it_adds_up_what_the_tightest_took(machine):
    allow(machine / "cgroup/pod/app", "50000 100000", 7, 9_000)
    allow(machine / "cgroup/pod", "400000 100000")
    quotas = Quotas(machine)
    assert (quotas.cores, quotas.take()) == (0.5, (0, 0))
    # Two threads: each stops for three quarters of ten periods.
    allow(machine / "cgroup/pod/app", "50000 100000", 17, 9_000 + 1_500_000)
    assert quotas.take() == (750 * MS, 1_000 * MS)
    # Five threads, for a fifth of five periods each.
    allow(machine / "cgroup/pod", "400000 100000", 5, 500_000)
    assert (quotas.take(), quotas.cores) == ((850 * MS, 1_500 * MS), 4.0)


def test_cgroup_v1(machine):
    place = machine / "cgroup"
    (machine / "self/mountinfo").write_text(f"1 1 0:1 /docker/9f {place} rw - cgroup cgroup rw,cpu,cpuacct\n")
    (machine / "self/cgroup").write_text("2:cpu,cpuacct:/docker/9f\n")
    place.mkdir()
    (place / "cpu.cfs_quota_us").write_text("150000\n")
    (place / "cpu.cfs_period_us").write_text("100000\n")
    (place / "cpu.stat").write_text("nr_periods 1\nnr_throttled 0\nthrottled_time 0\n")
    assert Quotas(machine).cores == 1.5


def test_no_quota_and_no_files(machine, tmp_path):
    allow(machine / "cgroup/pod", "max 100000")
    assert (Quotas(machine).cores, Quotas(machine).take()) == (None, (0, 0))
    assert Quotas(tmp_path / "none").cores is None
    assert host_cpu_s(tmp_path / "none") is None


@pytest.mark.parametrize(("cores", "threads", "share"), [(0.5, 1, 0.5), (2.0, 8, 0.75), (1.5, 2, 0.25)])
def test_a_quota_that_threads_use_up(cores, threads, share):
    summed_ns = round(1_000 * MS * (threads - cores))
    found = stopped_ns(Allowance(cores, 100 * MS, 0, 0), Allowance(cores, 100 * MS, 10, summed_ns))
    assert found == pytest.approx(1_000 * MS * share)


def test_what_the_host_wanted(machine):
    per_s = os.sysconf("SC_CLK_TCK")
    (machine / "stat").write_text(f"cpu  {per_s} 0 {2 * per_s} 99 9 0 0 {per_s // 2} 0 0\n")
    assert host_cpu_s(machine) == (3.5, 0.5)


def page(quotas, host):
    (registry := CollectorRegistry()).register(CpuCollector(quotas, host))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_its_page(machine):
    allow(machine / "cgroup/pod/app", "50000 100000")
    quotas = Quotas(machine)
    allow(machine / "cgroup/pod/app", "50000 100000", 5, 250_000)
    assert page(quotas, lambda: (40.5, 2.25)) == [
        "inferswarm_cpu_quota_cores 0.5",
        "inferswarm_cpu_throttled_seconds_total 0.25",
        "inferswarm_cpu_used_up_seconds_total 0.5",
        "inferswarm_cpu_wanted_seconds_total 40.5",
        "inferswarm_cpu_stolen_seconds_total 2.25",
    ]
    assert page(Quotas(machine / "none"), lambda: None) == []
