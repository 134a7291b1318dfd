"""What docs/architecture.md says of adding something is true: one row, or one rule, and all others ask it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.caveat import KINDS, CaveatKind, Trait
from reports.caveats.rate_bound import RateBound
from reports.limit import Limit
from reports.limits import rules
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book

MS = 1_000_000
TOY, ADVICE, WHY = "toy", "Put the toy away, then run again.", "a toy lay in the way"
GATE = '[[threshold]]\nrequire = "failure_ratio <= 0.5"\n'


def written(folder: Path, *, doubted: bool) -> Path:
    """A study of one run, which a program that knew a toy has doubted, or not."""
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 1_000})
    if doubted:
        book.caveat(tag, TOY, "a toy was seen")
    book.footer()
    (folder / "thresholds.toml").parent.mkdir(parents=True)
    (folder / "thresholds.toml").write_text(GATE)
    return book.write(folder)


@pytest.mark.parametrize(
    ("traits", "reason", "met"),
    [
        (Trait(0), [], True),
        (Trait.TAINTS, [TOY], None),
        (Trait.TAINTS | Trait.VOIDS, [TOY], None),
    ],
)
def test_a_kind_of_caveat_is_a_row_of_one_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    traits: Trait,
    reason: list[str],
    met: bool | None,
) -> None:
    """The report, its CSV, the gates and a search go by what the row says."""
    monkeypatch.setitem(KINDS, TOY, CaveatKind(ADVICE, traits, WHY if traits else ""))
    folder = written(tmp_path / "a", doubted=True)
    assert main(["show", "--quiet", str(folder)]) == 0
    (row,) = csv.DictReader((folder / "cells.csv").read_text().splitlines())
    assert TOY in row["caveats"].split(";")
    for page in ("report.html", "summary.md"):
        assert "a toy was seen" in (folder / page).read_text()
        assert ADVICE in (folder / page).read_text()
    assert main(["gate", str(folder)]) == 3
    assert (TOY in (folder / "gates.md").read_text()) == bool(traits)
    assert json.loads((folder / "study.json").read_text())["inconclusive_because"] == reason
    (run,) = load_study(folder).runs
    assert run.tainted == bool(traits)
    assert RateBound("p50", 100).met_by(run) is met


def test_a_limit_is_a_rule_in_one_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(run: Summary) -> Limit | None:
        return Limit(TOY, "it was in the way", ADVICE) if run.batch == 1 else None

    monkeypatch.setattr(rules, "RULES", (*rules.RULES[:1], toy, *rules.RULES[1:]))
    folder = written(tmp_path / "a", doubted=False)
    assert main(["show", "--quiet", str(folder)]) == 0
    (row,) = csv.DictReader((folder / "cells.csv").read_text().splitlines())
    assert row["limit"] == TOY
    for page in ("report.html", "summary.md"):
        assert "it was in the way" in (folder / page).read_text()
        assert ADVICE in (folder / page).read_text()
