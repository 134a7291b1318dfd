"""The master's machine: how busy its processors were, and what its network has carried."""

from collections import namedtuple
from types import SimpleNamespace

import pytest

from swarm.sampling.machine import HostSampler, busy_share

Times = namedtuple("Times", "user system idle iowait guest guest_nice", defaults=(0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("after", "share"),
    [
        (Times(user=30, system=10, idle=50, iowait=10), 0.4),
        (Times(idle=20), 0.0),
        (Times(user=20), 1.0),
        # A guest's 20 are among the user's 20, and are counted once.
        (Times(user=20, guest=20, idle=20), 0.5),
        (Times(), None),
    ],
)
def test_busy_is_what_was_not_idle(after: Times, share: float | None) -> None:
    assert busy_share(Times(), after) == share


def test_each_reading_is_of_the_time_since_the_last() -> None:
    readings = iter([Times(), Times(user=1, idle=3), Times(user=3, idle=5), Times(user=3, idle=5)])
    traffic = SimpleNamespace(bytes_sent=700, bytes_recv=900)
    host = HostSampler(lambda: next(readings), lambda: traffic)
    assert host.read() == {"host": {"cpu_pct": 25.0, "tx_bytes": 700, "rx_bytes": 900}}
    assert host.read()["host"]["cpu_pct"] == 50.0
    assert "cpu_pct" not in host.read()["host"]


def test_a_machine_without_network_interfaces() -> None:
    readings = iter([Times(), Times(user=1, idle=1)])
    assert HostSampler(lambda: next(readings), lambda: None).read() == {"host": {"cpu_pct": 50.0}}


def test_this_machine() -> None:
    host = HostSampler()
    sum(range(2_000_000))
    found = host.read()["host"]
    assert 0 <= found["cpu_pct"] <= 100
    assert {type(found[name]) for name in ("tx_bytes", "rx_bytes")} == {int}
