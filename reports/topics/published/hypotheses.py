"""The published study's hypotheses, judged again from a study's own figures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from reports.page.question import Question
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_figures.figures import published_figures
from reports.stats.failures import rankable
from reports.stats.figures import images_per_s, p50_ms, pair_name, pairing, stems
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import (
    ALPHA,
    LEAST_REPEATS,
    LESS,
    MORE,
    holm,
    p_unlike,
    paired_ratio,
    with_least_error,
)
from reports.stats.repeats import Runs, Value, by_repeat, grouped, hedge
from reports.study.study import Study
from reports.summary.summary import Summary

LARGE_BATCH, MANY_USERS = 16, 8
ASKED_BY = ("step7", "step7_contention")
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
"""What the published study concluded."""
NEEDS = {
    "H1": "needs gRPC and HTTP of one backend at batch 1 with one user",
    "H2": f"needs gRPC and HTTP of one backend at batch {LARGE_BATCH} or more with one user",
    "H3": f"needs HTTP, and gRPC on one connection, with {MANY_USERS} users or more",
    "H4": "needs PyTorch with JPEG beside a backend that takes tensors",
    "H5": "needs a study on each of two GPUs over the same link: inferswarm compare A B",
}
"""What a study takes to test each."""
ELSEWHERE = "over this study's own path, where theirs was the internet"


@dataclass(frozen=True)
class Comparison:
    """gRPC over HTTP, or one way over the best other, somewhere in a study.

    `differs` is how likely such repeats are where both are equal, `unlike` where they are not about equal.
    """

    where: str
    ratio: LogRatio
    differs: float
    unlike: float

    @property
    def below(self) -> bool:
        """Whether the first has less, however little."""
        return self.differs <= ALPHA and self.ratio.ratio < 1

    @property
    def equal(self) -> bool:
        """Whether both have about the same."""
        return self.unlike <= ALPHA

    @property
    def more(self) -> bool:
        """Whether the first has more, and not just a little."""
        return self.differs <= ALPHA and self.ratio.ratio > MORE

    @property
    def less(self) -> bool:
        """Whether the first has less, and not just a little."""
        return self.below and self.ratio.ratio < LESS

    def __str__(self) -> str:
        return f"{self.ratio.times} {self.where}"


Holds = Callable[[Comparison], bool]
Tested = tuple[Sequence[Comparison], Sequence[Comparison]]
"""Each comparison by itself, and the same ones adjusted for how many were looked at."""


def looked_at(found: Iterable[tuple[str, Sequence[LogRatio]]]) -> Tested:
    """One for each place, of its ratios the lowest; adjusted by Holm's method for all ratios of all places.

    Being equal and being different are tested separately.
    """
    every = list(found)
    ratios = [ratio for _, of in every for ratio in of]
    steady = with_least_error(ratios)
    differs, unlike = holm([it.p_even for it in steady]), holm([p_unlike(it) for it in steady])
    adjusted = dict(zip(ratios, zip(differs, unlike, strict=True), strict=True))
    lowest = [(where, min(of, key=lambda it: it.ratio)) for where, of in every]
    return (
        [Comparison(where, it, it.p_even, p_unlike(it)) for where, it in lowest],
        [Comparison(where, it, *adjusted[it]) for where, it in lowest],
    )


def pairs(runs: Runs, value: Value) -> Iterator[tuple[str, Sequence[LogRatio]]]:
    """gRPC over HTTP for each pair of endpoints, batch, level and link; many users on one gRPC connection."""
    usual = (run for run in runs if not run.built_anew and not run.congestion)
    groups = grouped(usual, lambda run: (run.link, *pairing(run), run.level, run.batch))
    for (link, *_, level, batch), here in sorted(groups.items()):
        shared = "per-user" if level == 1 else "shared"
        grpc, http = _way(here, "grpc", shared, value), _way(here, "http", "per-user", value)
        if grpc and http:
            users = f", {level:g} users" if level > 1 else ""
            over_link = f" over {link}" if link else ""
            yield f"({_named(here)} at batch {batch}{users}{over_link})", [paired_ratio(grpc, http)]


def _named(runs: Runs) -> str:
    """Two endpoints of one model, each over its protocol."""
    http, grpc = (next(run for run in runs if run.protocol == protocol) for protocol in ("http", "grpc"))
    name, own = pair_name(http, grpc), stems(http)
    return own[http.payload != "fp32"] if name in own else name


def _way(runs: Runs, protocol: str, channels: str, value: Value) -> dict[int, float]:
    """The figure of one protocol's runs of one variant, on as few processes as there are, by repeat.

    Empty where there is none, and where they are of several endpoints, of which none is the one to compare.
    A single user has one connection whatever the channels; older ledgers do not tell HTTP's, which was
    always a connection each.
    """
    spoken = [run for run in runs if run.protocol == protocol]
    if len({run.endpoint for run in spoken}) > 1:
        return {}
    kinds = (channels, "") if protocol == "http" else (channels,)
    usable = [run for run in spoken if run.channels in kinds] or [run for run in spoken if run.serial]
    if not usable:
        return {}
    first = min(usable, key=lambda run: (run.workers or 0, run.hosts or 0, run.variant))
    return by_repeat([run for run in usable if run.way == first.way], value)


def jpeg_first(runs: Runs) -> Iterator[tuple[str, Sequence[LogRatio]]]:
    """PyTorch with JPEG over each other with a tensor, for each batch, level and link."""
    real = (run for run in runs if run.facts.computes)
    cells = grouped(real, lambda run: (run.link, run.level, run.batch))
    for (link, level, batch), here in sorted(cells.items()):
        jpegs = [run for run in here if run.backend == "pytorch" and run.payload == "jpeg"]
        jpeg = max(_rates(jpegs), key=lambda rates: fmean(rates.values()), default=None)
        others = list(_rates(run for run in here if run.payload == "fp32"))
        if jpeg and others:
            where = f"(batch {batch}, {level:g} user{'s' * (level > 1)}{f' over {link}' if link else ''})"
            yield where, [paired_ratio(jpeg, other) for other in others]


def _rates(runs: Iterable[Summary]) -> Iterator[dict[int, float]]:
    """Images per second of each way that has any, by repeat."""
    ways = grouped(runs, lambda run: run.way).values()
    return (rates for of_way in ways if (rates := by_repeat(of_way, images_per_s)))


@dataclass(frozen=True)
class Hypothesis:
    """One of the published claims: what this study makes of it, by which figures, and what they concluded."""

    code: str
    claim: str
    verdict: str
    figures: str
    doubt: str
    published: str


def hypotheses(study: Study) -> tuple[Hypothesis, ...]:
    """All five, each true, false, partly so, inconclusive, or not tested by this study."""
    closed = [run for run in study.started if run.closed and not run.is_floor]
    runs = [run for run in rankable(closed) if run.succeeded and not run.tainted]
    serial = [run for run in runs if run.serial]
    single = looked_at(pairs([run for run in serial if run.batch == 1], p50_ms))
    large = looked_at(pairs([run for run in serial if run.batch >= LARGE_BATCH], images_per_s))
    many = looked_at(pairs([run for run in runs if run.level >= MANY_USERS], images_per_s))
    jpeg = looked_at(jpeg_first(runs))
    return (
        judge("H1", "gRPC's p50 over HTTP's", single, lambda it: it.below),
        judge("H2", "gRPC's images/s over HTTP's", large, lambda it: it.equal),
        judge("H3", "one gRPC connection's images/s over HTTP's", many, lambda it: it.more),
        judge("H4", "its images/s over the best other's", jpeg, lambda it: it.more),
        _hypothesis("H5", NOT_TESTED, NEEDS["H5"]),
    )


def judge(code: str, of: str, found: Tested, holds: Holds) -> Hypothesis:
    """True where it holds everywhere, false where it does so nowhere, partly where here and there.

    True and false take every comparison, so that none of them needs adjusting (R. L. Berger, Multiparameter
    hypothesis testing and acceptance sampling, Technometrics 24, 1982). Partly takes two that disagree though
    they are adjusted.
    """
    alone, adjusted = found
    if not alone:
        return _hypothesis(code, NOT_TESTED, NEEDS[code])
    told, sure = _told(alone, holds), _told(adjusted, holds)
    if len(set(told)) == 1 and None not in told:
        verdict = TRUE if told[0] else FALSE
    else:
        verdict = PARTLY if {True, False} <= set(sure) else INCONCLUSIVE
    doubt = _doubt(min(it.ratio.runs for it in alone)) if verdict == INCONCLUSIVE else ""
    return _hypothesis(code, verdict, f"{of}: {', '.join(map(str, alone))}", doubt)


def _told(found: Sequence[Comparison], holds: Holds) -> list[bool | None]:
    """Whether it holds in each; None where the repeats leave that open."""
    return [holds(it) if it.more or it.less or it.equal or holds(it) else None for it in found]


def _doubt(pairs_: int) -> str:
    """Why it is left open."""
    if pairs_ < LEAST_REPEATS:
        return hedge(pairs_) or f"fewer than {LEAST_REPEATS} repeats of both"
    return "the repeats leave it open: more of them would show smaller differences"


def _hypothesis(code: str, verdict: str, figures: str = "", doubt: str = "") -> Hypothesis:
    return Hypothesis(code, CLAIMS[code], verdict, figures, doubt, PUBLISHED[code])


def judged(study: Study) -> tuple[Hypothesis, ...]:
    """All five; doubted, too, where no run went over a link that models the path of a published study.

    None for a study of anything else than theirs.
    """
    if not study.of_published_study:
        return ()
    elsewhere = "" if published_figures(study) else ELSEWHERE
    return tuple(
        it if it.verdict == NOT_TESTED else replace(it, doubt="; ".join(filter(None, (elsewhere, it.doubt))))
        for it in hypotheses(study)
    )


def hypotheses_table(study: Study) -> Table:
    """One row for each; none where nothing was run."""
    notes = Footnotes()
    doubts = ((it, notes.marks([it.doubt] if it.doubt else [])) for it in judged(study))
    rows = [
        (it.code, it.claim, TableCell(it.verdict, marks), it.published, it.figures) for it, marks in doubts
    ]
    return table_of(
        "The published study's hypotheses",
        ("", "hypothesis", "here", "they (published)", "figures"),
        rows if study.started else (),
        caption="Judged from this study's figures; “they” is what the published studies concluded. Ratios "
        "have the 95 % CI of the repeats in pairs (Student's t of the logs). More or less: a ratio outside "
        f"{LESS:g} to {MORE:g} that differs significantly from 1. About equal: two one-sided tests of 5 % "
        "place it inside. For H1 any lower p50 will do. True or false takes every comparison. Partly takes "
        "two that disagree by Holm's method over all.",
        notes=notes,
    )


def asks_them(study: Study) -> bool:
    """Whether a study is of protocols and payloads, as theirs was that supposed this."""
    return str(study.header["study"]) in ASKED_BY


HYPOTHESES = Question("hypotheses", "Hypotheses", (hypotheses_table,), applies=asks_them)
