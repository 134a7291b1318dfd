"""What a verdict on HTTP against gRPC lacks: arms without a figure, repeats, counts of connections."""

from collections.abc import Iterator, Sequence

from reports.stats.spread import hedge
from reports.topics.contention.arms import Arm, Arms
from reports.topics.contention.axes import BASE_ARMS, PROTOCOLS

DECIDING = ("R0", "R1", "R2", "R4", "R5", "R6")


def lacking(arms: Arms, codes: Sequence[str]) -> tuple[str, ...]:
    """The arms without a figure, in words, with the reason."""
    words = {
        code: f"{PROTOCOLS[protocol]}, {said} (--channels {channels})"
        for code, said, protocol, channels in BASE_ARMS
    }
    return tuple(
        f"{words[code]}: {_why_none(arms[code])}" if code in arms else words[code]
        for code in codes
        if code not in arms or arms[code].rate is None
    )


def _why_none(arm: Arm) -> str:
    if not any(run.started for run in arm.planned):
        return "not run"
    codes = dict.fromkeys(doubt.code for run in arm.planned for doubt in run.caveats if doubt.tainted)
    return f"disqualified by {', '.join(codes)}" if codes else "no request succeeded"


def doubts(arms: Arms) -> Iterator[str]:
    """How few runs are behind the arms that decide, and connections that were not counted."""
    behind = [arms[code] for code in DECIDING if code in arms and arms[code].rate]
    if behind and (few := hedge(min(len(arm.runs) for arm in behind))):
        yield few
    if uncounted := [arm.name for arm in behind if arm.connections is None]:
        yield f"the kernel's count of TCP connections is missing for: {'; '.join(uncounted)}"
