"""--repeat-until-decided: a study is judged after every repeat, so each judgement may err more seldom."""

from math import nextafter
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.gates import judge as module
from reports.gates.evidence import Evidence
from reports.gates.judge import judge
from reports.gates.source import GateSource
from reports.gates.thresholds import Threshold, parse_gates
from reports.gates.verdict import Claim
from reports.stats.shares import LEVEL
from tests.reports.gates.book import a_book, a_study, add, own, require, source

KEPT = parse_gates(require("latency_p95_ms <= 120", endpoint="'onnx-grpc'"), "x")
TEN = {"repeats": 3, "repeat_until_decided": 10}
"""Judged after 3, 4, 5, 6, 7, 8, 9 and 10 repeats."""


def outcome(monkeypatch: pytest.MonkeyPatch, studies: GateSource, p_broken: float, p_kept: float) -> str:
    """Of one threshold that such evidence was found of."""
    found = Evidence(
        value=2.0,
        low=1.0,
        high=3.0,
        chances=lambda _: (p_broken, p_kept),
        beyond=p_broken < 0.5,
        beyond_then=None,
    )

    def judged(threshold: Threshold, cell: str, *_: object) -> Claim:
        if threshold.number == 0:
            return Claim(threshold=threshold, cell=cell, settled="pass")
        return Claim(threshold=threshold, cell=cell, evidence=found)

    monkeypatch.setattr(module, "judge_absolute", judged)
    return judge(KEPT, studies)[0].outcome


@pytest.mark.parametrize(
    ("told", "looks"),
    [
        ([{}], 1),
        ([{"repeats": 5}], 1),
        ([{"repeats": 5, "repeat_until_decided": 0}], 1),
        ([{"repeats": 5, "repeat_until_decided": 5}], 1),
        ([{"repeats": 12, "repeat_until_decided": 10}], 1),
        ([TEN], 8),
        ([{"repeat_until_decided": 4}], 4),
        ([{"repeats": None, "repeat_until_decided": 4}], 4),
        ([{"repeats": 3}, TEN], 8),
        ([TEN, {"repeats": 3, "repeat_until_decided": 20}, {}], 18),
    ],
)
def test_the_chance_to_err_is_shared_out_over_the_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[dict[str, Any]], looks: int
) -> None:
    studies = source(tmp_path, *(a_study(options=options) for options in told))
    level = LEVEL / looks
    above = nextafter(level, 1)
    assert outcome(monkeypatch, studies, level, 1.0) == "fail"
    assert outcome(monkeypatch, studies, above, 1.0) == "inconclusive"
    assert outcome(monkeypatch, studies, 1.0, level) == "pass"
    assert outcome(monkeypatch, studies, 1.0, above) == "inconclusive"


def test_without_any_options_a_study_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(monkeypatch, source(tmp_path, a_study(options=None)), LEVEL, 1.0) == "fail"


def test_repeats_that_would_decide_are_counted_by_the_same_level(tmp_path: Path) -> None:
    text = require("onnx-grpc / onnx-http <= 1", of="'latency_p95_ms'")
    found = []
    for name, options in (("once", {}), ("often", TEN)):
        book = a_book(options=options)
        for repeat, factor in enumerate((1.0, 1.2, 0.98, 1.15, 1.09), 1):
            add(book, "onnx-http", [10.0] * 6, repeat=repeat)
            add(book, "onnx-grpc", [10.0 * factor] * 6, repeat=repeat)
        book.footer()
        found += own(judge(parse_gates(text, "x"), source(tmp_path / name, book)))
    once, often = (verdict.more_repeats for verdict in found)
    assert once is not None
    assert often is not None
    assert 1 <= once < often


@pytest.mark.parametrize("broken", ["ten", [10], {"a": 1}])
@pytest.mark.parametrize("name", ["repeats", "repeat_until_decided"])
def test_options_that_are_no_numbers_are_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, broken: Any
) -> None:
    folder = a_study(options=TEN | {name: broken}).write(tmp_path / "study")
    (folder / "thresholds.toml").write_text(require("latency_p95_ms <= 120"))
    assert main(["gate", str(folder), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"reports: {folder}/ledger.jsonl: ")
    assert said.count("\n") == 1
