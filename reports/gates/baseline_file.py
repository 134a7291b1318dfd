"""The file that `python -m reports baseline` makes, as far as it is read before any load: what it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.gates.error import GateError
from reports.ledger.damage import DAMAGED, LONGEST
from reports.ledger.files import whole_file
from reports.ledger.strict_json import parsed

KIND, VERSION = "inferswarm-baseline", 1


def studies_in(path: Path) -> Sequence[Mapping[str, Any]]:
    """What it keeps of each study; OSError, and GateError without the path where it is no such file."""
    try:
        kept = parsed(whole_file(path))
        if (kept["kind"], kept["version"]) != (KIND, VERSION):
            raise ValueError(f"its kind is {kept['kind']!r:.40}, its version {kept['version']!r:.40}")
        studies: Sequence[Mapping[str, Any]] = kept["studies"]
        return studies
    except DAMAGED as error:
        raise GateError(not_one(error)) from error


def not_one(error: Exception) -> str:
    """Why a file is no baseline."""
    why = f"is no baseline that this program reads ({error!r:.{LONGEST}})"
    return f"{why}: make it with `python -m reports baseline DIR`."
