"""The table of workers: what each did in each run, marked where it is unlike the others."""

from collections.abc import Iterator, Sequence
from statistics import median, median_high, median_low

from reports.fold.workers import WorkerShare
from reports.format import counted, digits, known, ms
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_head

HEADS = (
    *("run", "worker", "users", "requests", "failures", "images/s", "p50 ms", "p95 ms", "p99 ms"),
    *("CPU %", "loop lag p99 ms", "connections", "s"),
)
FOLDED_ROWS = 40
UNLIKE, LEAST_REQUESTS = 0.25, 100
"""Of the others' median, and how many requests that must be, since with fewer chance makes as much."""


def per_worker(study: Study) -> Table:
    """One row for each run and worker."""
    notes = Notes()
    rows = tuple(
        (run_head(study, run, notes), *_numbers(run, place, notes))
        for run in study.started
        for place in range(len(run.per_worker))
    )
    return Table(
        "Workers",
        "What each worker did in the measure phase, by its own clock; CPU in percent of one core. Look for a "
        "worker that is slower than the others or did less, then at its CPU and lag. Marked where requests "
        f"or p50 are more than {100 * UNLIKE:g} % off the others' median, where that is {LEAST_REQUESTS} "
        "requests or more, and where it made none beside others that did.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(2, len(HEADS))),
        folded=len(rows) > FOLDED_ROWS,
    )


def _numbers(run: Summary, place: int, notes: Notes) -> tuple[Cell, ...]:
    share = run.per_worker[place]
    marks = notes.marks(hints(run.load, share, [*run.per_worker[:place], *run.per_worker[place + 1 :]]))
    texts = (
        *(counted(share.users), f"{share.requests:,}", f"{share.failures:,}", known(share.images_per_s)),
        *map(ms, (share.latency_p50_ns, share.latency_p95_ns, share.latency_p99_ns)),
        *(known(share.cpu_pct), ms(share.loop_lag_p99_ns), counted(share.tcp_connections)),
        known(share.phase_ns, 1e9),
    )
    return Cell(share.worker, marks), *map(Cell, texts)


def hints(load: str, share: WorkerShare, others: Sequence[WorkerShare]) -> Iterator[str]:
    """What sets a worker apart from the others of its run, which may be trouble on the client's side.

    In closed load requests are compared by user, where the users are known: some workers have one more.
    """
    peers = [other for other in others if other.requests]
    if not peers:
        return
    if not share.requests:
        if load != "closed" or share.users != 0:
            yield _hint("no request, while others made some")
        return
    if median(part.requests for part in peers) < LEAST_REQUESTS:
        return
    by_user = load == "closed" and all(part.users for part in (share, *peers))
    done = [part.requests / ((part.users or 1) if by_user else 1) for part in (share, *peers)]
    if apart := _apart(done[0], done[1:]):
        yield _hint(f"requests{' a user' if by_user else ''} {apart}")
    middles = [part.latency_p50_ns for part in peers if part.latency_p50_ns is not None]
    if middles and share.latency_p50_ns is not None and (apart := _apart(share.latency_p50_ns, middles)):
        yield _hint(f"p50 {apart}")


def _apart(value: float, others: Sequence[float]) -> str:
    """By how much it is off the others' median, in words; empty within the bound.

    Of an even number the nearer of the two in the middle counts: one odd worker among them shifts their mean.
    """
    off = min((value / middle(others) - 1 for middle in (median_low, median_high)), key=abs)
    if abs(off) <= UNLIKE:
        return ""
    return f"{digits(100 * abs(off))} % {'above' if off > 0 else 'below'} the others' median"


def _hint(said: str) -> str:
    return (
        f"{said}: a hint of trouble on the client's side, such as a busy host or a longer way, and no proof"
    )
