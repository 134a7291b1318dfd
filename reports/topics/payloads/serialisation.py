"""JSON against binary tensors: which runs are compared, and what of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10

from reports.format import MISSING, digits
from reports.page.grid import Runs, Value, resting_on
from reports.stats.log_ratio import log_ratio
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.summary.way import Way

JSON, BINARY = "json", "fp32"
KB = 1024
NUMBERS = 3 * 224 * 224
"""Of an image."""


@dataclass(frozen=True)
class Pair:
    """The serial runs of one batch, as JSON and as binary tensors over the same protocol."""

    name: str
    batch: int
    json: Runs
    binary: Runs


def pairs(study: Study) -> list[Pair]:
    """Each batch that one user sent as JSON and as binary tensors to one backend over one protocol."""
    serial = [run for run in study.runs if run.serial and not run.is_floor and run.payload in (JSON, BINARY)]
    spoken: dict[tuple[str, str, str], dict[str, Way]] = {}
    for run in serial:
        spoken.setdefault((run.backend, run.protocol, run.variant), {})[run.payload] = run.way
    return [
        pair
        for ways in spoken.values()
        if len(ways) == 2
        for pair in _by_batch(study.named(ways[BINARY]), ways[JSON], ways[BINARY], serial)
    ]


def _by_batch(name: str, json: Way, binary: Way, serial: Runs) -> Iterator[Pair]:
    for batch in sorted({run.batch for run in serial if run.way in (json, binary)}):
        here = [run for run in serial if run.batch == batch]
        yield Pair(name, batch, *([run for run in here if run.way == way] for way in (json, binary)))


def encode_ms(run: Summary) -> float | None:
    """Making a request from its array, where that was done while measuring."""
    return run.encode_ns / 1e6 if run.built_anew and run.encode_ns else None


def payload_kb(run: Summary) -> float | None:
    """A request's body in units of 1,024 bytes."""
    return None if run.request_bytes is None else run.request_bytes / KB


def mean_ms(run: Summary) -> float | None:
    """Mean latency in milliseconds."""
    return None if run.latency_mean_ns is None else run.latency_mean_ns / 1e6


def ratio_said(pair: Pair, value: Value) -> str | None:
    """650×, or 652× (600–708) with repeats; None where a side has no figure. Sizes do not vary by chance."""
    sides = [
        [found for run in resting_on(runs, value) if (found := value(run))]
        for runs in (pair.json, pair.binary)
    ]
    if not all(sides):
        return None
    ratio = log_ratio(*sides)
    if value is payload_kb:
        return f"{digits(ratio.ratio)}×"
    return f"{rough(ratio.ratio)}×" if ratio.low is None else ratio.times


def rough(value: float) -> str:
    """Two significant digits: 652.3 → 650."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(0, 1 - floor(log10(rounded)))}f}"


def bytes_per_number(pair: Pair) -> str:
    """How many characters JSON spent on each number, brackets and names included."""
    sizes = [run.request_bytes for run in resting_on(pair.json, payload_kb) if run.request_bytes]
    return digits(sum(sizes) / len(sizes) / (NUMBERS * pair.batch)) if sizes else MISSING
