"""A trace as workers have it: over the wire and back, its times at a speed, its order."""

import numpy as np
import pytest

from users.load.mix import RequestClass
from users.load.pacing import NS_PER_S, DueRequest, OpenPacer
from users.load.replay import MOST_ROWS, Replay

TIMES = np.array([0, 5, 5, 1_000_000_007, 604_800_000_000_000], np.int64)
ITEMS = np.array([1, 4, 1, 4_096, 1], np.uint16)


@pytest.mark.parametrize("pictures", [None, np.array([7, -1, 0, 999_999, 2], np.int32)])
def test_a_replay_comes_back_from_its_bytes(pictures: np.ndarray | None) -> None:
    found = Replay.decode(Replay(TIMES, ITEMS, pictures).encode())
    assert found.times_ns.tolist() == TIMES.tolist()
    assert found.items.tolist() == ITEMS.tolist()
    assert (None if found.pictures is None else found.pictures.tolist()) == (
        None if pictures is None else pictures.tolist()
    )


def test_a_long_trace_of_whole_milliseconds_is_a_small_message() -> None:
    gaps = np.random.default_rng(1).integers(0, 20, 100_000) * 1_000_000
    assert len(Replay(np.cumsum(gaps), np.ones(100_000, np.uint16)).encode()) < 200_000


@pytest.mark.parametrize("damage", ["empty", "no columns", "cut", "longer", "not zlib", "too many rows"])
def test_bytes_that_are_no_trace_are_refused(damage: str) -> None:
    told = Replay(TIMES, ITEMS).encode()
    damaged = {
        "empty": b"",
        "no columns": told[:5],
        "cut": told[:-9],
        "longer": b"\x04" + told[1:],
        "not zlib": told[:5] + b"x" * 20,
        "too many rows": (MOST_ROWS + 1).to_bytes(4, "little") + told[4:],
    }[damage]
    with pytest.raises(ValueError, match="a trace"):
        Replay.decode(damaged)


def test_times_the_longest_quiet_and_the_asked_course() -> None:
    made = Replay(TIMES, ITEMS, seconds=604_800.0)
    assert list(made.offsets_ns()) == TIMES.tolist()
    assert made.quiet_s == pytest.approx(604_799)
    assert made.asked["width_s"] == 1_008
    assert (made.asked["requests"][0], made.asked["requests"][-1], len(made.asked["requests"])) == (4, 1, 601)
    assert Replay(TIMES[:4], ITEMS[:4], seconds=1.4).asked == {
        "width_s": 1,
        "requests": [3, 1],
        "seconds": 1.4,
    }


def test_a_request_has_its_rows_batch_and_picture() -> None:
    made = Replay(TIMES, ITEMS, np.array([7, -1, 0, 3, 2], np.int32))
    assert [made.ordered("any seed").at(number) for number in range(6)] == [
        *(("b1", 7), ("b4", 1), ("b1", 0), ("b4096", 3), ("b1", 2)),
        ("b1", 7),
    ]
    assert made.classes == (
        *(RequestClass("b1", 0.6, 1), RequestClass("b4", 0.2, 4)),
        RequestClass("b4096", 0.2, 4_096),
    )


def test_requests_of_one_batch_have_no_label() -> None:
    made = Replay(TIMES, np.full(5, 8, np.uint16))
    assert [made.at(number) for number in (0, 4, 12)] == [("", 0), ("", 4), ("", 12)]
    assert made.classes == (RequestClass("", 1.0, 8),)


@pytest.mark.parametrize("of", [1, 2, 3])
def test_workers_share_a_trace_without_changing_its_order_or_its_times(of: int) -> None:
    made = Replay(np.array([0, 3, 3, 3, 90, 91]) * 10_000_000, np.ones(6, np.uint16))
    turns: list[DueRequest] = []
    for index in range(of):
        pacer = OpenPacer(made.offsets_ns(), 5, index, of, 60 * NS_PER_S, lambda: 2 * NS_PER_S)
        turns += filter(None, (pacer.wait_turn() for _ in range(index, 6, of)))
        pacer.close()
        assert (pacer.due, pacer.dropped) == (len(range(index, 6, of)), 0)
    assert sorted(turns, key=lambda turn: turn.number) == [
        DueRequest(5 + at_ns, number) for number, at_ns in enumerate(made.times_ns.tolist())
    ]
