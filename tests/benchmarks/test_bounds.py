"""What is printed of figures and their bounds, and the exit code."""

import pytest

from benchmarks.bounds import Bounds


@pytest.mark.parametrize(("figure", "word"), [(92.9, "BROKEN"), (93.0, ""), (97.0, ""), (97.1, "BROKEN")])
def test_a_figure_between_two_bounds(figure: float, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = Bounds("Coverage")
    bounds.between("mean", figure, 93, 97, "%")
    assert bounds.exit_code() == bool(word)
    words = capsys.readouterr().out.splitlines()[3].split()
    assert words == ["mean", str(figure), "%", "93.0–97.0", *word.split()]


def test_an_indented_name_is_told_with_the_one_that_it_belongs_to(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = Bounds("Gates")
    bounds.beside("10 pairs", 10)
    bounds.at_most("  false alarms", 6, 5, "%")
    bounds.verdict("  caught", "3", "4", "cannot be told")
    assert bounds.exit_code() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].startswith("  false alarms")
    assert lines[-1] == "broken: 10 pairs: false alarms"


def test_what_cannot_be_told_is_another_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = Bounds("Soak")
    bounds.verdict("slope", "0.9", "≤ 1", "cannot be told")
    assert bounds.exit_code() == 3
    assert capsys.readouterr().out.splitlines()[-1] == "cannot be told: slope"
    bounds.at_least("rate", None, 5)
    assert bounds.exit_code() == 1
