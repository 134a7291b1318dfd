"""The questions on HTTP against gRPC: how two arms are compared, what answers each, what supports that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from statistics import median

from reports.fold.records import ratio
from reports.format import digits, ms, multiple
from reports.limit import OF_THE_LOAD, OF_THE_SERVER, UNKNOWN
from reports.limits.client import MOST_PCT, used_pct
from reports.limits.path import LEAST_RETRANSMITS, LIMITED_SHARE, LOSS_SHARE
from reports.stats.repeats import Spread
from reports.topics.contention.arms import OWN_WIRE, ArmRuns, Arms, pool_size, ratio_of
from reports.topics.contention.senders import all_alike, sender_pairs
from reports.topics.contention.turn import turn_of, turn_said

CONNECTIONS, CPU, LOOP, LIBRARY = "connections", "client-cpu", "client-loop", "client-library"
FOR, AGAINST = "for", "against"
SLOWER = 0.8
"""Of HTTP's images/s: a difference that links and machines do not make by themselves between two runs."""
RECOVERED = 0.9
"""Of HTTP's images/s: what is left may be the cost of gRPC's own framing, and chance."""
ALIKE = (0.67, 1.5)
"""Between two ways to use one connection: what one connection gets varies with the losses it meets."""
SAME_COUNT = (0.7, 1.4)
"""Between as many connections from one process and from several."""
TIMES = 1.5
"""More than the arm beside it, with no repeat in common: what chance does not do to several runs."""
UNTOLD_TIME = "the server's own time is not known"
CLOSED = (0.25, 0.5)
"""Of the gap between HTTP and gRPC on one connection: closing less is no help, closing more is."""
ONE_HTTP = "Does HTTP fall on one connection?"
PROCESSES = "Do as many processes help?"
MUST_FIT = (ONE_HTTP, PROCESSES)
"""Questions whose answers must speak for connections where those are the cause."""
UNTELLING = frozenset({"", UNKNOWN, "server-cold", *OF_THE_LOAD})
"""Limits that name no cause of a difference."""


@dataclass(frozen=True)
class ExperimentAnswer:
    """A question, the figures that answer it, and which causes they speak for or against, if any.

    Where an experiment decides, others only support. Without figures its arms were not run, and where these
    were not what they should be, they are no test.
    """

    question: str
    figures: str = ""
    says: Mapping[str, str] = field(default_factory=dict)
    decides: bool = True
    tests: bool = True

    @property
    def answered(self) -> bool:
        """Whether its arms were run, and were what they should be."""
        return bool(self.figures) and self.tests

    @property
    def verdict(self) -> str:
        """What it says in words."""
        if not self.answered:
            return "no test of it" if self.figures else "not tested"
        told = [f"{word} {cause}" for cause, word in self.says.items()]
        return ", ".join(told) or "tells nothing either way"


Experiment = Callable[[Arms], ExperimentAnswer]
Found = tuple[str, Mapping[str, str] | None]
"""The figures, and which causes they speak for or against; None where the arms were no test."""


def asks(question: str, decides: bool = True) -> Callable[[Callable[[Arms], Found | None]], Experiment]:
    """Makes a question of what is found in the arms for it, which is None where they were not run."""

    def made(find: Callable[[Arms], Found | None]) -> Experiment:
        @wraps(find)
        def answer(arms: Arms) -> ExperimentAnswer:
            figures, says = find(arms) or ("", {})
            return ExperimentAnswer(question, figures, says or {}, decides, tests=says is not None)

        return answer

    return made


def figures(arm: ArmRuns) -> str:
    """An arm's images per second, and the connections that carried them."""
    seen = arm.connections
    count = "TCP connections not counted" if seen is None else f"{seen} TCP connection{'s' * (seen != 1)}"
    return f"{arm.rate} images/s on {count}"


def more(found: Spread) -> bool:
    """Whether one arm carries clearly more than another: by the medians, with no repeat in common."""
    return found.median >= TIMES and found.low > 1


def helps(arms: Arms, code: str, one: str = "R2") -> bool:
    """Whether an arm carries clearly more than gRPC on one connection: by times, or by the gap it closes."""
    found = ratio_of(arms, code, one)
    return found is not None and found.low > 1 and (more(found) or closed(arms, code, one) >= CLOSED[1])


def helps_not(arms: Arms, code: str) -> bool:
    """Whether an arm carries about as little as gRPC on one connection, where that is less than HTTP."""
    found = ratio_of(arms, code, "R2")
    return found is not None and not more(found) and closed(arms, code) < CLOSED[0]


def closed(arms: Arms, code: str, one: str = "R2") -> float:
    """How much of the gap between HTTP and gRPC on one connection an arm closes; 0 where there is none."""
    http, least, found = (arms[name].rate for name in ("R0", one, code))
    if not http or not least or not found or least.median >= SLOWER * http.median:
        return 0.0
    return (found.median - least.median) / (http.median - least.median)


def within(found: Spread, bounds: tuple[float, float]) -> bool:
    """Whether a ratio of medians lies between two bounds."""
    return bounds[0] <= found.median <= bounds[1]


@asks("Does gRPC recover with own connections?")
def each_user(arms: Arms) -> Found | None:
    """Does gRPC with a connection for each user come to HTTP's figure?"""
    of_http, of_one = ratio_of(arms, "R4", "R0"), ratio_of(arms, "R4", "R2")
    if not of_http or not of_one:
        return None
    said = f"{figures(arms['R4'])}, {digits(of_http.median)} of HTTP"
    many, one = arms["R4"].connections, arms["R2"].connections
    if many is not None and one is not None and many <= one:
        return f"{said}; no more connections than on one channel", None
    if of_http.median >= RECOVERED and helps(arms, "R4"):
        return said, {CONNECTIONS: FOR, CPU: AGAINST}
    return said, {CONNECTIONS: AGAINST} if helps_not(arms, "R4") else {}


@asks(ONE_HTTP)
def http_on_one(arms: Arms) -> Found | None:
    """Does HTTP fall as gRPC does when all its users share one connection?

    They take turns, so that the server's work on each delays the others, and gRPC overlaps it: compared is
    what HTTP would carry without that. Where it is not known, that is at least what HTTP carries.
    """
    of_http, of_grpc = ratio_of(arms, "R1", "R0"), ratio_of(arms, "R1", "R2")
    if not of_http or not of_grpc:
        return None
    turn = turn_of(arms["R1"])
    times = 1.0 if turn is None else turn.times
    freed_http, freed_grpc = times * of_http.median, of_grpc.scaled(times)
    said = f"{figures(arms['R1'])}, {digits(of_grpc.median)} of gRPC on one{turn_said(turn, arms['R2'])}"
    if freed_http >= RECOVERED:
        return said, {CONNECTIONS: AGAINST}
    if freed_http >= SLOWER or freed_grpc.median > ALIKE[1]:
        return said, {}
    if turn is None or not turn.sure:
        return f"{said}; {'that is too little to tell' if turn else UNTOLD_TIME}", None
    if (limit := arms["R2"].limit) in OF_THE_SERVER:
        return f"{said}; gRPC's limit there is {limit}", {}
    return said, {CONNECTIONS: FOR} if within(freed_grpc, ALIKE) else {}


@asks("Do equal channels share one connection?", decides=False)
def equal_arguments(arms: Arms) -> Found | None:
    """Do channels of equal arguments share a connection, and its figure? Beside one channel by the same."""
    one, each = ("R8", "R9") if arms["R2"].sender == OWN_WIRE else ("R2", "R4")
    if not (found := ratio_of(arms, "R3", one)):
        return None
    said = f"{figures(arms['R3'])}, {digits(found.median)} of one channel"
    seen, least = arms["R3"].connections, arms[one].connections
    if seen is not None and least is not None and seen > least:
        return said, {}
    # What they share only tells where channels that share nothing carry more.
    alike = {CONNECTIONS: FOR} if within(found, ALIKE) and helps(arms, each, one) else {}
    return said, {CONNECTIONS: AGAINST} if more(found) else alike


@asks("Do several channels carry more than one?")
def several_channels(arms: Arms) -> Found | None:
    """Do several channels carry more than one, in the same process?"""
    if not (found := ratio_of(arms, "R5", "R2")):
        return None
    said = f"{figures(arms['R5'])}, {multiple(found.median)} times one channel"
    if helps(arms, "R5"):
        return said, {CONNECTIONS: FOR, CPU: AGAINST}
    return said, {CONNECTIONS: AGAINST} if helps_not(arms, "R5") else {}


@asks(PROCESSES)
def several_processes(arms: Arms) -> Found | None:
    """Do as many connections carry more when each has a process of its own?"""
    if not (found := ratio_of(arms, "R6", "R5")):
        return None
    pool, spread = arms["R5"], arms["R6"]
    said = f"{figures(spread)} from {spread.axes.workers} processes; {figures(pool)} from {pool.axes.workers}"
    if not _as_many(pool, spread):
        return f"{said}; not as many", None
    if more(found):
        return said, {CPU: FOR, CONNECTIONS: AGAINST}
    if not within(found, SAME_COUNT):
        return said, {}
    helped = {CONNECTIONS: FOR} if helps(arms, "R6") else {}
    return said, {**helped, CPU: AGAINST}


def _as_many(pool: ArmRuns, spread: ArmRuns) -> bool:
    """Whether two arms have as many connections: as seen, or as planned where that is not known."""
    if pool.connections is not None and spread.connections is not None:
        return pool.connections == spread.connections
    return pool_size(pool.axes) * pool.axes.workers == spread.axes.workers


@asks("Does the library matter, or the connection?")
def by_sender(arms: Arms) -> Found | None:
    """Does it matter what sends the requests: our own wire, or grpcio, which takes much more CPU?"""
    if not (pairs := sender_pairs(arms)):
        both = ratio_of(arms, "R8", "R2")
        return (f"{figures(arms['R8'])}; grpcio sent one channel's requests, too", None) if both else None
    said = "; ".join(map(str, pairs))
    if not all(pair.as_many for pair in pairs):
        return said, None
    if any(pair.slower for pair in pairs):
        return said, {LIBRARY: FOR}
    if not all_alike(pairs):
        return said, {}
    carried = {CONNECTIONS: FOR} if helps(arms, "R4") else {}
    return said, {**carried, LIBRARY: AGAINST, CPU: AGAINST}


@asks("Does BBR on the client help?", decides=False)
def other_congestion(arms: Arms) -> Found | None:
    """Does another congestion control on the client carry more over the one connection?"""
    if not (found := ratio_of(arms, "R12", "R2")):
        return None
    said = f"{figures(arms['R12'])}, {multiple(found.median)} times the link's own congestion control"
    return said, {CONNECTIONS: FOR} if helps(arms, "R12") else {}


@asks("What limits the one connection?", decides=False)
def kernel(arms: Arms) -> Found | None:
    """By the kernel's own account of gRPC's one connection."""
    paths = [run.path for run in arms["R2"].runs if run.path]
    held = [path.cwnd_share for path in paths if path.cwnd_share is not None]
    found = losses(arms)
    if not held or found is None:
        return None
    again, lost = found
    said = f"its congestion window {digits(100 * median(held))} % of the busy time"
    said += f"; {again:,} segments ({digits(100 * lost)} %) were retransmitted"
    shown = lossy(arms) and median(held) >= LIMITED_SHARE
    return said, {CONNECTIONS: FOR} if shown else {}


def losses(arms: Arms) -> tuple[int, float] | None:
    """Segments of gRPC's one connection that were sent again, and their share; None where not counted."""
    paths = [run.path for run in arms["R2"].runs if run.path and run.path.retransmits is not None]
    again = sum(path.retransmits or 0 for path in paths)
    lost = ratio(again, sum(path.segments_out or 0 for path in paths))
    return None if lost is None else (again, lost)


def lossy(arms: Arms) -> bool | None:
    """Whether so many were that it is no chance, and tells at one connection; None where it is not known."""
    found = losses(arms)
    return None if found is None else found[0] >= LEAST_RETRANSMITS and found[1] >= LOSS_SHARE


@asks("Does the client have CPU to spare?", decides=False)
def health(arms: Arms) -> Found | None:
    """Had the client's process room?"""
    used = [pct for run in arms["R2"].runs if (pct := used_pct(run)) is not None]
    if not used:
        return None
    lags = [lag for run in arms["R2"].runs if (lag := run.generator.loop_lag_p99_ns) is not None]
    late = f"; its loop lagged {ms(max(lags))} ms at p99" if lags else ""
    said = f"the busiest used {digits(max(used))} % of a core{late}"
    if any(caveat.code == "client-bound" for run in arms["R2"].runs for caveat in run.caveats):
        return said, {}
    of_cpu = {CPU: AGAINST} if max(used) < MOST_PCT else {}
    return said, of_cpu | ({LOOP: AGAINST} if lags else {})


@asks("Which limits do the rules name?", decides=False)
def limits(arms: Arms) -> Found | None:
    """Which limits do the rules name?"""
    named = {code: arms[code].limit for code in ("R2", "R4", "R0") if code in arms and arms[code].limit}
    said = "; ".join(f"{arms[code].name}: {limit}" for code, limit in named.items())
    return said, {named["R2"]: FOR} if named.get("R2", "") not in UNTELLING else {}


QUESTIONS = (
    *(each_user, http_on_one, equal_arguments, several_channels, several_processes),
    *(by_sender, other_congestion, kernel, health, limits),
)
