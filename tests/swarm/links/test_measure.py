"""What a link is measured to do, on real ones, and how far from its profile is too far."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from swarm.links.measure import Measured, differences, measure, measured_by
from swarm.links.namespace import LinkError
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile, read_profiles
from tests.swarm.links.means import real

LAN, WAN = (read_profiles()[name] for name in ("lan", "wan-a100"))
AS_ASKED = Measured(rtt_ms=14.3, rtt_min_ms=14.1, mbit_per_s=209, sent=20_000, lost=14)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network(["h1"], [LAN, WAN]) as made:
        yield made


@real
def test_a_link_does_what_its_profile_says_and_not_what_another_says(network: Network) -> None:
    measured = measure(network, "h1", WAN)
    # The least of the round trips is the link's; on a busy machine their median is the machine's too.
    assert differences(WAN, replace(measured, rtt_ms=measured.rtt_min_ms)) == []
    assert 14 <= measured.rtt_min_ms <= measured.rtt_ms
    assert measured.sent == 20_000
    assert 0 < measured.lost < 30
    other = replace(WAN, one_way_ms=9, loss_pct=1, mbit_per_s=180)
    # The same link, and somebody who believes that it is another one.
    found = measure(network, "h1", other)
    assert [sentence.split()[0] for sentence in differences(other, found)] == ["round", "rate", "loss"]


class Late:
    """A meter of a good link on a machine that is late the first time, or `always`."""

    def __init__(self, always: bool = False) -> None:
        self.always = always
        self.round_trips = 0

    def round_trips_ms(self) -> list[float]:
        self.round_trips += 1
        return [14.2, 17.0, 18.0] if self.always or self.round_trips == 1 else [14.1, 14.2, 16.0]

    def rate(self) -> float:
        return 209.0

    def loss(self) -> tuple[int, int]:
        return 20_000, 14


@pytest.mark.parametrize(("always", "least", "median"), [(False, 14.1, 14.2), (True, 14.2, 17.0)])
def test_round_trips_of_a_late_machine_are_measured_again(always: bool, least: float, median: float) -> None:
    meter = Late(always)
    measured = measured_by(meter, WAN)
    assert (measured.rtt_min_ms, measured.rtt_ms, meter.round_trips) == (least, median, 2)


@real
def test_a_plain_cable_is_near_and_fast(network: Network) -> None:
    measured = measure(network, "h1", LAN)
    assert measured.rtt_min_ms < 1
    assert measured.mbit_per_s > 1000
    assert (measured.sent, measured.lost) == (2000, 0)


@real
def test_a_link_that_brings_nothing_is_told() -> None:
    with Network(["h1"], [LAN]) as cut:
        # nsenter keeps our /sys, which shows our own devices only.
        names = json.loads(subprocess.check_output(cut.command("h1", ["ip", "-j", "link"])))
        (device,) = [one["ifname"] for one in names if "link" in one["ifname"]]
        subprocess.run(cut.command("h1", ["ip", "link", "set", "dev", device, "down"]), check=True)
        with pytest.raises(LinkError, match="the link lan of host h1 cannot be measured: "):
            measure(cut, "h1", LAN)


def test_a_record_holds_the_share_too() -> None:
    assert AS_ASKED.to_record() == {**vars(AS_ASKED), "loss_pct": 0.07}


@pytest.mark.parametrize(
    ("off", "said"),
    [
        ({}, []),
        ({"rtt_ms": 15.3}, []),
        ({"rtt_ms": 15.5}, ["round trip 15.5 ms, not 14"]),
        ({"mbit_per_s": 190}, []),
        ({"mbit_per_s": 180}, ["rate 180 Mbit/s, not 210"]),
        ({"mbit_per_s": 240}, ["rate 240 Mbit/s, not 210"]),
        # 14 +- 4 x 3.74, and one.
        ({"lost": 29}, []),
        ({"lost": 30}, ["loss 0.15 %, not 0.07"]),
        ({"rtt_ms": 99, "lost": 2000}, ["round trip 99 ms, not 14", "loss 10 %, not 0.07"]),
    ],
)
def test_what_is_off_is_said(off: dict[str, float], said: list[str]) -> None:
    assert differences(WAN, replace(AS_ASKED, **off)) == said


@pytest.mark.parametrize(
    ("profile", "measured", "said"),
    [
        (LAN, Measured(0.9, 0.2, 5, 2000, 1), []),
        (LAN, Measured(1.1, 0.2, 5, 2000, 2), ["round trip 1.1 ms, not 0", "loss 0.1 %, not 0"]),
        # Half of what was carried is lost, so half of the rate arrives.
        (LinkProfile("x", loss_pct=50, mbit_per_s=10, queue_bytes=9000), Measured(0, 0, 5, 1000, 480), []),
    ],
)
def test_nothing_asked_is_held_to_nothing(profile: LinkProfile, measured: Measured, said: list[str]) -> None:
    assert differences(profile, measured) == said
