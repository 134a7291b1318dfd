"""The report, made by a process of its own: the ledger is all it gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from reports.ledger import FILE_NAME

PATIENCE_S, PATIENT_BYTES_PER_S = 60.0, 2_000_000
"""For any report, and for its ledger: an idle machine of ours reads ten million bytes a second."""


def show(folder: Path) -> tuple[str, bool]:
    """Run `python -m reports show FOLDER`; what it prints, or what went wrong, and whether it went well."""
    environment = {**os.environ, "COLUMNS": str(shutil.get_terminal_size((110, 24)).columns)}
    if sys.stdout.isatty():
        environment["FORCE_COLOR"] = "1"
    command = [sys.executable, "-m", "reports", "show", str(folder.resolve())]
    root = Path(__file__).parent.parent
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=patience_s(folder),
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"inferswarm: the report took too long; make it again with python -m reports show {folder}"
        return text, False
    return (done.stdout + done.stderr).rstrip(), done.returncode == 0


def patience_s(folder: Path) -> float:
    """How long the report of this folder may take: the longer, the larger its ledger is."""
    try:
        size = (folder / FILE_NAME).stat().st_size
    except OSError:
        size = 0
    return PATIENCE_S + size / PATIENT_BYTES_PER_S
