"""The arithmetic of an emulated link: delay, rate, queue and loss, on a clock that stands where it is put."""

from __future__ import annotations

import random
from typing import Any

from swarm.links.forwarder import Lane, new_lane
from swarm.links.profiles import LinkProfile

MS = 1_000_000
PACKET = bytes(1000)
QUEUE_BYTES = 1_000_000


def up(**fields: float) -> Lane:
    return new_lane(**LinkProfile("x", **fields).lanes(0)["up"])


def arrivals(lane: Lane, until_ns: int, step_ns: int = MS) -> list[int]:
    """When packets are handed over, looking at the lane every step."""
    return [now for now in range(0, until_ns, step_ns) for _ in lane.due(now)]


def test_a_packet_takes_half_the_round_trip() -> None:
    lane = up(one_way_ms=10)
    lane.admit(PACKET, 5 * MS)
    assert lane.next_ns == 15 * MS
    assert list(lane.due(15 * MS - 1)) == []
    assert list(lane.due(15 * MS)) == [PACKET]
    assert lane.next_ns == float("inf")


def test_the_rate_spaces_packets_that_come_at_once() -> None:
    # 8 Mbit/s are 1000 bytes in 1 ms.
    lane = up(one_way_ms=5, mbit_per_s=8, queue_bytes=QUEUE_BYTES)
    for _ in range(4):
        lane.admit(PACKET, 0)
    assert arrivals(lane, 20 * MS) == [6 * MS, 7 * MS, 8 * MS, 9 * MS]


def test_an_idle_transmitter_saves_nothing_up() -> None:
    lane = up(mbit_per_s=8, queue_bytes=QUEUE_BYTES)
    lane.admit(PACKET, 0)
    lane.admit(PACKET, 10 * MS)
    lane.admit(PACKET, 10 * MS)
    assert arrivals(lane, 20 * MS) == [1 * MS, 11 * MS, 12 * MS]


def test_a_full_queue_drops_what_comes_last_and_has_room_again_when_it_was_sent() -> None:
    lane = up(mbit_per_s=8, queue_bytes=3000)
    for _ in range(5):
        lane.admit(PACKET, 0)
    assert lane.dropped_by_queue == 2
    lane.admit(PACKET, MS - 1)
    assert lane.dropped_by_queue == 3
    lane.admit(PACKET, MS)
    assert arrivals(lane, 10 * MS) == [1 * MS, 2 * MS, 3 * MS, 4 * MS]
    assert lane.report() == {
        "packets": 4,
        "bytes": 4000,
        "dropped_by_loss": 0,
        "dropped_by_queue": 3,
        "on_the_way": 0,
        "refused": 0,
        "late_mean_ns": 0,
        "late_max_ns": 0,
    }


def test_without_a_rate_nothing_waits_in_the_queue() -> None:
    lane = up(queue_bytes=1500)
    for _ in range(100):
        lane.admit(PACKET, 7)
    assert len(list(lane.due(7))) == 100


def test_a_lost_packet_has_been_sent() -> None:
    chances = iter([0.5, 0.005, 0.5])
    lane = Lane(0, ns_per_byte=1000, loss=0.01, chance=lambda: next(chances))
    for _ in range(3):
        lane.admit(PACKET, 0)
    # The second one took its time on the wire all the same.
    assert arrivals(lane, 5 * MS) == [1 * MS, 3 * MS]
    assert lane.dropped_by_loss == 1


def lost(shape: dict[str, Any], count: int) -> list[int]:
    lane = new_lane(**shape)
    found = []
    for number in range(count):
        before = lane.dropped_by_loss
        lane.admit(PACKET, 0)
        if lane.dropped_by_loss > before:
            found.append(number)
    return found


def test_the_seed_says_which_packets_are_lost() -> None:
    lossy = LinkProfile("x", loss_pct=2)
    first = lost(lossy.lanes(3)["up"], 10_000)
    assert first == lost(lossy.lanes(3)["up"], 10_000)
    assert 150 <= len(first) <= 250
    assert first != lost(lossy.lanes(4)["up"], 10_000)


def test_loss_is_of_the_way_to_the_server() -> None:
    assert lost(LinkProfile("x", loss_pct=50).lanes(0)["down"], 100) == []


def test_lateness_is_counted_from_when_a_packet_was_due() -> None:
    lane = Lane(10 * MS, chance=random.random)
    lane.admit(PACKET, 0)
    lane.admit(PACKET, 2 * MS)
    assert len(list(lane.due(13 * MS))) == 2
    report = lane.report()
    assert (report["late_mean_ns"], report["late_max_ns"]) == (2 * MS, 3 * MS)
