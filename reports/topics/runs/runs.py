"""Tables of single runs: every number of each, its caveats, its failures."""

from collections import Counter

from reports.format import known, ms
from reports.page.disclosures import disclosures, stand_in
from reports.page.table import Footnotes, Table, TableCell, words
from reports.study.study import Study
from reports.summary.summary import Summary, codes

HEADS = (
    "run",
    "successes",
    "failures",
    "abandoned",
    "images/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "max ms",
    "caveats",
)


def run_name(run: Summary) -> str:
    """The cell's name, with the repeat where it is not the first."""
    return run.cell if run.repeat == 1 else f"{run.cell} r{run.repeat}"


def every_run(study: Study) -> Table:
    """One row for each run that was begun, in run order."""
    notes = Footnotes()
    rows = tuple(
        (run_head(study, run, notes), *_numbers(run), TableCell(codes(run))) for run in study.started
    )
    said = disclosures(study, (run.endpoint for run in study.started))
    return Table(
        "Runs, in the order they were made",
        "Latency counts from the intended start and covers successes only.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, 9)),
        shared=tuple(text for text in said if text not in notes.texts),
    )


def run_head(study: Study, run: Summary, notes: Footnotes) -> TableCell:
    """The run's name, marked with what stands in for something else."""
    said = stand_in(study, run.endpoint)
    return TableCell(run_name(run), notes.marks([said] if said else []))


def _numbers(run: Summary) -> list[TableCell]:
    counts = (run.succeeded, run.failures or 0, run.abandoned or 0)
    times = (run.latency_p50_ns, run.latency_p95_ns, run.latency_p99_ns, run.latency_max_ns)
    return [
        TableCell(text)
        for text in (
            *(f"{count:,}" for count in counts),
            known(run.images_per_s),
            *(ms(time) for time in times),
        )
    ]


def caveats_by_code(study: Study) -> Table:
    """How many runs each caveat touches and what to do about it, most frequent first."""
    advice = {doubt.code: doubt for run in study.started for doubt in run.caveats}
    counts = Counter(code for run in study.started for code in {doubt.code for doubt in run.caveats})
    rows = (
        (code, counts[code], "yes" if advice[code].tainted else "no", advice[code].advice)
        for code in sorted(counts, key=lambda code: (-counts[code], code))
    )
    return words("Caveats", ("caveat", "runs", "disqualifies", "what to do"), rows, numeric=[1])


def caveats_by_run(study: Study) -> Table:
    """Every caveat with what happened."""
    rows = ((run_name(run), doubt.code, doubt.text) for run in study.started for doubt in run.caveats)
    return words("Caveats, run by run", ("run", "caveat", "what happened"), rows, folded=True)


def failures_by_kind(study: Study) -> Table:
    """Failed requests of the measure phases by endpoint and kind."""
    found: Counter[tuple[str, str]] = Counter()
    for run in study.started:
        found.update({(study.named(run.way), kind): count for kind, count in run.failure_kinds.items()})
    rows = ((endpoint, kind, f"{count:,}") for (endpoint, kind), count in sorted(found.items()))
    return words("Failures by kind", ("endpoint", "kind", "requests"), rows, numeric=[2])
