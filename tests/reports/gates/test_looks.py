"""--repeat-until-decided: a study is judged after every repeat, so each judgement may err more seldom."""

from typing import Any

import pytest

from reports.__main__ import main
from reports.stats.shares import LEVEL
from tests.reports.gates.book import a_study, require
from tests.reports.gates.rows import a_source, broken_at, said_of

TEN = {"repeats": 3, "repeat_until_decided": 10}
"""Judged after 3, 4, 5, 6, 7, 8, 9 and 10 repeats."""


def outcome(told: list[Any], p_broken: float, sign: str = "<=") -> str:
    """Of studies with such options, which show that a bound is broken with such a chance to err."""
    studies = [broken_at(p_broken), *[[]] * (len(told) - 1)]
    source = a_source(*studies, headers=[{"options": options} for options in told])
    return said_of(source, require(f"images_per_s {sign} 100"))[0].outcome


@pytest.mark.parametrize(
    ("told", "looks"),
    [
        ([None], 1),
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
def test_the_chance_to_err_is_shared_out_over_the_looks(told: list[Any], looks: int) -> None:
    within, above = 0.9999 * LEVEL / looks, 1.0001 * LEVEL / looks
    assert (outcome(told, within), outcome(told, above)) == ("fail", "inconclusive")
    assert (outcome(told, 1 - within), outcome(told, 1 - above)) == ("pass", "inconclusive")
    assert (outcome(told, within, ">="), outcome(told, above, ">=")) == ("pass", "inconclusive")


def test_repeats_that_would_decide_are_counted_by_the_same_level() -> None:
    text = require("images_per_s <= 100")
    found = [said_of(a_source(broken_at(0.06), options=told), text)[0] for told in ({}, TEN)]
    # t of 3 runs is 2.62 at 6 %; of 5 it would be 3.38, which is 1.8 %, and of 9 4.54, which is 0.2 %
    assert [verdict.more_repeats for verdict in found] == [2, 6]


@pytest.mark.parametrize("broken", ["ten", [10], {"a": 1}])
@pytest.mark.parametrize("name", ["repeats", "repeat_until_decided"])
def test_options_that_are_no_numbers_are_refused_in_one_sentence(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], name: str, broken: Any
) -> None:
    folder = a_study(options=TEN | {name: broken}).write(tmp_path / "study")
    (folder / "thresholds.toml").write_text(require("latency_p95_ms <= 120"))
    assert main(["gate", str(folder), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"inferswarm: {folder}/ledger.jsonl: ")
    assert said.count("\n") == 1
