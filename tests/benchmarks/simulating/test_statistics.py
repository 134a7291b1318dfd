"""`python -m benchmarks.statistics`: which modules it runs, in which order it shows them, its exit code."""

import sys
from types import ModuleType

import pytest

from benchmarks import statistics as program
from benchmarks.bounds import Bounds
from benchmarks.statistics import Ended


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    given: dict[str, int] = {}
    monkeypatch.setattr(program, "ended_of", lambda name: Ended(f"table of {name}\n", given.get(name, 0), 2))
    return given


def test_tables_come_in_order_and_a_line_of_each_at_the_end(
    codes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["gates", "drift"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[:2] == ["=== gates: table of gates", "=== drift: table of drift"]
    assert [line.split() for line in lines[2:]] == [[name, "2", "s", "holds"] for name in ("gates", "drift")]


@pytest.mark.parametrize(
    ("some", "code", "word"),
    [
        ({"gates": 1}, 1, "BROKEN"),
        ({"gates": 3}, 3, "cannot be told"),
        ({"gates": 3, "drift": 1}, 1, "cannot be told"),
        ({"gates": -9}, 1, "ended with exit code -9"),
    ],
)
def test_a_broken_promise_is_the_exit_code(
    some: dict[str, int], code: int, word: str, codes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    codes.update(some)
    assert program.main(["gates", "drift"]) == code
    assert f"gates              2 s   {word}" in capsys.readouterr().out


@pytest.mark.parametrize(("figure", "code"), [(4.0, 0), (6.0, 1)])
def test_one_alone_is_run_here(
    figure: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def promises(bounds: Bounds) -> None:
        bounds.at_most("false alarms", figure, 5.0, "%")

    planted = ModuleType("benchmarks.simulating.drift", "Planted.\n\nMore of it.")
    planted.promises = promises  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.simulating.drift", planted)
    assert program.main(["drift"]) == code
    out = capsys.readouterr().out
    assert out.startswith("Planted.\n")
    assert ("broken: false alarms" in out) == bool(code)


def test_each_of_them_is_there_and_says_what_it_is() -> None:
    assert [name for name in program.NAMES if not program.title(name)] == []


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(["drifts"])
    assert caught.value.code == 2
    assert "drifts simulates nothing here: give some of intervals, " in capsys.readouterr().err
