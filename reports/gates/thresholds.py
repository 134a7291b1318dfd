"""thresholds.toml: what must hold, of which cells, what happens where it does not; a baseline's file.

Fields of another type raise GateError, beginning with the place.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from reports.gates.require import (
    FAILURE_RATIO,
    MOST,
    GateError,
    JudgedBy,
    Require,
    RequireError,
    parse_require,
)
from reports.ledger.axes import of_trait
from reports.ledger.files import parsed, parsed_toml, whole_file
from reports.ledger.ledger import DAMAGED, LONGEST

BASELINE_KIND, BASELINE_VERSION = "inferswarm-baseline", 1
THRESHOLDS, VERDICTS = "thresholds.toml", "gates.json"
"""What gates keep beside a study's ledger."""
FAIL, WARN = "fail", "warn"
TEXTS = (
    *("cell", "endpoint", "backend", "protocol", "payload", "load"),
    *(name for name, unset in of_trait("gated").items() if isinstance(unset, str)),
)
"""What cells are chosen by as texts, * and ? standing for any."""
NUMBERS = ("batch", "level", *(name for name in of_trait("gated") if name not in TEXTS))
"""What they are chosen by as numbers, one or a list of them."""
LEAST_EFFECT = 0.05
"""Of a ratio: a change smaller than that is no reason to fail, however sure it is."""
Table = Mapping[str, Any]
MOST_S = 86_400.0
"""A day: no run is longer."""
_OTHERS = ("require", "of", "name", "severity", "abort_after_s", "least_effect")
_BEGIN = re.compile(r"\s*\[\[\s*threshold\s*\]\]")


@dataclass(frozen=True)
class Threshold:
    """One declared bound; `number` counts from 1 in its file, and 0 is one that stands in no file.

    `choice` says which cells it is of: texts as shell patterns, and sets of numbers. `abort_after_s` are the
    seconds of a measure phase after which it may stop the study; None where it may not. `least_effect` is by
    what part a bound must be exceeded to fail.
    """

    number: int
    require: Require
    choice: Mapping[str, str | frozenset[float]] = field(default_factory=dict)
    name: str = ""
    severity: str = FAIL
    abort_after_s: float | None = None
    least_effect: float = 0.0

    @property
    def tolerated(self) -> float:
        """The bound with the least effect."""
        factor = 1 + self.least_effect
        return self.require.bound * factor if self.require.at_most else self.require.bound / factor

    @property
    def counts(self) -> bool:
        """Whether it is of the very requests that were made, and of no others like them: none may fail."""
        return self.require.column == FAILURE_RATIO and (self.require.bound == 0 or not self.number)

    def keeps(self, value: float) -> bool:
        """Whether a value that is known keeps what is tolerated."""
        return value <= self.tolerated if self.require.at_most else value >= self.tolerated

    @property
    def title(self) -> str:
        """What people read: its name, or what it requires and of which column."""
        of = f" of {self.require.column}" if self.require.over else ""
        return self.name or f"{self.require.text}{of}"

    def chooses(self, planned: Mapping[str, Any]) -> bool:
        """Whether it is of a planned cell."""
        return all(fits(planned.get(key), wanted) for key, wanted in self.choice.items())


def fits(value: Any, wanted: str | frozenset[float]) -> bool:
    """Whether a planned value is one that a threshold chooses."""
    if isinstance(wanted, str):
        return fnmatchcase(str(value or ""), wanted)
    return value in wanted


@dataclass(frozen=True)
class Gates:
    """All thresholds of a file, and what it says of the baseline: where it is, and what may differ from it.

    `lines` are where each threshold begins, for whoever points at it; `written` is the file's whole text.
    """

    place: str
    thresholds: tuple[Threshold, ...]
    baseline: str = ""
    may_differ: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    written: str = ""

    @property
    def need_baseline(self) -> bool:
        """Whether a threshold is a ratio to the baseline."""
        return any(one.require.to_baseline for one in self.thresholds)


def read_gates(path: Path) -> Gates:
    """The thresholds of a file; GateError where it cannot be read or says something that makes no sense.

    A baseline that the file names is meant beside the file.
    """
    try:
        written = whole_file(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise GateError(f"{path}: cannot be read ({reason}): name a file of thresholds.") from error
    return parse_gates(written, str(path), path.parent)


def parse_gates(written: str, place: str, beside: Path = Path()) -> Gates:
    """The same of a text; `place` is what messages call it."""
    try:
        found = parsed_toml(written)
    except ValueError as error:
        raise GateError(f"{place}: is no TOML ({error}): mend that line.") from error
    only(found, ("threshold", "baseline"), place)
    entries, about, where = found.get("threshold"), found.get("baseline", {}), f"{place}: [baseline]"
    if not isinstance(entries, list) or not entries or not all(isinstance(one, dict) for one in entries):
        raise GateError(f"{place}: has no [[threshold]]: write that, and below it require = '…'.")
    if not isinstance(about, dict):
        raise GateError(f"{place}: baseline is no table: write [baseline], and below it place = '…'.")
    only(about, ("place", "may_differ"), where)
    baseline = text(about, "place", where)
    lines = [at for at, line in enumerate(written.splitlines(), 1) if _BEGIN.match(line)]
    return Gates(
        place,
        tuple(_threshold(entry, number, place) for number, entry in enumerate(entries, 1)),
        str(beside / baseline) if baseline else "",
        texts(about, "may_differ", where, "['cpu', 'system']"),
        tuple(lines) if len(lines) == len(entries) else (),
        written,
    )


def _threshold(entry: Table, count: int, place: str) -> Threshold:
    where = f"{place}: threshold {count}"
    only(entry, (*_OTHERS, *TEXTS, *NUMBERS), where)
    if "require" not in entry:
        raise GateError(f"{where}: has no require: write require = 'latency_p99_ms <= 120', or the like.")
    try:
        require = parse_require(text(entry, "require", where), text(entry, "of", where))
    except RequireError as error:
        said = str(error)
        raise GateError(f"{where}: {said}{'' if said.endswith('?') else '.'}") from error
    severity = entry.get("severity", FAIL)
    if severity not in (FAIL, WARN):
        raise GateError(f"{where}: severity {severity!r:.60}: give fail or warn.")
    return Threshold(
        count,
        require,
        _choice(entry, require, where),
        text(entry, "name", where),
        severity,
        _abort(entry, require, severity, where),
        number(entry, "least_effect", where, 1.0, 0.0 if require.absolute else LEAST_EFFECT),
    )


def _choice(entry: Table, require: Require, where: str) -> dict[str, str | frozenset[float]]:
    if require.over and (taken := [key for key in ("cell", "endpoint") if key in entry]):
        raise GateError(f"{where}: {taken[0]}: the ratio names the endpoints already; leave it out.")
    named = {key: text(entry, key, where) for key in TEXTS if key in entry}
    return {**named, **{key: numbers(entry, key, where) for key in NUMBERS if key in entry}}


def _abort(entry: Table, require: Require, severity: str, where: str) -> float | None:
    if "abort_after_s" not in entry:
        return None
    if require.kind is not JudgedBy.SHARE or not require.at_most:
        raise GateError(
            f"{where}: abort_after_s: only an upper bound of a percentile or of failure_ratio can stop a "
            "study while it runs; leave it out."
        )
    if severity == WARN:
        raise GateError(f"{where}: abort_after_s: a warning stops nothing; leave it or the severity out.")
    return number(entry, "abort_after_s", where, MOST_S)


def only(table: Table, known: Collection[str], where: str) -> None:
    """Nothing but known fields."""
    if strange := [key for key in table if key not in known]:
        raise GateError(f"{where}: {_short(strange[0])} is no field of it; they are {', '.join(known)}.")


def text(table: Table, key: str, where: str) -> str:
    """A text, empty where the field is missing."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise GateError(f"{where}: {key} {_short(value)}: give a text in quotes.")
    return value


def texts(table: Table, key: str, where: str, example: str) -> tuple[str, ...]:
    """A list of texts, empty where the field is missing."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise GateError(f"{where}: {key} {_short(value)}: give a list of texts, e.g. {example}.")
    return tuple(value)


def number(table: Table, key: str, where: str, most: float, otherwise: float = 0.0) -> float:
    """A number from 0 to `most`, or what it is `otherwise` where the field is missing."""
    value = table.get(key, otherwise)
    if not _is_number(value) or not 0 <= value <= most:
        raise GateError(f"{where}: {key} {_short(value)}: give a number from 0 to {most:,g}.")
    return float(value)


def numbers(table: Table, key: str, where: str) -> frozenset[float]:
    """One number or more, as a list where there are several."""
    value = table[key]
    values = value if isinstance(value, list) else [value]
    if not values or not all(_is_number(one) for one in values):
        raise GateError(f"{where}: {key} {_short(value)}: give a number or a list of numbers.")
    return frozenset(float(one) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST


def _short(value: Any) -> str:
    """As Python writes it, on one line and not endless."""
    return f"{value!r:.60}"


def studies_in(path: Path) -> Sequence[Mapping[str, Any]]:
    """What it keeps of each study; OSError, and GateError without the path where it is no such file."""
    try:
        kept = parsed(whole_file(path))
        if (kept["kind"], kept["version"]) != (BASELINE_KIND, BASELINE_VERSION):
            raise ValueError(f"its kind is {kept['kind']!r:.40}, its version {kept['version']!r:.40}")
        studies: Sequence[Mapping[str, Any]] = kept["studies"]
        return studies
    except DAMAGED as error:
        raise GateError(not_one(error)) from error


def not_one(error: Exception) -> str:
    """Why a file is no baseline."""
    why = f"is no baseline that this program reads ({error!r:.{LONGEST}})"
    return f"{why}: make it with `python -m reports baseline DIR`."
