"""Who follows a study beside the ledger: nobody, or the live page where Locust's web UI is on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Observer:
    """Is told what happens, and here does nothing with it."""

    place = ""
    """Where people can look, below the web UI's own address; empty where they cannot."""

    def begun(self, folder: Path, header: Mapping[str, Any]) -> None:
        """A study has its folder and its ledger."""

    def on_record(self, record: Mapping[str, Any]) -> None:
        """A record of the ledger; raises nothing, since it is told in the middle of a measurement."""

    def ended(self, status: str, reason: str, code: int) -> None:
        """The study's report is written; `code` is what it would exit with."""

    def refused(self, sentence: str) -> None:
        """A study that could not begin, and why."""
