"""`python -m benchmarks`: which of those with a bound are run, and what is said of them."""

from pathlib import Path

import pytest

from benchmarks import __main__ as program

ROOT = Path(__file__).parents[2]


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    given: dict[str, int] = {}
    monkeypatch.setattr(program, "run", lambda name: given.get(name, 0))
    return given


@pytest.mark.parametrize(
    ("code", "word"), [(0, "holds"), (1, "BROKEN"), (3, "cannot be told here"), (2, "ended with exit code 2")]
)
def test_one_that_does_not_hold_is_named_and_the_others_are_run(
    code: int, word: str, codes: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    codes["tail"] = code
    assert program.main(["tail", "rate"]) == bool(code)
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first.endswith(word)
    assert second.endswith("holds")


def test_a_stop_leaves_the_rest_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(name: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "run", stopped)
    assert program.main(["tail"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split(maxsplit=1) == ["tail", "not run"]


def test_whatever_judges_itself_by_bounds_is_among_them() -> None:
    judged = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "exit_code()" in path.read_text()}
    assert judged - {"bounds"} <= set(program.NAMES)
    programs = {name: (ROOT / "benchmarks" / f"{name}.py").read_text() for name in program.NAMES}
    assert [name for name, text in programs.items() if '__name__ == "__main__"' not in text] == []


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(["tial"])
    assert caught.value.code == 2
    assert "tial is no benchmark with a bound: give some of accuracy, " in capsys.readouterr().err
