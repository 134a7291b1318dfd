"""gates.json: the verdicts on a study, kept beside its ledger so that any report of it shows them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from reports.gates.error import GateError
from reports.gates.verdict import Verdict, exit_code

FILE_NAME = "gates.json"


def kept_text(verdicts: Sequence[Verdict]) -> str:
    """The file: the exit code that they come to, and every verdict."""
    kept = {"exit_code": exit_code(verdicts), "verdicts": [asdict(verdict) for verdict in verdicts]}
    return json.dumps(kept, indent=1, allow_nan=False) + "\n"


def kept_in(directory: Path) -> tuple[Verdict, ...]:
    """The verdicts kept in a directory, none where nothing was judged; GateError where the file is damaged."""
    path = directory / FILE_NAME
    if not path.is_file():
        return ()
    try:
        return tuple(Verdict(**one) for one in json.loads(path.read_text(encoding="utf-8"))["verdicts"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        mend = "remove it, or judge the study again with `python -m reports gate`."
        raise GateError(f"{path}: is not what gates leave ({error}): {mend}") from error
