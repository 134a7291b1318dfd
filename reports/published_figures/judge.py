"""The seeds' hypotheses, judged again from a study's own figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.page.grid import COMPARABLE_RUNS
from reports.published_figures.hypotheses import Comparison, jpeg_first, pairs
from reports.stats.spread import hedge
from reports.study.study_reports import Study
from reports.topics.payloads.matrix import images_per_s, latency_ms

LARGE_BATCH, MANY_USERS = 16, 8
TRUE, FALSE, PARTLY, INCONCLUSIVE, NOT_TESTED = "true", "false", "partly", "inconclusive", "not tested"
CLAIMS = {
    "H1": "gRPC lowers per-call overhead at batch 1",
    "H2": "HTTP about equals gRPC at large batches",
    "H3": "gRPC wins under high concurrency by multiplexing",
    "H4": "PyTorch with JPEG wins overall, since the input format decides",
    "H5": "on a slower GPU gRPC's batch-1 penalty differs",
}
PUBLISHED = {
    "H1": "false (4–14 % slower)",
    "H2": "partly (gRPC 1.2–1.7 times faster at 32)",
    "H3": "false (“Python client suffers channel contention”)",
    "H4": "confirmed",
    "H5": "confirmed (11–17 % on the RTX 4090)",
}
"""What the seeds had concluded."""
NEEDS = {
    "H1": "needs gRPC and HTTP of one backend at batch 1 with one user",
    "H2": f"needs gRPC and HTTP of one backend at batch {LARGE_BATCH} or more with one user",
    "H3": f"needs HTTP, and gRPC on one connection, with {MANY_USERS} users or more",
    "H4": "needs PyTorch with JPEG beside a backend that takes tensors",
    "H5": "needs a study on each of two GPUs over the same link: python -m reports compare A B",
}
"""What a study takes to test each."""


@dataclass(frozen=True)
class Hypothesis:
    """One of the seeds' claims: what this study makes of it, by which figures, and what they concluded."""

    code: str
    claim: str
    verdict: str
    figures: str
    doubt: str
    published: str


def hypotheses(study: Study) -> tuple[Hypothesis, ...]:
    """All five, each true, false, partly so, inconclusive, or not tested by this study."""
    closed = [run for run in study.started if run.load == "closed" and not run.is_floor]
    runs = [run for run in closed if run.succeeded and not run.tainted]
    serial = [run for run in runs if run.serial]
    single = list(pairs([run for run in serial if run.batch == 1], latency_ms))
    large = list(pairs([run for run in serial if run.batch >= LARGE_BATCH], images_per_s))
    many = list(pairs([run for run in runs if run.level >= MANY_USERS], images_per_s))
    jpeg = list(jpeg_first(runs))
    return (
        _judged("H1", "gRPC's p50 over HTTP's", single, [found.less or found.below for found in single]),
        _judged("H2", "gRPC's images/s over HTTP's", large, [found.equal for found in large]),
        _judged("H3", "one gRPC connection's images/s over HTTP's", many, [found.more for found in many]),
        _judged("H4", "its images/s over the best other's", jpeg, [found.more for found in jpeg]),
        _hypothesis("H5", NOT_TESTED, NEEDS["H5"]),
    )


def _judged(code: str, of: str, found: Sequence[Comparison], holds: Sequence[bool]) -> Hypothesis:
    """True where it holds everywhere, false where it does so nowhere, partly where here and there.

    Where the repeats, or a single run, leave a comparison open, it takes two others that disagree to tell
    anything.
    """
    if not found:
        return _hypothesis(code, NOT_TESTED, NEEDS[code])
    clear = [it.ratio.runs >= COMPARABLE_RUNS and (it.more or it.less or it.equal) for it in found]
    told = {holding for holding, known in zip(holds, clear, strict=True) if known}
    verdict = PARTLY if len(told) > 1 else TRUE if told == {True} else FALSE
    if not all(clear) and verdict != PARTLY:
        verdict = INCONCLUSIVE
    figures = f"{of}: {', '.join(map(str, found))}"
    return _hypothesis(code, verdict, figures, hedge(min(it.ratio.runs for it in found)))


def _hypothesis(code: str, verdict: str, figures: str = "", doubt: str = "") -> Hypothesis:
    return Hypothesis(code, CLAIMS[code], verdict, figures, doubt, PUBLISHED[code])
