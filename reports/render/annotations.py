"""What GitHub Actions shows at the lines of a file: workflow commands, printed one a line."""

from collections.abc import Sequence

from reports.format import plain, plural
from reports.gates.claim import FAIL
from reports.gates.verdict import Verdict
from reports.gates.words import not_passed

MOST = 10
"""Of errors, and of warnings: GitHub shows no more of a step."""
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def annotations(verdicts: Sequence[Verdict], place: str) -> list[str]:
    """An error for each fail and a warning for whatever else did not pass.

    `place` is the file of thresholds as seen from the repository's root; without it they stand at no line.
    """
    found = not_passed(verdicts)
    errors = [verdict for verdict in found if verdict.outcome == FAIL and verdict.serious]
    warnings = [verdict for verdict in found if verdict not in errors]
    return [*_lines("error", errors, place), *_lines("warning", warnings, place)]


def _lines(level: str, verdicts: Sequence[Verdict], place: str) -> list[str]:
    shown = verdicts if len(verdicts) <= MOST else verdicts[: MOST - 1]
    lines = [_line(level, verdict, place) for verdict in shown]
    if more := len(verdicts) - len(shown):
        lines.append(
            f"::{level} title=Gates::{plural(more, 'more gate')} did not pass; gates.md has them all."
        )
    return lines


def _line(level: str, verdict: Verdict, place: str) -> str:
    at = {"file": place, "line": str(verdict.line)} if place else {}
    said = {**at, "title": f"{verdict.outcome}: {verdict.title}"}
    properties = ",".join(f"{name}={plain(text).translate(_PROPERTY)}" for name, text in said.items())
    told = " ".join(text for text in (verdict.sentence, verdict.note) if text)
    return f"::{level} {properties}::{plain(told).translate(_DATA)}"
