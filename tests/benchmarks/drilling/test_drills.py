"""The drills that tell most for their time, carried out; and what the program says of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import drills
from benchmarks.drilling.all import DRILLS
from benchmarks.drilling.drill import carried_out, chosen, few_pictures
from benchmarks.drilling.table import BEGIN, END, markdown
from benchmarks.generating.page import PAGE

TELLING = ("killed", "half", "disk-full")


@pytest.mark.system
@pytest.mark.parametrize("name", TELLING)
@pytest.mark.slow
def test_what_a_study_says_when_things_break(name: str) -> None:
    (drill,) = chosen(DRILLS, [name])
    if drill.needs_root and os.geteuid():
        pytest.skip("a mount needs root")
    with few_pictures() as pictures:
        outcome = carried_out(drill, pictures)
    assert outcome.wrong == (), outcome.terminal


def test_a_name_that_no_drill_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert drills.main(["--only", "killed", "kiled"]) == 2
    assert (
        capsys.readouterr().err
        == "benchmarks.drills: --only kiled: no such drill; --list tells their names\n"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--times", "0"], "--times 0: give 1 or more"),
        (["--times", "-1", "--write"], "--times -1: give 1 or more"),
        (
            ["--write", "--only", "killed"],
            "--write with --only: the table is of all drills; leave one of the two options out",
        ),
    ],
)
def test_options_that_are_refused(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drills.main(options) == 2
    assert capsys.readouterr() == ("", f"benchmarks.drills: {sentence}\n")


def test_every_fault_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert drills.main(["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert len(set(names)) == len(names) == len(DRILLS)


def test_a_drill_that_cannot_be_carried_out_is_skipped_and_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    (drill,) = chosen(DRILLS, ["disk-full"])
    outcome = carried_out(drill, tmp_path)
    assert outcome.skipped == "namespaces and mounts need root"
    assert drills.verdict([[outcome]]) == 3
    assert markdown([[outcome]]).splitlines()[-1].endswith("| namespaces and mounts need root | skipped |")


def test_the_page_has_a_place_for_the_table_and_the_right_number() -> None:
    text = PAGE.read_text()
    assert f"of each of {len(DRILLS)} short studies" in text
    assert text.count(BEGIN) == text.count(END) == 1
