"""One cell of a run on this worker: its phases, and what each has counted; most runs have one cell."""

import math
import time
from collections.abc import Mapping
from typing import Any

from swarm.distributed.recorder import PhaseCounts, Recorder
from users.load.assignment import DRAIN, Assignment
from users.load.load_profile import parse
from users.load.mix import chosen_by
from users.load.pacing import CONSTANT, NS_PER_S, ClosedPacer, CoursePacer, OpenPacer, Pacer, offsets_ns
from users.load.replay import Replay
from users.result import MEASURE

OF_PACER = ("due", "dropped", "overslept")


class CellPart:
    """Enters the phases of an assignment, and reports on the one that ended; times are `perf_counter_ns`."""

    def __init__(self, assignment: Assignment, recorder: Recorder) -> None:
        self.assignment, self._recorder = assignment, recorder
        self._entered_ns = 0
        self._orders: Mapping[str, Any] = {}
        self._marked = self._carried = 0
        """Requests of the warm-up that had finished at a mark, and those that a server may count after it."""
        self._ended: tuple[str, dict[str, Any]] | None = None
        """The phase whose requests are awaited, and its figures."""
        self._later = 0
        """Requests that were begun after it."""

    def mark(self) -> None:
        """The server's counters are read next: it has counted the requests that finished until now."""
        self._marked = self._tally(self.assignment.phase).finished

    def begin(self, orders: Mapping[str, Any], start_ns: int, share: tuple[int, int]) -> None:
        """Enter a phase in which users send; if they do so already, without a break."""
        self._carried, self._ended = self.assignment.sent - self._marked, None
        self._enter(orders, start_ns, share)

    def cool_down(self, orders: Mapping[str, Any], start_ns: int, share: tuple[int, int]) -> None:
        """End the phase, and go on sending."""
        self._ended = self.assignment.phase, self._figures()
        self._enter(orders, start_ns, share)

    def _enter(self, orders: Mapping[str, Any], start_ns: int, share: tuple[int, int]) -> None:
        self._entered_ns, self._orders = start_ns, orders
        self.assignment.user_seed = f"{orders['order_seed']}/{share[0]}"
        self.assignment.enter(orders["phase"], self._pacer(orders, share), orders["order_seed"])

    def _pacer(self, orders: Mapping[str, Any], share: tuple[int, int]) -> Pacer:
        """What starts the users' requests: a phase with `arrivals` is open-loop."""
        index, of = share
        if not orders["arrivals"] and orders["profile"]:
            return CoursePacer(
                closed=ClosedPacer(index, max(1, of)),
                course=parse(orders["profile"], orders["rate"]),
                start_ns=self._entered_ns,
                users=orders["users"],
            )
        if not orders["arrivals"]:
            return ClosedPacer(index, max(1, of))
        traffic = self.assignment.traffic
        if isinstance(traffic, Replay) and orders["phase"] == MEASURE:
            offsets = traffic.offsets_ns()
        else:
            offsets = offsets_ns(orders["arrivals"], orders["rate"], orders["seed"], orders["profile"])
        patience_ns = round(self.assignment.timeout_s * 1e9)
        return OpenPacer(offsets, self._entered_ns, index, of, patience_ns, split=chosen_by(orders))

    @property
    def left(self) -> int:
        """How many requests of the phase that ended have not come back."""
        return self.assignment.under_way[self._ended[0]] if self._ended else 0

    @property
    def succeeded(self) -> int:
        """How many of that phase succeeded."""
        return self._tally(self._ended[0]).ok if self._ended else 0

    def stop(self) -> None:
        """Pause the users: the phase under way ends, if none has ended before."""
        self._later = self.assignment.sent if self._ended else 0
        self._ended = self._ended or (self.assignment.phase, self._figures())
        self.assignment.enter(DRAIN)

    def drained(self) -> dict[str, Any]:
        """What a drained worker reports of the phase that ended."""
        assert self._ended is not None, "it was stopped"
        phase, figures = self._ended
        tally = self._tally(phase)
        return {
            "users": len(tally.users_ns),
            "users_ns": tally.spans_ns(self._tally(DRAIN)),
            "finished": tally.finished,
            "abandoned": self.left + tally.abandoned,
            "other_phases": self._carried + self._later,
            **figures,
        }

    def _tally(self, phase: str) -> PhaseCounts:
        return self._recorder.tally(self.assignment.cell, phase)

    def _figures(self) -> dict[str, Any]:
        """Of the phase under way, which ends."""
        phase_ns, pacer = time.perf_counter_ns() - self._entered_ns, self.assignment.pacer
        pacer.close()
        return {
            "sent": self.assignment.sent,
            "phase_ns": scheduled_ns(phase_ns, self._orders) if self._orders else 0,
            **{name: getattr(pacer, name) if pacer.paced else None for name in OF_PACER},
            **({"dropped_by_s": sorted(pacer.dropped_by_s.items())} if pacer.dropped else {}),
        }


def scheduled_ns(phase_ns: int, orders: Mapping[str, Any]) -> int:
    """How much of its schedule a phase of that length had, over which rates are.

    A course is over when it ends, however late the phase does. Constant arrivals begin with one at 0, so that
    n of them stand for n gaps, wherever in the last of these the phase ended.
    """
    seconds, rate = float(orders["seconds"]), float(orders["rate"])
    if seconds:
        return min(phase_ns, round(seconds * NS_PER_S))
    if orders["arrivals"] == CONSTANT:
        return round(math.ceil(phase_ns * rate / NS_PER_S) * NS_PER_S / rate)
    return phase_ns
