"""Workflow commands of GitHub Actions: one line each, escaped, and no more than are shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.render.github import MOST, annotations, commands_stopped, place_in_repository, tell_actions
from tests.reports.gates.outcomes import ALL, FAILED, MADE, UNSURE, WARNED, evil

PLACE = "ci/thresholds.toml"
ACTIONS = {"GITHUB_ACTIONS": "true"}


def test_a_fail_is_an_error_and_all_else_that_did_not_pass_a_warning() -> None:
    lines = annotations(ALL, PLACE)
    assert [line.split()[0] for line in lines] == ["::error", "::warning", "::warning", "::warning"]
    assert lines[0] == (
        "::error file=ci/thresholds.toml,line=3,title=fail%3A latency_p95_ms <= 120::onnx-grpc/b1/c1: "
        "latency_p95_ms 131 ms (95 %25 CI 128 ms to 134 ms), at most 120 ms is required."
    )
    assert annotations([MADE], PLACE) == []


def test_without_a_place_it_stands_at_no_line() -> None:
    assert annotations([UNSURE], "")[0].startswith("::warning title=inconclusive%3A gRPC keeps up::onnx-grpc")


def test_no_text_breaks_out_of_its_line_or_property() -> None:
    lines = annotations([evil(FAILED), evil(replace(WARNED, title="a,b"))], "a:b,c\n.toml")
    assert not [line for line in lines if set(line) & set("\n\r\x1b\x00")]
    for line in lines:
        properties = line.removeprefix("::").partition("::")[0]
        assert properties.count(",") == 2
        assert "file=a%3Ab%2Cc .toml," in properties


@pytest.mark.parametrize("verdict", [FAILED, UNSURE, WARNED])
def test_the_last_one_says_how_many_more_there_are(verdict: object) -> None:
    assert len(annotations([verdict] * MOST, PLACE)) == MOST  # type: ignore[list-item]
    lines = annotations([verdict] * 25, PLACE)  # type: ignore[list-item]
    assert len(lines) == MOST
    assert lines[-1].endswith("title=Gates::16 more gates did not pass; gates.md has them all.")


def test_a_place_is_seen_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert place_in_repository(Path("t.toml"), {}) == "t.toml"
    assert place_in_repository(Path("t.toml"), {"GITHUB_WORKSPACE": str(tmp_path)}) == "sub/t.toml"
    assert place_in_repository(Path("../t.toml"), {}) == ""


def test_elsewhere_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with commands_stopped({}):
        tell_actions({"GITHUB_ACTIONS": "false"}, ALL, PLACE, "x")
    assert capsys.readouterr().out == ""


def test_the_summary_is_added_to_if_writable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    tell_actions({**ACTIONS, "GITHUB_STEP_SUMMARY": str(summary)}, [FAILED], PLACE, "## Gates\n")
    assert summary.read_text() == "before\n## Gates\n"
    assert capsys.readouterr().out.startswith("::error file=ci/thresholds.toml,")
    tell_actions({**ACTIONS, "GITHUB_STEP_SUMMARY": str(tmp_path)}, [], PLACE, "")
    assert capsys.readouterr().err == "inferswarm: the job's summary cannot be written (Is a directory)\n"


def test_what_is_printed_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with commands_stopped(ACTIONS):
        print("::error::a cell's name")
    first, name, last = capsys.readouterr().out.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert (len(token), name, last) == (32, "::error::a cell's name", f"::{token}::")
