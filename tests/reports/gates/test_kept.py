"""gates.json: verdicts come back as they were, and a damaged file is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.gates.require import GateError
from reports.gates.thresholds import VERDICTS
from reports.gates.verdict import kept_in, kept_text
from tests.reports.gates.book import a_study, judged, require

TEXT = require("latency_p95_ms <= 11") + require("latency_p95_ms <= 120", batch="64")


def test_verdicts_come_back_as_they_were(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, TEXT, a_study())
    text = kept_text(verdicts)
    (tmp_path / VERDICTS).write_text(text)
    assert kept_in(tmp_path) == tuple(verdicts)
    assert json.loads(text)["exit_code"] == 1
    assert kept_in(tmp_path / "elsewhere") == ()


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "fine"},
        {"value": "1"},
        {"threshold": None},
        {"sentence": 5},
        {"extra": 1},
        {"ratio": "no"},
    ],
)
def test_a_field_of_another_kind_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    found = json.loads(kept_text(judged(tmp_path, TEXT, a_study())))
    found["verdicts"][0] |= change
    (tmp_path / VERDICTS).write_text(json.dumps(found))
    with pytest.raises(GateError, match="is not what gates leave"):
        kept_in(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "5", '{"verdicts": 5}', '{"verdicts": [5]}', "[" * 100_000, "\xff"]
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / VERDICTS).write_text(text, encoding="latin-1")
    with pytest.raises(GateError, match="remove it, or judge the study again"):
        kept_in(tmp_path)
