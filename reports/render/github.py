"""GitHub Actions: annotations at the lines of the thresholds, and the summary of the job."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reports.gates.verdict import Verdict
from reports.render.annotations import annotations

Environment = Mapping[str, str]


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
            print(f"reports: the job's summary cannot be written ({error.strerror})", file=sys.stderr)
