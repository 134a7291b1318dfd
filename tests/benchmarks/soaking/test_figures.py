"""A soak is judged by its processes and by its ledger together; doubt is said."""

import re
from pathlib import Path

import pytest

from benchmarks.bounds import Bounds
from benchmarks.soaking.figures import judge
from benchmarks.soaking.measured import Cell, Soak, soak_of
from benchmarks.soaking.validity import Validity
from benchmarks.soaking.watching import Look, Size, Track
from reports.caveat import caveat
from reports.ledger.ledger import FILE_NAME
from tests.benchmarks.soaking.ledgers import ledger
from tests.reports.lines import FIRST_SECOND

MB = 1_000_000
ALL = ("master", "worker", "worker")
SOUND = Validity(0, 0)


def soaked(per_min: float, kinds: tuple[str, ...] = ALL, until: int = 100) -> list[Track]:
    """A process of each kind that grows by so much, looked at until this second of 100."""
    looks = [
        Look(FIRST_SECOND + at, round((100 + per_min * at / 60) * MB), 0, 20, 4, at / 10)
        for at in range(until)
    ]
    return [Track(f"{kind} {number}", looks) for number, kind in enumerate(kinds, 1)]


def measured(folder: Path, *others: str) -> Soak:
    """A study of 100 s that lost nothing."""
    ledger(folder, 100, others=others)
    soak = soak_of(folder)
    soak.cells[0].lost = 0
    return soak


def judged(
    soak: Soak, validity: Validity = SOUND, tracks: list[Track] | None = None, quick: bool = True
) -> tuple[int, str]:
    """The exit code of a soak, and its tables."""
    bounds = Bounds("test")
    sizes = {FILE_NAME: [Size(0.0, MB)]}
    shown = judge(bounds, soak, validity, soaked(0.2) if tracks is None else tracks, sizes, 25.0, quick)
    return bounds.exit_code(), shown


@pytest.mark.parametrize(
    ("tracks", "code"),
    [
        (soaked(0.2), 0),
        (soaked(3.0), 1),
        (soaked(0.2, ("master", "worker")), 1),
        (soaked(0.2, (*ALL, "worker")), 1),
        (soaked(0.2) + soaked(0.2, ("worker",), until=60), 1),
        (soaked(0.2) + soaked(0.2, ("servers",), until=60), 0),
        (soaked(0.2) + soaked(9.0, ("stub",)), 0),
        (soaked(0.2) + soaked(9.0, ("servers",)), 1),
        ([], 1),
    ],
)
def test_a_soak_is_judged_by_its_processes(
    tracks: list[Track], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, shown = judged(measured(tmp_path), tracks=tracks)
    assert found == code
    lived = sorted(track.role for track in tracks if len(track.looks) == 100)
    assert sorted(line.split(" | ")[1] for line in shown.splitlines()[2:]) == lived
    assert "ledger.jsonl at its end" in capsys.readouterr().out


def test_losses_and_a_study_that_was_cut_off_break_it(tmp_path: Path) -> None:
    ledger(tmp_path, 100)
    for spoilt in (soak_of(tmp_path), Soak([Cell("a", 1.0, 2.0)], "failed"), Soak([], "complete")):
        assert judged(spoilt)[0] == 1


def test_a_cell_that_was_planned_and_not_measured_breaks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soak = measured(tmp_path, "b-floor/b1/r50")
    assert soak.unmeasured == ["b-floor/b1/r50"]
    assert judged(soak)[0] == 1
    assert "b-floor/b1/r50: its measure phase" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "expected", "doubt", "of_quick", "of_hour"),
    [
        (0, 0, "", 0, 3),
        (3, 3, "", 0, 3),
        (3, 0, "", 1, 1),
        (0, 3, "", 1, 1),
        (-9, 0, "", 1, 1),
        (3, 3, "client-bound", 0, 3),
        (3, 3, "worker-lost", 1, 1),
        (3, 3, "rate-missed", 1, 1),
    ],
)
def test_what_a_study_says_of_itself_is_judged(
    code: int,
    expected: int,
    doubt: str,
    of_quick: int,
    of_hour: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    soak = measured(tmp_path)
    doubts = {soak.cells[0].name: [caveat(doubt, "so it was")]} if doubt else {}
    validity = Validity(code, expected, doubts)
    assert judged(soak, validity)[0] == of_quick
    assert judged(soak, validity, quick=False)[0] == of_hour
    said = capsys.readouterr().out
    if doubt == "client-bound":
        assert re.search(r"client-bound +not there +cannot be told", said)
        assert "so it was" in said
