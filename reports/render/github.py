"""GitHub Actions: annotations at the lines of the thresholds, and the summary of the job."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reports.format import plain, plural
from reports.gates.verdict import FAIL, Verdict, not_passed

Environment = Mapping[str, str]
MOST = 10
"""Of errors, and of warnings: GitHub shows no more of a step."""
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def in_actions(environment: Environment) -> bool:
    """Whether a job of GitHub Actions runs this."""
    return environment.get("GITHUB_ACTIONS") == "true"


def place_in_repository(path: Path, environment: Environment) -> str:
    """A file as seen from the repository's root, or from here; empty where it does not lie below."""
    root = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    whole = path.resolve()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else ""


@contextmanager
def commands_stopped(environment: Environment) -> Iterator[None]:
    """What is printed meanwhile is no command to Actions, whatever a cell is called."""
    if not in_actions(environment):
        yield
        return
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")
    yield
    print(f"::{token}::")


def tell_actions(environment: Environment, verdicts: Sequence[Verdict], place: str, markdown: str) -> None:
    """A line for each verdict that is no pass, and the job's summary; nothing anywhere else."""
    if not in_actions(environment):
        return
    for line in annotations(verdicts, place):
        print(line)
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(markdown)
        except OSError as error:
            print(f"inferswarm: the job's summary cannot be written ({error.strerror})", file=sys.stderr)


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
    told = f"{verdict.sentence} {verdict.note}".rstrip()
    return f"::{level} {properties}::{plain(told).translate(_DATA)}"
