"""thresholds.toml: what must hold, of which cells, and what happens where it does not."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Any

from reports.gates.columns import Kind
from reports.gates.error import GateError
from reports.gates.require import Require, parse_require

FAIL, WARN = "fail", "warn"
TEXTS = (
    *("cell", "endpoint", "backend", "protocol", "payload", "load"),
    *("channels", "client", "link", "congestion", "variant"),
)
"""What cells are chosen by as texts, * and ? standing for any."""
NUMBERS = ("batch", "level", "workers", "hosts")
"""What they are chosen by as numbers, one or a list of them."""
LEAST_EFFECT = 0.05
"""Of a ratio: a change smaller than that is no reason to fail, however sure it is."""
_OTHERS = ("require", "of", "name", "severity", "abort_after_s", "least_effect")
_OF_BASELINE = ("place", "may_differ")


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
    def title(self) -> str:
        """What people read: its name or what it requires, and of which cells."""
        of = f" of {self.require.column}" if self.require.over else ""
        return self.name or f"{self.require.text}{of}"

    def chooses(self, planned: Mapping[str, Any]) -> bool:
        """Whether it is of a planned cell."""
        return all(_fits(planned.get(key), wanted) for key, wanted in self.choice.items())


def _fits(value: Any, wanted: str | frozenset[float]) -> bool:
    if isinstance(wanted, str):
        return fnmatchcase(str(value or ""), wanted)
    return value in wanted


@dataclass(frozen=True)
class Gates:
    """All thresholds of a file, and what it says of the baseline: where it is, and what may differ from it.

    `lines` are where each threshold begins, for whoever points at it.
    """

    place: str
    thresholds: tuple[Threshold, ...]
    baseline: str = ""
    may_differ: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    @property
    def need_baseline(self) -> bool:
        """Whether a threshold is a ratio to the baseline."""
        return any(one.require.to_baseline for one in self.thresholds)


def read_gates(path: Path) -> Gates:
    """The thresholds of a file; GateError where it cannot be read or says something that makes no sense.

    A baseline that the file names is meant beside the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise GateError(f"{path}: cannot be read ({reason}): name a file of thresholds.") from error
    return parse_gates(text, str(path), path.parent)


def parse_gates(text: str, place: str, beside: Path = Path()) -> Gates:
    """The same of a text; `place` is what messages call it."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GateError(f"{place}: is no TOML ({error}): mend that line.") from error
    _only(found, ("threshold", "baseline"), place)
    entries, about = found.get("threshold"), found.get("baseline", {})
    if not isinstance(entries, list) or not entries or not all(isinstance(one, dict) for one in entries):
        raise GateError(f"{place}: has no threshold: write [[threshold]], and below it require = '…'.")
    if not isinstance(about, dict):
        raise GateError(f"{place}: baseline is no table: write [baseline], and below it place = '…'.")
    _only(about, _OF_BASELINE, f"{place}: [baseline]")
    thresholds = tuple(_threshold(entry, number, place) for number, entry in enumerate(entries, 1))
    baseline = _text(about, "place", f"{place}: [baseline]")
    may_differ = about.get("may_differ", [])
    if not isinstance(may_differ, list) or not all(isinstance(one, str) for one in may_differ):
        raise GateError(f"{place}: [baseline] may_differ: give a list of texts, e.g. ['fingerprint.cpu.*'].")
    lines = [at for at, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*threshold", line)]
    return Gates(
        place, thresholds, str(beside / baseline) if baseline else "", tuple(may_differ), tuple(lines)
    )


def _threshold(entry: Mapping[str, Any], number: int, place: str) -> Threshold:
    where = f"{place}: threshold {number}"
    _only(entry, (*_OTHERS, *TEXTS, *NUMBERS), where)
    if "require" not in entry:
        raise GateError(f"{where}: has no require: write require = 'latency_p99_ms <= 120', or the like.")
    try:
        require = parse_require(_text(entry, "require", where), _text(entry, "of", where))
    except GateError as error:
        raise GateError(f"{where}: {error}.") from error
    severity = entry.get("severity", FAIL)
    if severity not in (FAIL, WARN):
        raise GateError(f"{where}: severity {severity!r}: give fail or warn.")
    least = 0.0 if require.absolute else LEAST_EFFECT
    return Threshold(
        number,
        require,
        _choice(entry, require, where),
        _text(entry, "name", where),
        severity,
        _abort(entry, require, severity, where),
        _number(entry, "least_effect", where, 1.0) if "least_effect" in entry else least,
    )


def _choice(entry: Mapping[str, Any], require: Require, where: str) -> dict[str, str | frozenset[float]]:
    if require.over and (taken := [key for key in ("cell", "endpoint") if key in entry]):
        raise GateError(f"{where}: {taken[0]}: the ratio names the endpoints already; leave it out.")
    texts = {key: _text(entry, key, where) for key in TEXTS if key in entry}
    numbers = {key: _numbers(entry[key], key, where) for key in NUMBERS if key in entry}
    return {**texts, **numbers}


def _abort(entry: Mapping[str, Any], require: Require, severity: str, where: str) -> float | None:
    if "abort_after_s" not in entry:
        return None
    if not require.absolute or require.kind is not Kind.SHARE or not require.at_most:
        raise GateError(
            f"{where}: abort_after_s: only an upper bound of a percentile or of failure_ratio can stop a "
            "study while it runs; leave it out."
        )
    if severity == WARN:
        raise GateError(f"{where}: abort_after_s: a warning stops nothing; leave it or the severity out.")
    return _number(entry, "abort_after_s", where)


def _only(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    if strange := [key for key in entry if key not in known]:
        raise GateError(f"{where}: {strange[0]!r} is no field of it; they are {', '.join(known)}.")


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise GateError(f"{where}: {key} {value!r}: give a text in quotes.")
    return value


def _number(entry: Mapping[str, Any], key: str, where: str, most: float = 1e9) -> float:
    value = entry[key]
    if not _is_number(value) or not 0 <= value <= most:
        raise GateError(f"{where}: {key} {value!r}: give a number from 0 to {most:g}.")
    return float(value)


def _numbers(value: Any, key: str, where: str) -> frozenset[float]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(_is_number(one) for one in values):
        raise GateError(f"{where}: {key} {value!r}: give a number or a list of numbers.")
    return frozenset(float(one) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
