"""The arithmetic of an emulated link: delay, rate, queue and loss, on a clock that stands where it is put."""

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
    for number in range(5):
        lane.admit(bytes([number]) * 1000, 0)
    lane.admit(PACKET, MS - 1)
    lane.admit(b"last" * 250, MS)
    assert [packet[:4] for packet in lane.due(4 * MS)] == [b"\0" * 4, b"\1" * 4, b"\2" * 4, b"last"]
    assert lane.next_ns == float("inf"), "of the others none is on its way"


def test_a_policer_drops_what_is_above_its_rate_and_delays_nothing() -> None:
    lane = up(one_way_ms=5, mbit_per_s=8, burst_bytes=3000)
    for number in range(5):
        lane.admit(bytes([number]) * 1000, 0)
    lane.admit(b"soon" * 250, MS - 1)
    lane.admit(b"last" * 250, MS)
    assert [packet[:4] for packet in lane.due(5 * MS)] == [b"\0" * 4, b"\1" * 4, b"\2" * 4]
    assert [packet[:4] for packet in lane.due(6 * MS)] == [b"last"]


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


def lost(shape: dict[str, Any], count: int) -> list[int]:
    """The numbers of the packets that do not arrive."""
    lane = new_lane(**shape)
    for number in range(count):
        lane.admit(number.to_bytes(4), 0)
    arrived = {int.from_bytes(packet) for packet in lane.due(MS)}
    return [number for number in range(count) if number not in arrived]


def test_the_seed_says_which_packets_are_lost() -> None:
    lossy = LinkProfile("x", loss_pct=2)
    first = lost(lossy.lanes(3)["up"], 10_000)
    assert first == lost(lossy.lanes(3)["up"], 10_000)
    assert 150 <= len(first) <= 250
    assert first != lost(lossy.lanes(4)["up"], 10_000)


def test_loss_is_of_the_way_to_the_server() -> None:
    assert lost(LinkProfile("x", loss_pct=50).lanes(0)["down"], 100) == []
