"""One request's turn on a connection that HTTP's users share, and what of it keeps the connection idle."""

from dataclasses import dataclass

from reports.fold.records import ratio
from reports.format import ms
from reports.stats.repeats import spread_of
from reports.summary.summary import Summary
from reports.topics.contention.arms import ArmRuns

LEAST_LEFT = 0.1
"""Of a request's turn on HTTP's connection: the mean turn and the server's mean time are each a few percent
off from run to run, and what is left between them must be more."""


@dataclass(frozen=True)
class Turn:
    """One request's turn on a connection that carries one at a time, and what of it keeps that idle.

    `server_ns` is the server's own time, `trip_ns` the way of the last byte there and of the first one back,
    0 where round trips are not known.
    """

    whole_ns: float
    server_ns: float
    trip_ns: float

    @property
    def busy_ns(self) -> float:
        """What is left for the connection to carry the request and its answer; not below 0."""
        return max(0.0, self.whole_ns - self.server_ns - self.trip_ns)

    @property
    def sure(self) -> bool:
        """Whether so much is left that it is no mere error of the others."""
        return self.busy_ns >= LEAST_LEFT * self.whole_ns

    @property
    def times(self) -> float:
        """How many times as much the connection would carry if never idle; where not `sure`, at least."""
        return self.whole_ns / max(self.busy_ns, LEAST_LEFT * self.whole_ns)


def turn_of(arm: ArmRuns) -> Turn | None:
    """The medians over an arm's runs; None where the server does not state its time."""
    whole, server = spread_of(arm.runs, each_ns), spread_of(arm.runs, lambda run: run.server.total_ns)
    if whole is None or server is None:
        return None
    trip = spread_of(arm.runs, lambda run: run.path.min_rtt_ns if run.path else None)
    return Turn(whole.median, server.median, trip.median if trip else 0.0)


def each_ns(run: Summary) -> float | None:
    """The time between two requests on one connection, on average: of so many, 1 by its share of the rate."""
    each = ratio(run.counts.measure_ns, run.succeeded)
    return None if each is None else each * (run.tcp_connections or run.workers or 1)


def turn_said(turn: Turn | None, grpc: ArmRuns) -> str:
    """What the connection needs for a request, beside gRPC's; empty where that is not known."""
    beside = spread_of(grpc.runs, each_ns)
    if turn is None or beside is None:
        return ""
    less = f"the server's {ms(turn.server_ns)} ms"
    less += f" and a round trip of {ms(turn.trip_ns)} ms" if turn.trip_ns else ""
    needed = f"{ms(turn.busy_ns)} of {ms(turn.whole_ns)} ms a request"
    return f"; without {less}, {needed}, where gRPC takes {ms(beside.median)} ms"
