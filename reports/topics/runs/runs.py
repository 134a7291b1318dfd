"""Tables of runs: every number of each, their caveats, their failures."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from reports.format import digits, known, ms
from reports.page.question import Question
from reports.page.study_table import Columns, study_table, text
from reports.page.table import Table, table_of
from reports.stats.failures import MOST_FAILED, failed_ns, failed_share, succeeded_ns
from reports.stats.repeats import Runs, by_cell, ranked
from reports.study.study import Study
from reports.summary.summary import Summary, codes


class Repeated(Protocol):
    """Something that is told of one repeat of a cell."""

    @property
    def cell(self) -> str: ...
    @property
    def repeat(self) -> int: ...


def run_name(run: Repeated) -> str:
    """The cell's name, with the repeat where it is not the first."""
    return run.cell if run.repeat == 1 else f"{run.cell} r{run.repeat}"


def by_name(study: Study) -> list[Summary]:
    """The runs that were begun, cell by cell: by endpoint, batch, load and repeat."""
    return study.ordered(study.started, lambda run: (run.batch, run.load, run.level, run.repeat))


RUN: Columns[Summary] = text("run", run_name, numeric=False)
COLUMNS: Sequence[Columns[Summary]] = (
    RUN,
    text("successes", lambda run: f"{run.succeeded:,}"),
    text("failures", lambda run: f"{run.counts.failures or 0:,}"),
    text("abandoned", lambda run: f"{run.counts.abandoned or 0:,}"),
    text("images/s", lambda run: known(run.counts.images_per_s)),
    text("p50 ms", lambda run: ms(run.latency.p50_ns)),
    text("p95 ms", lambda run: ms(run.latency.p95_ns)),
    text("p99 ms", lambda run: ms(run.latency.p99_ns)),
    text("max ms", lambda run: ms(run.latency.max_ns)),
    text("caveats", codes, numeric=False),
)


def every_run(study: Study) -> Table:
    """One row for each run that was begun, cell by cell."""
    caption = "Latency counts from the intended start and covers successes only."
    return study_table(study, "Every run", caption, COLUMNS, by_name(study))


def caveats_by_code(study: Study) -> Table:
    """How many runs each caveat touches and what to do about it, most frequent first."""
    advice = {caveat.code: caveat for run in study.started for caveat in run.caveats}
    counts = Counter(code for run in study.started for code in {caveat.code for caveat in run.caveats})
    rows = (
        (code, counts[code], "yes" if advice[code].tainted else "no", advice[code].advice)
        for code in sorted(counts, key=lambda code: (-counts[code], code))
    )
    return table_of("Caveats", ("caveat", "runs", "invalidates", "what to do"), rows, numeric=[1])


def caveats_by_run(study: Study) -> Table:
    """Every caveat with what happened."""
    rows = ((run_name(run), caveat.code, caveat.text) for run in by_name(study) for caveat in run.caveats)
    return table_of("Caveats, run by run", ("run", "caveat", "what happened"), rows, folded=True)


FAILURES: Sequence[Columns[Runs]] = (
    text("cell", lambda runs: runs[0].cell, numeric=False),
    text("requests", lambda runs: f"{sum(run.counts.requests or 0 for run in runs):,}"),
    text("failed", lambda runs: f"{sum(run.counts.failures or 0 for run in runs):,}"),
    text("failed %", lambda runs: digits(100 * failed_share(runs))),
    text("kinds", lambda runs: _kinds(runs), numeric=False),
    text("success ms", lambda runs: ms(succeeded_ns(runs))),
    text("failure ms", lambda runs: ms(failed_ns(runs, timed_out=False))),
    text("timeout ms", lambda runs: ms(failed_ns(runs, timed_out=True))),
    text("resent", lambda runs: f"{resent(runs):,}"),
)


def failures_by_cell(study: Study) -> Table:
    """Failed requests of the measure phases, and how long they took beside those that succeeded."""
    failing = [runs for runs in by_cell(by_name(study)).values() if failed_share(runs) or resent(runs)]
    caption = (
        "All repeats of a cell together; ms are mean latencies, of failures without timeouts. All other "
        f"latencies are of successes. Where more than {100 * MOST_FAILED:g} % failed, the cell is not ranked."
        " Resent requests are no failures: an idle connection had been closed, or the server had not begun "
        "with them, and another connection answered; their latencies have both tries."
    )
    return study_table(study, "Failures", caption, FAILURES, failing)


def resent(runs: Runs) -> int:
    """Requests that were sent once more, over another connection."""
    by_http2 = (run.path.http2.retried or 0 for run in runs if run.path and run.path.http2)
    return sum(run.counts.resent for run in runs) + sum(by_http2)


def _kinds(runs: Runs) -> str:
    """timeout 9, rejected 3."""
    found: Counter[str] = Counter()
    for run in runs:
        found.update(run.counts.failure_kinds)
    return ", ".join(f"{kind} {count:,}" for kind, count in ranked(found))


CAVEATS = Question("caveats", "Caveats", (caveats_by_code, failures_by_cell, caveats_by_run))
RUNS = Question("runs", "Runs", (every_run,))
