"""Locustfiles by their names: the suite's studies, wherever it is installed."""

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
    """The path of the suite's study of that name; any other text, a file's above all, as it is."""
    own = FOLDER / f"{text}.py"
    return str(own) if text in studies() and not Path(text).is_file() else text


def locustfile_of(text: str) -> str:
    """As `find_locustfile`. Raises UsageError where there is no such file."""
    found = find_locustfile(text)
    if not Path(found).is_file():
        raise UsageError(f"-f {text}: no such file; give a locustfile, or one of {', '.join(studies())}")
    return found
