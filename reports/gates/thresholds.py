"""thresholds.toml: what must hold, of which cells, what happens where it does not; a baseline's file."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from reports.gates.require import FAILURE_RATIO, MOST, GateError, JudgedBy, Require, parse_require
from reports.ledger.axes import of_trait
from reports.ledger.files import parsed, parsed_toml, whole_file
from reports.ledger.ledger import DAMAGED, LONGEST
from reports.ledger.records import LATER, Rule

BASELINE_KIND, BASELINE_VERSION = "inferswarm-baseline", 1
THRESHOLDS, VERDICTS = "thresholds.toml", "gates.json"
"""What gates keep beside a study's ledger."""
FAIL, WARN = "fail", "warn"
TEXTS = (
    *("cell", "endpoint", "backend", "protocol", "payload", "load"),
    *(name for name, unset in of_trait("gated").items() if isinstance(unset, str)),
    *LATER,
)
"""What cells are chosen by as texts, * and ? standing for any."""
NUMBERS = ("batch", "level", *(name for name in of_trait("gated") if name not in TEXTS))
"""What they are chosen by as numbers, one or a list of them."""
LEAST_EFFECT = 0.05
"""Of a ratio: a change smaller than that is no reason to fail, however sure it is."""
Table = Mapping[str, Any]
MOST_S = 86_400.0
"""A day: no run is longer."""
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
        raise GateError(f"{place}: is no TOML ({error}): fix that line.") from error
    _only(found, ("threshold", "baseline"), place)
    entries, about = found.get("threshold"), found.get("baseline", {})
    if not isinstance(entries, list) or not entries or not all(isinstance(one, dict) for one in entries):
        raise GateError(f"{place}: has no [[threshold]]: write that, and below it require = '…'.")
    if not isinstance(about, dict):
        raise GateError(f"{place}: baseline is no table: write [baseline], and below it place = '…'.")
    _check(about, BASELINE_FIELDS, f"{place}: [baseline]")
    baseline = about.get("place", "")
    lines = [at for at, line in enumerate(written.splitlines(), 1) if _BEGIN.match(line)]
    return Gates(
        place,
        tuple(_threshold(entry, number, place) for number, entry in enumerate(entries, 1)),
        str(beside / baseline) if baseline else "",
        tuple(about.get("may_differ", ())),
        tuple(lines) if len(lines) == len(entries) else (),
        written,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST


def _are_numbers(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(map(_is_number, values))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _up_to(most: float) -> Rule:
    return lambda value: _is_number(value) and 0 <= value <= most, f"a number from 0 to {most:,g}"


_TEXT: Rule = (lambda value: isinstance(value, str), "a text in quotes")
FIELDS: Mapping[str, Rule] = {
    **dict.fromkeys(("require", "of", "name"), _TEXT),
    "severity": (lambda value: value in (FAIL, WARN), "fail or warn"),
    "abort_after_s": _up_to(MOST_S),
    "least_effect": _up_to(1.0),
    **dict.fromkeys(TEXTS, _TEXT),
    **dict.fromkeys(NUMBERS, (_are_numbers, "a number or a list of numbers")),
}
"""Of a [[threshold]]: what must hold of each, and how to say so."""
BASELINE_FIELDS: Mapping[str, Rule] = {
    "place": _TEXT,
    "may_differ": (_are_texts, "a list of texts, e.g. ['cpu', 'system']"),
}


def _only(table: Table, known: Collection[str], where: str) -> None:
    if strange := [key for key in table if key not in known]:
        raise GateError(f"{where}: {_short(strange[0])} is no field of it; they are {', '.join(known)}.")


def _check(table: Table, fields: Mapping[str, Rule], where: str) -> None:
    """GateError where it has another field than these, or one is not as it must be."""
    _only(table, fields, where)
    for key, value in table.items():
        holds, wanted = fields[key]
        if not holds(value):
            raise GateError(f"{where}: {key} {_short(value)}: give {wanted}.")


def _threshold(entry: Table, count: int, place: str) -> Threshold:
    where = f"{place}: threshold {count}"
    _check(entry, FIELDS, where)
    if "require" not in entry:
        raise GateError(f"{where}: has no require: write require = 'latency_p99_ms <= 120', or the like.")
    try:
        require = parse_require(entry["require"], entry.get("of", ""))
    except GateError as error:
        said = str(error)
        raise GateError(f"{where}: {said}{'' if said.endswith('?') else '.'}") from error
    severity, abort_after_s = entry.get("severity", FAIL), entry.get("abort_after_s")
    if abort_after_s is not None:
        _check_abort(require, severity, where)
    return Threshold(
        count,
        require,
        _choice(entry, require, where),
        entry.get("name", ""),
        severity,
        abort_after_s,
        entry.get("least_effect", 0.0 if require.absolute else LEAST_EFFECT),
    )


def _choice(entry: Table, require: Require, where: str) -> dict[str, str | frozenset[float]]:
    if require.over and (taken := [key for key in ("cell", "endpoint") if key in entry]):
        raise GateError(f"{where}: {taken[0]}: the ratio names the endpoints already; leave it out.")
    numbers = {key: entry[key] for key in NUMBERS if key in entry}
    listed = {key: value if isinstance(value, list) else [value] for key, value in numbers.items()}
    named = {key: entry[key] for key in TEXTS if key in entry}
    return {**named, **{key: frozenset(map(float, values)) for key, values in listed.items()}}


def _check_abort(require: Require, severity: str, where: str) -> None:
    if require.kind is not JudgedBy.SHARE or not require.at_most:
        raise GateError(
            f"{where}: abort_after_s: only an upper bound of a percentile or of failure_ratio can stop a "
            "study while it runs; leave it out."
        )
    if severity == WARN:
        raise GateError(f"{where}: abort_after_s: a warning stops nothing; leave it or the severity out.")


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
    return f"{why}: make it with `inferswarm baseline DIR`."
