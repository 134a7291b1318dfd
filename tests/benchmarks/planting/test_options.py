"""The command line of the planted set-ups: what it refuses, so that a run of nothing is no success."""

import pytest

from benchmarks.planted import SETUPS, main, read_options


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--times", "-1", "--list"], "--times -1: give a whole number, at least 1"),
        ([SETUPS[0].name, "no such"], "no set-up has 'no such' in its name: --list prints the names"),
    ],
)
def test_what_would_run_nothing_or_less_than_is_named_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {said}\n")


def test_parts_of_names_choose_set_ups(capsys: pytest.CaptureFixture[str]) -> None:
    name = SETUPS[0].name
    assert (read_options([name]).names, read_options([]).names) == ([name], [])
    assert main(["--list", name]) == 0
    assert capsys.readouterr().out.startswith(name)
