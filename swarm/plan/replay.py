"""Cells that replay a trace: each endpoint its own rows, at their times, or so many times as fast."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from reports.format import digits, duration, plural
from swarm.closest import some
from swarm.errors import UsageError
from swarm.plan.cell import Cell
from swarm.traces.trace import ArrivalTrace
from users.endpoint import FLOOR, Endpoint
from users.load.mix import BLOCK
from users.load.replay import Replay

TRACE = "trace"
"""Its arrivals, as an axis: neither constant nor random."""
LONGEST_NAME = 40


def replayed(endpoints: Iterable[Endpoint], trace: ArrivalTrace, path: str, speed: float) -> list[Cell]:
    """Open-loop load: a cell for each endpoint that has rows in the trace, as long as that is at the speed.

    Its level is the mean rate of its rows, its batch the largest one. Raises UsageError where an endpoint
    takes no such batch, and where no endpoint has a row.
    """
    asked = list(endpoints)
    name = name_of(path, speed)
    cells = [cell for endpoint in asked if (cell := _cell(endpoint, trace, path, name, speed))]
    if not cells:
        raise UsageError(
            f"--replay {path}: names {some(_named(trace))}, and this study has"
            f" {some(one.name for one in asked)}; rename the endpoints, or leave out the column"
        )
    return cells


def name_of(path: str, speed: float) -> str:
    """What cells and reports call a trace: `burst` of burst.csv, `burst-x2` at twice its speed."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem)[:LONGEST_NAME].strip("-") or "trace"
    return stem if speed == 1 else f"{stem}-x{speed:g}"


def remarks(endpoints: Iterable[Endpoint], trace: ArrivalTrace, path: str) -> Iterator[str]:
    """What a person must know of a trace that is replayed: what was made of the file, what nobody replays."""
    yield (
        f"--replay {path}: {plural(len(trace), 'request')} in {duration(trace.seconds)},"
        f" {digits(trace.mean_per_s)}/s on average, at most {trace.most_in_a_second:,} in a second"
    )
    yield f"--replay {path}: times are {trace.told_times}"
    for note in trace.notes:
        yield f"--replay {path}: {note}"
    left = [one for one in _named(trace) if one not in {endpoint.name for endpoint in endpoints}]
    if left:
        rows = sum(one in left for one in trace.endpoints)
        yield f"--replay {path}: {plural(rows, 'row')} of {some(left)} left out: no such endpoint here"


def _cell(endpoint: Endpoint, trace: ArrivalTrace, path: str, name: str, speed: float) -> Cell | None:
    try:
        own = trace.of_endpoint(endpoint.name.removesuffix(FLOOR), speed)
    except ValueError as error:
        raise UsageError(f"--replay {path}: {error}") from error
    if own is None:
        return None
    batch, most = own.classes[-1].batch, endpoint.contract.max_batch
    if most and batch > most:
        raise UsageError(
            f"--replay {path}: has requests of {plural(batch, 'item')}, and {endpoint.name} takes at most"
            f" {most}; leave it out by --endpoints, or give a trace with up to {most}"
        )
    level = float(f"{len(own) / own.seconds:.3g}")
    return Cell(
        endpoint, batch, level, len(own), own.seconds, "open",
        arrivals=TRACE, batch_mix=shares(own), replay=name, variant=f"replay-{name}", trace=own,
    )  # fmt: skip


def shares(trace: Replay) -> str:
    """How many of its requests have which batch, in thousandths, as --batch-mix has it; empty for one batch.

    What is left of a rounded sum goes to the most frequent; a batch that is there has a thousandth at least.
    """
    if len(trace.classes) == 1:
        return ""
    counts = {one.batch: max(1, round(one.share * BLOCK)) for one in trace.classes}
    counts[max(counts, key=lambda batch: counts[batch])] += BLOCK - sum(counts.values())
    return ",".join(f"{batch}:{count / BLOCK:g}" for batch, count in counts.items())


def _named(trace: ArrivalTrace) -> list[str]:
    return list(dict.fromkeys(one for one in trace.endpoints if one))
