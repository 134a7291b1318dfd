"""The report and the verdicts, made by a process of its own: the ledger is all it gets."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from reports.ledger.ledger import FILE_NAME

PATIENCE_S, PATIENT_BYTES_PER_S = 60.0, 2_000_000
"""For any report, and for its ledger: an idle machine of ours reads ten million bytes a second."""
ANNOUNCED = "GITHUB_ACTIONS"
"""The variable by which verdicts are told to GitHub Actions."""


def show(folder: Path, tables: bool = False) -> tuple[str, int | None]:
    """Make the report of a folder: what is printed, or what went wrong; its exit code, None out of time.

    Printed is the first screen, and with `tables` the tables below it.
    """
    words = ["report", str(folder.resolve()), *([] if tables else ["--brief"])]
    return _run(words, patience_s(folder), os.environ)


def gate(
    folder: Path, thresholds: Path, baseline: str, quietly_to: Path | None = None, tables: bool = False
) -> tuple[str, int | None]:
    """The same of a report with verdicts; or only the verdicts, quietly, as files elsewhere."""
    words = ["gate", str(folder.resolve()), "--thresholds", str(thresholds.resolve())]
    words += ["--baseline", baseline] if baseline else []
    patience = patience_s(folder) + (patience_s(Path(baseline)) if baseline else 0)
    if quietly_to is None:
        return _run([*words, *(["--all"] if tables else [])], patience, os.environ)
    silent = {name: value for name, value in os.environ.items() if name != ANNOUNCED}
    return _run([*words, "--quiet", "--out", str(quietly_to)], patience, silent)


def _run(words: list[str], patience: float, environment: Mapping[str, str]) -> tuple[str, int | None]:
    shown = {**environment, "COLUMNS": str(shutil.get_terminal_size((110, 24)).columns)}
    if sys.stdout.isatty():
        shown["FORCE_COLOR"] = "1"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "reports", *words],
            cwd=Path(__file__).parents[2],
            env=shown,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"inferswarm: the report took too long; make it again with {command(words)}", None
    except OSError as error:
        return _not_made(error.strerror, words), None
    if done.returncode < 0:
        return _not_made(f"its process was ended by {signal.Signals(-done.returncode).name}", words), None
    return (done.stdout + done.stderr).rstrip(), done.returncode


def _not_made(why: str | None, words: list[str]) -> str:
    return f"inferswarm: the report cannot be made ({why}); make it later with {command(words)}"


def command(words: list[str]) -> str:
    """What a person types for it."""
    return shlex.join(["inferswarm", *words[:2]])


def patience_s(folder: Path) -> float:
    """How long the report of this folder may take: the longer, the larger its ledger is."""
    try:
        size = (folder / FILE_NAME).stat().st_size
    except OSError:
        size = 0
    return PATIENCE_S + size / PATIENT_BYTES_PER_S
