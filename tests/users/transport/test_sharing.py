"""What users share: kept while anybody uses it, spread evenly, lent in turn; nothing lost by a kill."""

from __future__ import annotations

from collections import Counter

import gevent
import pytest
from gevent.event import Event

from users.transport.connections import Borrowed, LeastLoaded, RefCounted


class Thing:
    """Numbered as it was made."""

    def __init__(self, made: list[Thing]) -> None:
        self.number, self.closed = len(made), 0
        made.append(self)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made() -> list[Thing]:
    return []


def lending(size: int, made: list[Thing]) -> Borrowed[Thing]:
    """With all that it may have."""
    lends = Borrowed(size, lambda: Thing(made))
    for _ in range(size):
        lends.grow()
    return lends


class Borrower:
    """A greenlet that borrows once, and keeps what it gets until it is told to let go."""

    def __init__(self, lends: Borrowed[Thing], patience_s: float | None = None) -> None:
        self.got: Thing | None = None
        self.timed_out = False
        self._lends, self._patience_s = lends, patience_s
        self._enough = Event()
        self.greenlet = gevent.spawn(self._borrow)
        gevent.sleep(0)

    def _borrow(self) -> None:
        try:
            with gevent.Timeout(self._patience_s), self._lends.lent() as thing:
                self.got = thing
                self._enough.wait()
        except gevent.Timeout:
            self.timed_out = True

    def let_go(self) -> None:
        """Without waiting for it to run on."""
        self._enough.set()

    def end(self) -> None:
        self.let_go()
        self.greenlet.join(timeout=10)
        assert self.greenlet.dead


def soon(*borrowers: Borrower) -> list[int | None]:
    """The numbers of what they have, once all that could run has run."""
    for _ in range(5):
        gevent.sleep(0)
    return [borrower.got and borrower.got.number for borrower in borrowers]


def test_a_shelf_keeps_a_thing_while_anybody_uses_it(made: list[Thing]) -> None:
    shared: RefCounted[Thing] = RefCounted()
    first, second = (shared.join("a", lambda: Thing(made)) for _ in range(2))
    other = shared.join("b", lambda: Thing(made))
    assert first is second is not other
    shared.leave("a")
    assert [thing.closed for thing in made] == [0, 0]
    shared.leave("a")
    assert [thing.closed for thing in made] == [1, 0]
    assert shared.join("a", lambda: Thing(made)) is made[2]


def test_users_are_spread_evenly_whoever_leaves_and_comes(made: list[Thing]) -> None:
    spread = LeastLoaded(4, lambda: Thing(made))
    taken = [spread.take() for _ in range(16)]
    assert [thing.number for thing in taken[:6]] == [0, 1, 2, 3, 0, 1]
    assert Counter(thing.number for thing in taken) == {0: 4, 1: 4, 2: 4, 3: 4}
    leaving = [thing for thing in taken if thing.number == 2] + [made[0], made[3]]
    for thing in leaving:
        spread.give_back(thing)
        taken.remove(thing)
    taken += [spread.take() for _ in leaving]
    assert Counter(thing.number for thing in taken) == {0: 4, 1: 4, 2: 4, 3: 4}


def test_a_newcomer_brings_one_more_until_there_are_enough(made: list[Thing]) -> None:
    spread = LeastLoaded(2, lambda: Thing(made))
    spread.give_back(spread.take())
    assert [spread.take().number for _ in range(4)] == [1, 0, 0, 1]
    assert len(made) == 2
    spread.close()
    assert [thing.closed for thing in made] == [1, 1]


@pytest.mark.parametrize("size", [1, 4])
def test_sixteen_greedy_borrowers_take_turns(size: int, made: list[Thing]) -> None:
    lends, turns, in_use, most = lending(size, made), Counter[int](), 0, 0

    def greedy(user: int) -> None:
        nonlocal in_use, most
        while turns.total() < 16 * 20:
            # It asks again without a pause: with a semaphore, it would have all the turns.
            with lends.lent():
                in_use += 1
                most = max(most, in_use)
                gevent.sleep(0)
                in_use -= 1
                turns[user] += 1

    gevent.joinall([gevent.spawn(greedy, user) for user in range(16)], timeout=30, raise_error=True)
    assert (len(turns), most, len(made)) == (16, size, size)
    assert max(turns.values()) - min(turns.values()) <= 1


def test_who_has_waited_longest_is_next(made: list[Thing]) -> None:
    lends = lending(1, made)
    borrowers = [Borrower(lends) for _ in range(3)]
    for turn, borrower in enumerate(borrowers):
        assert soon(*borrowers) == [0] * (turn + 1) + [None] * (2 - turn)
        borrower.end()


def test_what_has_rested_longest_is_lent_first(made: list[Thing]) -> None:
    lends = lending(2, made)
    lent = []
    for _ in range(4):
        with lends.lent() as thing:
            lent.append(thing.number)
    assert lent == [1, 0, 1, 0]


def test_one_more_serves_the_next_in_line_at_once(made: list[Thing]) -> None:
    lends = Borrowed(2, lambda: Thing(made))
    lends.grow()
    borrowers = [Borrower(lends) for _ in range(3)]
    assert soon(*borrowers) == [0, None, None]
    lends.grow()
    assert soon(*borrowers) == [0, 1, None]
    lends.grow()
    assert soon(*borrowers) == [0, 1, None]
    assert len(made) == 2
    for borrower in borrowers:
        borrower.end()


def test_who_is_killed_in_the_queue_has_left_it(made: list[Thing]) -> None:
    lends = lending(1, made)
    holder, killed, next_one = (Borrower(lends) for _ in range(3))
    killed.greenlet.kill()
    holder.end()
    assert soon(killed, next_one) == [None, 0]
    next_one.end()
    with lends.lent() as thing:
        assert thing is made[0]


def test_who_is_handed_it_but_never_wakes_passes_it_on(made: list[Thing]) -> None:
    lends = lending(1, made)
    with lends.lent():
        killed, next_one = Borrower(lends), Borrower(lends)
        killed.greenlet.kill(block=False)
    # It was given back before the kill has come, and the kill comes before the turn does.
    assert soon(killed, next_one) == [None, 0]
    next_one.end()


def test_who_is_killed_while_using_it_gives_it_back(made: list[Thing]) -> None:
    lends = lending(1, made)
    killed, next_one = Borrower(lends), Borrower(lends)
    killed.greenlet.kill()
    assert soon(killed, next_one) == [0, 0]
    next_one.end()


def test_who_runs_out_of_patience_has_left_the_queue(made: list[Thing]) -> None:
    lends = lending(1, made)
    holder, hasty, next_one = Borrower(lends), Borrower(lends, patience_s=0.01), Borrower(lends)
    hasty.greenlet.join(timeout=10)
    assert (hasty.timed_out, hasty.got) == (True, None)
    holder.end()
    assert soon(next_one) == [0]
    next_one.end()


def test_all_are_closed_together(made: list[Thing]) -> None:
    lends = lending(3, made)
    with lends.lent():
        pass
    lends.close()
    assert [thing.closed for thing in made] == [1, 1, 1]
