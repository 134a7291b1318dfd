"""What supports a verdict on HTTP against gRPC: the kernel's account, the client's health, the limits."""

from statistics import median

from reports.fold.ratio import ratio
from reports.format import digits, ms
from reports.limits.client import MOST_PCT, used_pct
from reports.limits.path import LOSS_SHARE
from reports.limits.windows import LIMITED_SHARE
from reports.topics.contention.arms import Arms
from reports.topics.contention.evidence import AGAINST, CONNECTIONS, CPU, FOR, LOOP, Evidence

UNTELLING = ("", "inconclusive", "offered-load", "server-cold")
"""Limits that name no cause of a difference."""


def kernel(arms: Arms) -> Evidence:
    """By the kernel's own account of gRPC's one connection."""
    question = "What holds the one connection up?"
    paths = [run.path for run in arms["R2"].runs if run.path]
    held = [path.cwnd_share for path in paths if path.cwnd_share is not None]
    again = sum(path.retransmits or 0 for path in paths)
    lost = ratio(again, sum(path.segments_out or 0 for path in paths))
    if not held or lost is None:
        return Evidence(question, decides=False)
    said = f"its congestion window {digits(100 * median(held))} % of the busy time"
    said += f"; {again:,} segments ({digits(100 * lost)} %) were sent again"
    shown = lost >= LOSS_SHARE and median(held) >= LIMITED_SHARE
    return Evidence(question, said, {CONNECTIONS: FOR} if shown else {}, decides=False)


def health(arms: Arms) -> Evidence:
    """Had the client's process room?"""
    question = "Has the client CPU to spare?"
    used = [pct for run in arms["R2"].runs if (pct := used_pct(run)) is not None]
    if not used:
        return Evidence(question, decides=False)
    lags = [lag for run in arms["R2"].runs if (lag := run.loop_lag_p99_ns) is not None]
    late = f"; its loop lagged {ms(max(lags))} ms at p99" if lags else ""
    said = f"the busiest used {digits(max(used))} % of a core{late}"
    bound = any(doubt.code == "client-bound" for run in arms["R2"].runs for doubt in run.caveats)
    says = {} if bound else {CPU: AGAINST} if max(used) < MOST_PCT else {}
    return Evidence(question, said, says | ({} if bound or not lags else {LOOP: AGAINST}), decides=False)


def limits(arms: Arms) -> Evidence:
    """Which limits do the rules name?"""
    question = "Which limits do the rules name?"
    named = {code: arms[code].limit for code in ("R2", "R4", "R0") if code in arms and arms[code].limit}
    said = "; ".join(f"{arms[code].name}: {limit}" for code, limit in named.items())
    causes = {named["R2"]: FOR} if named.get("R2", "") not in UNTELLING else {}
    return Evidence(question, said, causes, decides=False)
