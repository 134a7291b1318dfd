"""Locustfiles by their names: the suite's studies, wherever it is installed."""

from collections.abc import Sequence
from pathlib import Path

from swarm.errors import UsageError
from swarm.hosts.host import ROOT

FOLDER = ROOT / "locustfiles"
DEFAULT = "study"
"""Of any endpoints."""


def studies() -> list[str]:
    """The names of the suite's studies."""
    return sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


def find_locustfile(text: str) -> str:
    """As `locustfile_of`; what else Locust takes stays as it is: a folder, a URL, `-` for the master's."""
    others = text == "-" or "://" in text or (Path(text).is_dir() and text not in studies())
    return text if others else locustfile_of(text)


def locustfile_of(text: str) -> str:
    """The path of a locustfile, or of the suite's study of that name. Raises UsageError."""
    if Path(text).is_file():
        return text
    if text in studies():
        return str(FOLDER / f"{text}.py")
    raise UsageError(f"-f {text}: no such file; give a locustfile, or one of {', '.join(studies())}")


def check_named(rest: Sequence[str]) -> None:
    """Raises UsageError where the words left begin with a study: Locust would take it for a user."""
    first = next(iter(rest), "")
    if first in studies() or first.endswith(".py"):
        raise UsageError(f"{first}: name a study by -f: give -f {first}")
