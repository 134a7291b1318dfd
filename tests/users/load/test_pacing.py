"""Open-loop load: one schedule, shared by workers; arrivals sent, late or dropped. Time is a number here."""

import itertools
from statistics import fmean, stdev

import gevent
import pytest
from gevent.event import Event

from users.load.pacing import BREATH, CONSTANT, NS_PER_S, POISSON, OpenPacer, offsets_ns

MS = 1_000_000


class Time:
    """A clock in ns, and an Event whose `wait` moves it."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ended = False

    def __call__(self) -> int:
        return self.now_ns

    def wait(self, seconds: float) -> bool:
        self.now_ns += round(seconds * NS_PER_S)
        return self.ended

    def is_set(self) -> bool:
        return self.ended

    def set(self) -> None:
        self.ended = True


def pacer(
    time: Time, index: int = 0, of: int = 1, rate: float = 100, patience_ns: int = NS_PER_S
) -> OpenPacer:
    offsets = offsets_ns(CONSTANT, rate, "")
    return OpenPacer(offsets, 0, index, of, patience_ns, clock=time, over=time)  # type: ignore[arg-type]


def test_constant_arrivals_do_not_drift() -> None:
    offsets = list(itertools.islice(offsets_ns(CONSTANT, 3, ""), 3_000_001))
    assert offsets[:3] == [0, 333_333_333, 666_666_667]
    assert offsets[3_000_000] == 1_000_000 * NS_PER_S


def test_poisson_arrivals_are_seeded_and_have_exponential_gaps() -> None:
    offsets = list(itertools.islice(offsets_ns(POISSON, 50, "a"), 20_000))
    assert offsets == list(itertools.islice(offsets_ns(POISSON, 50, "a"), 20_000))
    assert offsets[:5] != list(itertools.islice(offsets_ns(POISSON, 50, "b"), 5))
    gaps = [after - before for before, after in itertools.pairwise(offsets)]
    assert fmean(gaps) == pytest.approx(20 * MS, rel=0.03)
    assert stdev(gaps) == pytest.approx(20 * MS, rel=0.03)


def test_each_request_is_intended_when_the_schedule_says() -> None:
    time = Time()
    made = pacer(time)
    assert [made.wait_turn() for _ in range(4)] == [0, 10 * MS, 20 * MS, 30 * MS]
    assert time.now_ns == 30 * MS
    assert (made.due, made.dropped) == (4, 0)


def test_workers_share_one_schedule_without_sending_in_step() -> None:
    workers = [pacer(Time(), index, 3) for index in range(3)]
    turns = [[worker.wait_turn() for _ in range(4)] for worker in workers]
    assert turns == [[0, 30 * MS, 60 * MS, 90 * MS], [10 * MS, 40 * MS, 70 * MS, 100 * MS],
                     [20 * MS, 50 * MS, 80 * MS, 110 * MS]]  # fmt: skip


def test_an_arrival_that_finds_no_free_user_keeps_its_intended_start() -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.now_ns = 35 * MS
    assert [made.wait_turn() for _ in range(4)] == [10 * MS, 20 * MS, 30 * MS, 40 * MS]
    assert made.dropped == 0


def test_late_though_a_user_was_free_is_this_process_own_fault() -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.wait = lambda seconds: setattr(time, "now_ns", time.now_ns + 17 * MS)  # type: ignore[assignment,method-assign]
    assert (made.wait_turn(), made.overslept) == (10 * MS, 1)
    time.now_ns = 90 * MS
    assert (made.wait_turn(), made.overslept) == (20 * MS, 1)


@pytest.mark.parametrize(("late_ns", "overslept"), [(5 * MS, 0), (5 * MS + 1, 1)])
def test_5_ms_are_not_late(late_ns: int, overslept: int) -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.wait = lambda seconds: setattr(time, "now_ns", 10 * MS + late_ns)  # type: ignore[assignment,method-assign]
    assert (made.wait_turn(), made.overslept) == (10 * MS, overslept)


def test_of_three_free_users_the_last_is_late_for_want_of_others() -> None:
    now_ns = -1
    made = OpenPacer(offsets_ns(CONSTANT, 100, ""), 0, 0, 1, NS_PER_S, clock=lambda: now_ns)
    free = [gevent.spawn(made.wait_turn) for _ in range(3)]
    gevent.sleep(0)
    now_ns = 100 * MS
    assert [user.get(timeout=5) for user in free] == [0, 10 * MS, 20 * MS]
    assert made.overslept == 2


def test_one_that_has_waited_too_long_is_dropped() -> None:
    time = Time()
    made = pacer(time, patience_ns=15 * MS)
    time.now_ns = 45 * MS
    assert made.wait_turn() == 30 * MS, "after no more than its patience"
    assert (made.due, made.dropped) == (4, 3)
    assert made.overslept == 0


def test_at_the_end_those_that_still_wait_are_dropped_and_later_ones_were_never_due() -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.now_ns = 20 * MS
    made.close()
    time.now_ns = 95 * MS
    made.close()
    assert (made.due, made.dropped) == (3, 2)
    assert made.wait_turn() is None


def test_those_that_free_users_were_about_to_send_were_not_dropped() -> None:
    now_ns = -1
    made = OpenPacer(offsets_ns(CONSTANT, 100, ""), 0, 0, 1, NS_PER_S, clock=lambda: now_ns)
    free = [gevent.spawn(made.wait_turn) for _ in range(2)]
    gevent.sleep(0)
    now_ns = 25 * MS
    made.close()
    assert [user.get(timeout=5) for user in free] == [None, None]
    assert (made.due, made.dropped) == (1, 1)


def test_dropping_a_great_many_lets_others_run() -> None:
    time = Time()
    made = pacer(time, rate=100_000)
    time.now_ns = NS_PER_S // 2
    seen: list[int] = []
    other = gevent.spawn(lambda: seen.append(made.dropped))
    made.close()
    other.join()
    assert made.dropped == 50_001
    assert seen == [BREATH]


def test_a_user_that_waits_when_the_phase_ends_is_let_go() -> None:
    made = OpenPacer(offsets_ns(CONSTANT, 0.001, ""), 0, 0, 1, NS_PER_S, clock=lambda: 1)
    assert made.wait_turn() == 0
    waiting = gevent.spawn(made.wait_turn)
    gevent.sleep(0)
    made.close()
    assert waiting.get(timeout=5) is None
    assert (made.due, made.dropped) == (1, 0)


def test_a_killed_user_takes_no_arrival_with_it() -> None:
    made = OpenPacer(offsets_ns(CONSTANT, 1, ""), 0, 0, 1, NS_PER_S, clock=lambda: -1)
    waiting = gevent.spawn(made.wait_turn)
    gevent.sleep(0)
    waiting.kill()
    made.clock = lambda: 5
    assert made.wait_turn() == 0


def test_a_larger_share_after_a_worker_was_lost() -> None:
    time = Time()
    made = pacer(time, 1, 3)
    assert made.wait_turn() == 10 * MS
    made.reshare(0, 2)
    assert [made.wait_turn() for _ in range(3)] == [20 * MS, 40 * MS, 60 * MS]


def test_a_worker_without_a_share_sends_nothing() -> None:
    made = pacer(Time(), 0, 0)
    made.over = Event()
    waiting = gevent.spawn(made.wait_turn)
    gevent.sleep(0)
    assert not waiting.ready()
    made.close()
    assert waiting.get(timeout=5) is None
    assert (made.due, made.dropped) == (0, 0)
