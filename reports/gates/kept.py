"""gates.json: the verdicts on a study, kept beside its ledger so that any report of it shows them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

from reports.gates.claim import OUTCOMES
from reports.gates.error import GateError
from reports.gates.names import VERDICTS
from reports.gates.verdict import Verdict, exit_code
from reports.ledger.files import whole_file
from reports.ledger.strict_json import parsed


def kept_text(verdicts: Sequence[Verdict]) -> str:
    """The file: the exit code that they come to, and every verdict."""
    kept = {"exit_code": exit_code(verdicts), "verdicts": [asdict(verdict) for verdict in verdicts]}
    return json.dumps(kept, indent=1, allow_nan=False) + "\n"


def kept_in(directory: Path) -> tuple[Verdict, ...]:
    """The verdicts kept in a directory, none where nothing was judged; GateError where it is damaged."""
    path = directory / VERDICTS
    if not path.is_file():
        return ()
    try:
        return tuple(map(_verdict, parsed(whole_file(path))["verdicts"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        mend = "remove it, or judge the study again with `python -m reports gate`."
        raise GateError(f"{path}: is not what gates leave ({error}): {mend}") from error


def _verdict(kept: dict[str, Any]) -> Verdict:
    """TypeError or ValueError where a field is of another type than gates leave, or the outcome is none."""
    for name, kind in get_type_hints(Verdict).items():
        if not isinstance(kept.get(name), kind):
            raise TypeError(f"{name} is {kept.get(name)!r:.40}")
    if kept["outcome"] not in OUTCOMES:
        raise ValueError(f"outcome is {kept['outcome']!r:.40}")
    return Verdict(**kept)
