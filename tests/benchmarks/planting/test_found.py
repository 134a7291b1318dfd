"""What a set-up's study found, held against the truth."""

import json
from pathlib import Path
from typing import Any

from benchmarks.planted import SETUPS, line_of
from benchmarks.planting.found import NO_VERDICT, found_in, missing
from benchmarks.planting.setup import Setup, accepted
from reports.caveat import KINDS

SETUP = Setup("slow", "link or inconclusive", "emulated-http", (), users=4, more=((16, "connections"),))
Run = tuple[str, dict[str, str] | None, list[str]]
LIMIT = {"code": "link", "evidence": "39 of 40 Mbit/s were sent", "advice": "Send fewer bytes."}


def study_in(folder: Path, *runs: Run) -> Path:
    """A study's folder with such runs: cell, limit, codes of caveats."""
    place = folder / "results" / "planted-1"
    place.mkdir(parents=True)
    made: list[dict[str, Any]] = [
        {"cell": cell, "limit": limit, "caveats": [{"code": code} for code in codes]}
        for cell, limit, codes in runs
    ]
    (place / "study.json").write_text(json.dumps({"runs": made}))
    return folder


def test_each_level_has_its_own_truth(tmp_path: Path) -> None:
    runs: tuple[Run, ...] = (("emulated-http/b1/c16", LIMIT, []), ("emulated-http/b1/c4", LIMIT, []))
    four, sixteen = found_in(SETUP, study_in(tmp_path / "both", *runs))
    assert (four.users, four.code, four.wrong) == (4, "link", "")
    assert (sixteen.users, sixteen.truth, sixteen.wrong) == (16, "connections", "WRONG")
    for found in found_in(SETUP, study_in(tmp_path / "none", ("emulated-http/b1/c4", None, []))):
        assert (found.code, found.wrong) == (NO_VERDICT, "WRONG")


def test_what_must_be_said_and_doubted_is_asked_for(tmp_path: Path) -> None:
    setup = Setup(
        "slow", "link", "emulated-http", (), users=4, said=("39 of 40", "fewer", "429"),
        caveats=("few-samples", "several-servers"),
    )  # fmt: skip
    (found,) = found_in(setup, study_in(tmp_path, ("emulated-http/b1/c4", LIMIT, ["few-samples"])))
    assert found.wrong == "does not say '429'; has no caveat several-servers"
    assert found.wrong in line_of(setup, found)
    assert "caveats: few-samples" in line_of(setup, found)


def test_a_study_that_left_nothing_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "study.log").write_text("one\ntwo\n")
    assert [found.evidence for found in found_in(SETUP, tmp_path)] == [
        "the study left nothing; it printed at last:\n      | one\n      | two"
    ] * 2
    assert [found.wrong for found in missing(SETUP, tmp_path, "it ran too long")] == ["WRONG", "WRONG"]


def test_the_set_ups_are_at_least_26_with_names_of_their_own() -> None:
    names = [setup.name for setup in SETUPS]
    assert len(names) == len(set(names)) >= 26
    assert {code for setup in SETUPS for code in setup.caveats} <= set(KINDS)


def test_every_truth_has_a_row_in_the_docs() -> None:
    root = Path(__file__).parent.parent.parent.parent
    rows = (root / "docs" / "limits.md").read_text()
    codes = {code for setup in SETUPS for truth in setup.truths.values() for code in accepted(truth)}
    assert {code for code in codes if f"\n| `{code}`" not in rows} == set()
