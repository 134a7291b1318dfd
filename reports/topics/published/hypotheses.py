"""The published study's hypotheses, judged again from a study's own figures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reports.page.question import Question
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_figures.figures import published_figures
from reports.stats.figures import images_per_s, latency_ms, pair_name, pairing, stems
from reports.stats.repeats import COMPARABLE_RUNS, Runs, Spread, Value, grouped, hedge, over, spread_of
from reports.study.study import Study
from reports.summary.summary import Summary

LESS, MORE = 0.9, 1.1
"""Between them two figures are about equal, where the repeats allow no more than the next two."""
LEAST, MOST = 0.8, 1.25
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
    "H5": "needs a study on each of two GPUs over the same link: python -m reports compare A B",
}
"""What a study takes to test each."""
ELSEWHERE = "over this study's own path, where theirs was the internet"


@dataclass(frozen=True)
class Comparison:
    """gRPC over HTTP, or one way over the best other, somewhere in a study."""

    where: str
    ratio: Spread

    @property
    def more(self) -> bool:
        """Whether the first has more, with no repeat in common."""
        return self.ratio.median > MORE and self.ratio.low > 1

    @property
    def less(self) -> bool:
        """Whether the first has less, with no repeat in common."""
        return self.ratio.median < LESS and self.ratio.high < 1

    @property
    def below(self) -> bool:
        """Whether every one of enough repeats has less than every one of the other, however little."""
        return self.ratio.high < 1 and not hedge(self.ratio.runs)

    @property
    def equal(self) -> bool:
        """Whether both have about the same, as far as the repeats tell."""
        return LESS <= self.ratio.median <= MORE and self.ratio.low >= LEAST and self.ratio.high <= MOST

    def __str__(self) -> str:
        return f"{self.ratio.times} {self.where}"


def pairs(runs: Runs, value: Value) -> Iterator[Comparison]:
    """gRPC over HTTP for each pair of endpoints, batch, level and link; many users on one gRPC connection."""
    usual = (run for run in runs if not run.built_anew and not run.congestion)
    groups = grouped(usual, lambda run: (run.link, *pairing(run), run.level, run.batch))
    for (link, *_, level, batch), here in sorted(groups.items()):
        shared = "per-user" if level == 1 else "shared"
        grpc, http = _way(here, "grpc", shared, value), _way(here, "http", "per-user", value)
        if grpc and http and (ratio := over(grpc, http)):
            users = f", {level:g} users" if level > 1 else ""
            over_link = f" over {link}" if link else ""
            yield Comparison(f"({_named(here)} at batch {batch}{users}{over_link})", ratio)


def _named(runs: Runs) -> str:
    """Two endpoints of one model, each over its protocol."""
    http, grpc = (next(run for run in runs if run.protocol == protocol) for protocol in ("http", "grpc"))
    name, own = pair_name(http, grpc), stems(http)
    return own[http.payload != "fp32"] if name in own else name


def _way(runs: Runs, protocol: str, channels: str, value: Value) -> Spread | None:
    """The figure of one protocol's runs of one variant, on as few processes as there are; None without any.

    None, too, where they are of several endpoints, of which none is the one to compare.
    A single user has one connection whatever the channels; older ledgers do not tell HTTP's, which was
    always a connection each.
    """
    spoken = [run for run in runs if run.protocol == protocol]
    if len({run.endpoint for run in spoken}) > 1:
        return None
    kinds = (channels, "") if protocol == "http" else (channels,)
    usable = [run for run in spoken if run.channels in kinds] or [run for run in spoken if run.serial]
    if not usable:
        return None
    first = min(usable, key=lambda run: (run.workers or 0, run.hosts or 0, run.variant))
    return spread_of([run for run in usable if run.way == first.way], value)


def jpeg_first(runs: Runs) -> Iterator[Comparison]:
    """PyTorch with JPEG over the best other with a tensor, for each batch, level and link."""
    real = (run for run in runs if run.facts.computes)
    cells = grouped(real, lambda run: (run.link, run.level, run.batch))
    for (link, level, batch), here in sorted(cells.items()):
        jpeg = _best(run for run in here if run.backend == "pytorch" and run.payload == "jpeg")
        other = _best(run for run in here if run.payload == "fp32")
        if jpeg and other and (ratio := over(jpeg, other)):
            where = f"(batch {batch}, {level:g} user{'s' * (level > 1)}{f' over {link}' if link else ''})"
            yield Comparison(where, ratio)


def _best(runs: Iterable[Summary]) -> Spread | None:
    """The spread of the fastest way among some runs; None without any."""
    ways = grouped(runs, lambda run: run.way).values()
    found = [rate for of_way in ways if (rate := spread_of(of_way, images_per_s))]
    return max(found, key=lambda rate: rate.median, default=None)


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
        caption="Judged from this study's figures; “they” is what the published studies concluded. About "
        "equal is 0.9 to 1.1 where the repeats allow no more than 0.8 to 1.25. H1 holds, too, where every "
        "one of three or more repeats is lower, however little.",
        notes=notes,
    )


def asks_them(study: Study) -> bool:
    """Whether a study is of protocols and payloads, as theirs was that supposed this."""
    return str(study.header["study"]) in ASKED_BY


HYPOTHESES = Question("hypotheses", "Hypotheses", (hypotheses_table,), applies=asks_them)
