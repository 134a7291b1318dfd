"""Reports: reads a ledger and says what it means. Imports nothing that generates load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.frames.frames import Frames


def load(directory: Path | str, usd_per_hour: float | None = None) -> Frames:
    """The frames of the study in one result directory: `cells`, `timeline`, `workers`, `requests`.

    They are made from its ledger, finished or not, by what makes its CSV files, which need not be there.
    `usd_per_hour`, where given, is taken as the servers' price instead of what the study was told. Raises
    LedgerError, with one sentence that names the file and the fix, where there is no ledger to be read.

    >>> study = load("results/step7-20260101T120000Z")
    >>> study.cells[["cell", "images_per_s", "latency_p95_ms", "limit", "caveats"]]
    """
    # Here, since pandas takes half a second to import, and nothing else of reports needs it.
    from reports.frames.frames import frames_of

    return frames_of(directory, usd_per_hour)
