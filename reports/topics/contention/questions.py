"""The questions on HTTP against gRPC: what answers each, and what supports the answer."""

from statistics import median

from reports.fold.records import ratio
from reports.format import digits, ms
from reports.limits.client import MOST_PCT, used_pct
from reports.limits.path import LOSS_SHARE
from reports.limits.windows import LIMITED_SHARE
from reports.topics.contention.arms import ArmRuns, Arms, pool_size, ratio_of
from reports.topics.contention.evidence import (
    AGAINST,
    ALIKE,
    CONNECTIONS,
    CPU,
    FOR,
    LIBRARY,
    LOOP,
    RECOVERED,
    SAME_COUNT,
    SLOWER,
    ExperimentAnswer,
    figures,
    helps,
    helps_not,
    more,
    within,
)

ONE_HTTP = "Does HTTP fall on one connection?"
PROCESSES = "Do as many processes carry more?"
MUST_FIT = (ONE_HTTP, PROCESSES)
"""Questions whose answers must speak for connections where those are the cause."""
UNTELLING = ("", "inconclusive", "offered-load", "server-cold")
"""Limits that name no cause of a difference."""


def each_user(arms: Arms) -> ExperimentAnswer:
    """Does gRPC with a connection for each user come to HTTP's figure?"""
    question = "Does gRPC recover with own connections?"
    of_http, of_one = ratio_of(arms, "R4", "R0"), ratio_of(arms, "R4", "R2")
    if not of_http or not of_one:
        return ExperimentAnswer(question)
    said = f"{figures(arms['R4'])}, {digits(of_http.median)} of HTTP"
    many, one = arms["R4"].connections, arms["R2"].connections
    if many is not None and one is not None and many <= one:
        return ExperimentAnswer(question, f"{said}; no more connections than on one channel", tests=False)
    if of_http.median >= RECOVERED and helps(arms, "R4"):
        return ExperimentAnswer(question, said, {CONNECTIONS: FOR, CPU: AGAINST})
    return ExperimentAnswer(question, said, {CONNECTIONS: AGAINST} if helps_not(arms, "R4") else {})


def http_on_one(arms: Arms) -> ExperimentAnswer:
    """Does HTTP fall as gRPC does when all its users share one connection?"""
    question = ONE_HTTP
    of_http, of_grpc = ratio_of(arms, "R1", "R0"), ratio_of(arms, "R1", "R2")
    if not of_http or not of_grpc:
        return ExperimentAnswer(question)
    said = f"{figures(arms['R1'])}, {digits(of_grpc.median)} of gRPC on one"
    if of_http.median >= RECOVERED:
        return ExperimentAnswer(question, said, {CONNECTIONS: AGAINST})
    fell = within(of_grpc, ALIKE) and of_http.median < SLOWER
    return ExperimentAnswer(question, said, {CONNECTIONS: FOR} if fell else {})


def equal_arguments(arms: Arms) -> ExperimentAnswer:
    """Do channels of equal arguments share a connection, and its figure?"""
    question = "Do equal channels share one connection?"
    found = ratio_of(arms, "R3", "R2")
    if not found:
        return ExperimentAnswer(question)
    said = f"{figures(arms['R3'])}, {digits(found.median)} of one channel"
    seen, one = arms["R3"].connections, arms["R2"].connections
    if seen is not None and one is not None and seen > one:
        return ExperimentAnswer(question, said, decides=False)
    # What they share only tells where channels that share nothing carry more.
    alike = {CONNECTIONS: FOR} if within(found, ALIKE) and helps(arms, "R4") else {}
    says = {CONNECTIONS: AGAINST} if more(found) else alike
    return ExperimentAnswer(question, said, says, decides=False)


def several_channels(arms: Arms) -> ExperimentAnswer:
    """Do several channels carry more than one, in the same process?"""
    question = "Do several channels carry more than one?"
    found = ratio_of(arms, "R5", "R2")
    if not found:
        return ExperimentAnswer(question)
    said = f"{figures(arms['R5'])}, {digits(found.median)} times one channel"
    if helps(arms, "R5"):
        return ExperimentAnswer(question, said, {CONNECTIONS: FOR, CPU: AGAINST})
    return ExperimentAnswer(question, said, {CONNECTIONS: AGAINST} if helps_not(arms, "R5") else {})


def several_processes(arms: Arms) -> ExperimentAnswer:
    """Do as many connections carry more when each has a process of its own?"""
    question = PROCESSES
    found = ratio_of(arms, "R6", "R5")
    if not found:
        return ExperimentAnswer(question)
    pool, spread = arms["R5"], arms["R6"]
    said = f"{figures(spread)} from {spread.axes.workers} processes; {figures(pool)} from {pool.axes.workers}"
    if not _as_many(pool, spread):
        return ExperimentAnswer(question, f"{said}; not as many", tests=False)
    if more(found):
        return ExperimentAnswer(question, said, {CPU: FOR, CONNECTIONS: AGAINST})
    if not within(found, SAME_COUNT):
        return ExperimentAnswer(question, said)
    helped = {CONNECTIONS: FOR} if helps(arms, "R6") else {}
    return ExperimentAnswer(question, said, {**helped, CPU: AGAINST})


def _as_many(pool: ArmRuns, spread: ArmRuns) -> bool:
    """Whether two arms have as many connections: as seen, or as planned where that is not known."""
    if pool.connections is not None and spread.connections is not None:
        return pool.connections == spread.connections
    return pool_size(pool.axes) * pool.axes.workers == spread.axes.workers


def by_the_library(arms: Arms) -> ExperimentAnswer:
    """Does it matter who builds the requests?"""
    question = "Does tritonclient's building slow it?"
    found = ratio_of(arms, "R8", "R2")
    if not found:
        return ExperimentAnswer(question)
    said = f"{figures(arms['R8'])}, {digits(found.median)} of prepared requests"
    slower = found.median <= LIBRARY and (found.high < 1 or found.runs == 1)
    return ExperimentAnswer(
        question, said, {CPU: FOR if slower else AGAINST} if slower or found.median > LIBRARY else {}
    )


def other_congestion(arms: Arms) -> ExperimentAnswer:
    """Does another congestion control on the client carry more over the one connection?"""
    question = "Does BBR on the client help?"
    found = ratio_of(arms, "R12", "R2")
    if not found:
        return ExperimentAnswer(question, decides=False)
    said = f"{figures(arms['R12'])}, {digits(found.median)} times the link's own congestion control"
    return ExperimentAnswer(question, said, {CONNECTIONS: FOR} if helps(arms, "R12") else {}, decides=False)


def kernel(arms: Arms) -> ExperimentAnswer:
    """By the kernel's own account of gRPC's one connection."""
    question = "What holds the one connection up?"
    paths = [run.path for run in arms["R2"].runs if run.path]
    held = [path.cwnd_share for path in paths if path.cwnd_share is not None]
    again = sum(path.retransmits or 0 for path in paths)
    lost = ratio(again, sum(path.segments_out or 0 for path in paths))
    if not held or lost is None:
        return ExperimentAnswer(question, decides=False)
    said = f"its congestion window {digits(100 * median(held))} % of the busy time"
    said += f"; {again:,} segments ({digits(100 * lost)} %) were sent again"
    shown = lost >= LOSS_SHARE and median(held) >= LIMITED_SHARE
    return ExperimentAnswer(question, said, {CONNECTIONS: FOR} if shown else {}, decides=False)


def health(arms: Arms) -> ExperimentAnswer:
    """Had the client's process room?"""
    question = "Has the client CPU to spare?"
    used = [pct for run in arms["R2"].runs if (pct := used_pct(run)) is not None]
    if not used:
        return ExperimentAnswer(question, decides=False)
    lags = [lag for run in arms["R2"].runs if (lag := run.loop_lag_p99_ns) is not None]
    late = f"; its loop lagged {ms(max(lags))} ms at p99" if lags else ""
    said = f"the busiest used {digits(max(used))} % of a core{late}"
    bound = any(doubt.code == "client-bound" for run in arms["R2"].runs for doubt in run.caveats)
    says = {} if bound else {CPU: AGAINST} if max(used) < MOST_PCT else {}
    return ExperimentAnswer(
        question, said, says | ({} if bound or not lags else {LOOP: AGAINST}), decides=False
    )


def limits(arms: Arms) -> ExperimentAnswer:
    """Which limits do the rules name?"""
    question = "Which limits do the rules name?"
    named = {code: arms[code].limit for code in ("R2", "R4", "R0") if code in arms and arms[code].limit}
    said = "; ".join(f"{arms[code].name}: {limit}" for code, limit in named.items())
    causes = {named["R2"]: FOR} if named.get("R2", "") not in UNTELLING else {}
    return ExperimentAnswer(question, said, causes, decides=False)
