"""Turns of closed and open loop: numbered, shared by workers, late or dropped. Time is a number here."""

import bisect
import itertools
import math
from statistics import fmean, stdev

import gevent
import pytest
from gevent.event import Event

from users.load.load_profile import parse
from users.load.mix import chosen_by
from users.load.pacing import (
    BREATH,
    CONSTANT,
    LOOK_UP_NS,
    NS_PER_S,
    POISSON,
    ClosedPacer,
    CoursePacer,
    DueRequest,
    OpenPacer,
    Pacer,
    offsets_ns,
)

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


def due(made: Pacer) -> int:
    """When the next turn is intended."""
    turn = made.wait_turn()
    assert turn is not None
    return turn.intended_ns


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
    assert [made.wait_turn() for _ in range(4)] == [DueRequest(n * 10 * MS, n) for n in range(4)]
    assert time.now_ns == 30 * MS
    assert (made.due, made.dropped) == (4, 0)


def test_workers_share_one_schedule_without_sending_in_step() -> None:
    workers = [pacer(Time(), index, 3) for index in range(3)]
    turns = [[worker.wait_turn() for _ in range(4)] for worker in workers]
    numbers = [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert turns == [[DueRequest(number * 10 * MS, number) for number in own] for own in numbers]


def test_an_arrival_that_finds_no_free_user_keeps_its_intended_start() -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.now_ns = 35 * MS
    assert [due(made) for _ in range(4)] == [10 * MS, 20 * MS, 30 * MS, 40 * MS]
    assert made.dropped == 0


def test_late_though_a_user_was_free_is_this_process_own_fault() -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.wait = lambda seconds: setattr(time, "now_ns", time.now_ns + 17 * MS)  # type: ignore[assignment,method-assign]
    assert (due(made), made.overslept) == (10 * MS, 1)
    time.now_ns = 90 * MS
    assert (due(made), made.overslept) == (20 * MS, 1)


@pytest.mark.parametrize(("late_ns", "overslept"), [(5 * MS, 0), (5 * MS + 1, 1)])
def test_5_ms_are_not_late(late_ns: int, overslept: int) -> None:
    time = Time()
    made = pacer(time)
    made.wait_turn()
    time.wait = lambda seconds: setattr(time, "now_ns", 10 * MS + late_ns)  # type: ignore[assignment,method-assign]
    assert (due(made), made.overslept) == (10 * MS, overslept)


def test_of_three_free_users_the_last_is_late_for_want_of_others() -> None:
    now_ns = -1
    made = OpenPacer(offsets_ns(CONSTANT, 100, ""), 0, 0, 1, NS_PER_S, clock=lambda: now_ns)
    free = [gevent.spawn(due, made) for _ in range(3)]
    gevent.sleep(0)
    now_ns = 100 * MS
    assert [user.get(timeout=5) for user in free] == [0, 10 * MS, 20 * MS]
    assert made.overslept == 2


def test_one_that_has_waited_too_long_is_dropped() -> None:
    time = Time()
    made = pacer(time, patience_ns=15 * MS)
    time.now_ns = 45 * MS
    assert made.wait_turn() == (30 * MS, 3), "after no more than its patience"
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
    assert made.wait_turn() == (0, 0)
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
    assert made.wait_turn() == (0, 0)


def test_a_larger_share_after_a_worker_was_lost() -> None:
    time = Time()
    made = pacer(time, 1, 3)
    assert made.wait_turn() == (10 * MS, 1)
    made.reshare(0, 2)
    assert [made.wait_turn() for _ in range(3)] == [(20 * MS, 2), (40 * MS, 4), (60 * MS, 6)]


def test_a_worker_without_a_share_sends_nothing() -> None:
    made = pacer(Time(), 0, 0)
    made.over = Event()
    waiting = gevent.spawn(made.wait_turn)
    gevent.sleep(0)
    assert not waiting.ready()
    made.close()
    assert waiting.get(timeout=5) is None
    assert (made.due, made.dropped) == (0, 0)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_split_schedule_is_dealt_to_endpoints_and_workers_without_loss_or_doubling(workers: int) -> None:
    dealt: list[list[int]] = []
    for part in range(2):
        orders = {"shares": [0.9, 0.1], "part": part, "split_seed": "3/1/measure/split"}
        own = [pacer(Time(), index, workers) for index in range(workers)]
        sent: list[DueRequest] = []
        for one in own:
            one.split = chosen_by(orders)
            while (turn := one.wait_turn()) is not None and turn.number < 2_000:
                sent.append(turn)
        dealt.append(sorted(number for _, number in sent))
        assert {at_ns - number * 10 * MS for at_ns, number in sent} == {0}
    assert sorted(dealt[0] + dealt[1]) == list(range(2_000))
    assert [len(own) for own in dealt] == [1_800, 200]


def test_of_a_split_schedule_what_others_get_is_neither_due_nor_dropped() -> None:
    made = pacer(time := Time())
    made.split = lambda number: number % 4 == 1
    time.now_ns = 100 * MS
    made.close()
    assert (made.due, made.dropped) == (3, 3)
    assert made.dropped_by_s == {0: 3}


def test_a_split_of_which_an_endpoint_gets_nothing_more_comes_to_an_end() -> None:
    made = OpenPacer(iter([1, 2]), 0, 0, 1, NS_PER_S, clock=lambda: 9, split=lambda number: False)
    made.close()
    assert (made.due, made.dropped) == (0, 0)


def test_closed_loop_turns_are_numbered_over_all_workers() -> None:
    workers = [ClosedPacer(index, 3) for index in range(3)]
    numbers = [[worker.wait_turn().number for _ in range(3)] for worker in workers]
    assert numbers == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


@pytest.mark.parametrize(
    ("share", "numbers"),
    [((0, 2), [8, 10, 12]), ((1, 2), [7, 9, 11]), ((0, 1), [7, 8, 9]), ((0, 0), [7, 8, 9])],
)
def test_in_closed_loop_a_lost_workers_numbers_are_taken_from_where_one_is(
    share: tuple[int, int], numbers: list[int]
) -> None:
    made = ClosedPacer(1, 3)
    assert [made.wait_turn().number for _ in range(2)] == [1, 4]
    made.reshare(*share)
    assert [made.wait_turn().number for _ in range(3)] == numbers


def course_pacer(
    time: Time, text: str, peak: int, index: int = 0, of: int = 1, start_ns: int = 0
) -> CoursePacer:
    return CoursePacer(
        closed=ClosedPacer(index, of), course=parse(text, peak), start_ns=start_ns, users=peak,
        clock=time, over=time,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("of", [1, 3])
@pytest.mark.parametrize("text", ["steps:4x5", "ramp:10,hold:5,cool:5", "sine:every=20,times=1,base=0"])
def test_as_many_users_send_as_the_course_says_for_any_number_of_workers(text: str, of: int) -> None:
    """At each half second and by each of 8 users over 1 or 3 workers: rounded up, in the order of ranks."""
    profile = parse(text, 8)
    for half_s in range(1, 40, 2):
        sending = []
        for rank in range(8):
            time = Time()
            time.now_ns = start_ns = half_s * NS_PER_S // 2
            made = course_pacer(time, text, 8, rank % of, of)
            time.wait = lambda _, made=made: made.close()  # type: ignore[assignment, misc]
            turn = made.wait_turn(rank // of)
            sending += [rank] if turn is not None else []
            assert turn is None or turn == (start_ns, rank % of)
        stage = profile.stages[bisect.bisect(profile.begins_s, half_s / 2) - 1]
        begin_s = profile.begins_s[profile.stages.index(stage)]
        assert sending == list(range(math.ceil(stage.first + stage.slope * (half_s / 2 - begin_s) - 1e-9)))


def test_a_user_that_waits_is_due_when_the_course_rises_above_its_rank() -> None:
    time = Time()
    made = course_pacer(time, "points:0=0,10=1,20=0,30=1", 10, start_ns=NS_PER_S)
    assert made.wait_turn(3) == (4 * NS_PER_S, 0)
    assert time.now_ns >= 4 * NS_PER_S
    assert time.now_ns < 4 * NS_PER_S + LOOK_UP_NS, "it looks up ten times a second, and no more"
    time.now_ns = 5 * NS_PER_S
    assert made.wait_turn(3) == (5 * NS_PER_S, 1), "not due before: it has just come back"
    time.now_ns = 18 * NS_PER_S + 1
    assert made.wait_turn(3) == (24 * NS_PER_S, 2), "the course had fallen to 3"
    made.close()
    assert made.wait_turn(0) is None


def test_a_waiting_users_rank_is_another_after_a_worker_was_lost() -> None:
    time = Time()
    made = course_pacer(time, "ramp:90,hold:10", 10, 2, 3)
    looked: list[int] = []

    def wait(seconds: float) -> bool:
        looked.append(round(seconds * 1000))
        if len(looked) == 5:
            made.reshare(0, 1)
        time.now_ns += round(seconds * NS_PER_S)
        return False

    time.wait = wait  # type: ignore[method-assign]
    # rank 2·3 + 2 = 8 would be due at 70/90 of the ramp; as the only worker its rank is 2, due after 10 s
    turn = made.wait_turn(2)
    assert turn is not None
    assert turn.intended_ns == pytest.approx(10 * NS_PER_S, abs=2)
    assert set(looked[:-1]) == {100}


def test_a_user_beyond_a_workers_share_has_the_last_rank() -> None:
    time = Time()
    assert course_pacer(time, "steps:4x5", 4, 1, 2).wait_turn(2) == (15 * NS_PER_S, 1)


def test_when_a_course_is_over_nobody_sends_until_the_phase_ends() -> None:
    time = Time()
    time.now_ns = 20 * NS_PER_S
    made = course_pacer(time, "steps:4x5", 4)
    time.wait = lambda _: made.close()  # type: ignore[assignment, return-value, method-assign]
    assert made.wait_turn(0) is None
