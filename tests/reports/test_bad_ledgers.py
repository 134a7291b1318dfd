"""Ledgers with one thing wrong, thousands of them: refused by one sentence, or shown; never a traceback."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

import reports
from reports.__main__ import main
from reports.cells_csv.columns import render_csv
from reports.fold.run_records import planned_runs
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study
from tests.bad_input import Tally, is_clear, said_by, tried
from tests.reports.bad_ledgers import BAD_LEDGERS, LINES, RECORDS, WHOLE, lines_of
from tests.reports.lines import Record

TALLY = Tally(ledgers_at_commands=1_200, ledgers_at_load=150)
GATES = '[[threshold]]\nrequire = "latency_p99_ms <= 120"\n'
SHOWN = ["cells.csv", "report.html", "study.json", "summary.md", "timeline.csv"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A study that is whole beside the one that is not; templates are compiled once and for all."""
    made: list[Environment] = []

    def environment(**settings: Any) -> Environment:
        made[:] = made or [Environment(**settings)]
        return made[0]

    place = tmp_path_factory.mktemp("bad")
    for name in ("whole", "bad", "out"):
        (place / name).mkdir()
    (place / "whole" / "ledger.jsonl").write_bytes(WHOLE)
    (place / "thresholds.toml").write_text(GATES)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("reports.render.html.Environment", environment)
        yield place


def answered(folder: Path, text: bytes, argv: Sequence[str], codes: Sequence[int]) -> bool:
    """Whether a command refuses a ledger; if not, it has done it, with one of its other exit codes."""
    (folder / "bad" / "ledger.jsonl").write_bytes(text)
    code, out, said = said_by(main, [part.format(folder) for part in argv])
    assert code in (2, *codes)
    assert "Traceback" not in out + said
    if code in (0, 1) or not said:
        return False
    line, *more = said.splitlines()
    assert (more, line.startswith("inferswarm: "), is_clear(line)) == ([], True, True), said
    return code == 2


BASELINE, SHOW = (
    (["baseline", "{}/bad", "--out", "{}/out/kept.json"], (0, 3)),
    (["show", "{}/bad", "--quiet"], (0,)),
)
COMMANDS: list[tuple[list[str], tuple[int, ...]]] = [
    *([BASELINE] * 18 + [SHOW] * 2),
    (["calibrate", "{}/bad"], (0, 1, 3)),
    (["gate", "{}/bad", "--thresholds", "{}/thresholds.toml", "--out", "{}/out", "--quiet"], (0, 1, 3)),
    (["compare", "{}/whole", "{}/bad", "--out", "{}/out", "--quiet"], (0, 1, 3)),
]


@pytest.mark.slow
@tried(2_570)
@given(BAD_LEDGERS, st.sampled_from(COMMANDS))
def test_one_that_a_command_is_given(folder: Path, text: bytes, asked: tuple[list[str], list[int]]) -> None:
    for path in (*(folder / "bad").iterdir(), *(folder / "out").iterdir()):
        path.unlink()
    refused = answered(folder, text, *asked)
    written = sorted(path.name for place in ("bad", "out") for path in (folder / place).iterdir())
    written.remove("ledger.jsonl")
    if refused:
        TALLY.refused("ledgers_at_commands", text)
        assert written == []
    elif asked == SHOW:
        assert written == SHOWN


@pytest.mark.slow
@tried(330)
@given(BAD_LEDGERS)
def test_one_that_is_loaded(folder: Path, text: bytes) -> None:
    (folder / "bad" / "ledger.jsonl").write_bytes(text)
    said = ""
    try:
        found = reports.load(folder / "bad")
    except LedgerError as error:
        said = str(error)
    if said:
        assert is_clear(said)
        TALLY.refused("ledgers_at_load", text)
    else:
        assert len(found.cells) == len(load_study(folder / "bad").started)


@pytest.mark.slow
@tried(240)
@given(BAD_LEDGERS)
def test_one_of_long_runs_is_folded_or_refused(folder: Path, text: bytes) -> None:
    (folder / "bad" / "ledger.jsonl").write_bytes(text)
    with pytest.MonkeyPatch.context() as patched, suppress(LedgerError):
        patched.setattr("reports.study.study.planned_runs", partial(planned_runs, at_once=1))
        load_study(folder / "bad")


def doubted(folder: Path, text: bytes) -> str:
    """Why numbers of a ledger are not to be believed: it is refused, or what its caveats are."""
    path = folder / "ledger.jsonl"
    path.write_bytes(text)
    try:
        study = load_study(folder)
    except LedgerError:
        return "refused"
    return ";".join(row["caveats"] for row in csv.DictReader(io.StringIO(render_csv(study))))


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value + 1,
        lambda value: -value - 1,
        lambda value: value + 0.5,
        lambda value: float("nan"),
        lambda value: str(value),
        lambda value: [value],
    ],
)
@pytest.mark.parametrize("name", ["ok", "images", "failures"])
def test_another_count_is_refused_or_doubted(tmp_path: Path, name: str, change: Callable[[Any], Any]) -> None:
    for at, record in enumerate(RECORDS):
        if record["kind"] == "window" and record["phase"] == "measure":
            value = record[name]
            wrong = {"timeout": change(value.get("timeout", 0))} if name == "failures" else change(value)
            lines = [*LINES[:at], *lines_of([record | {name: wrong}]), *LINES[at + 1 :]]
            said = doubted(tmp_path, b"".join(lines))
            assert "refused" in said or "results-lost" in said, (at, said)


@pytest.mark.parametrize("times", [0, 2])
def test_a_second_that_is_lost_or_there_twice_is_doubted(tmp_path: Path, times: int) -> None:
    for at, record in enumerate(RECORDS):
        if record["kind"] == "window" and record["phase"] == "measure":
            text = b"".join([*LINES[:at], *[LINES[at]] * times, *LINES[at + 1 :]])
            assert "results-lost" in doubted(tmp_path, text), at


@pytest.mark.parametrize(
    ("kind", "said"), [("drained", "cut-short"), ("server", "probe-gap"), ("run", "refused")]
)
def test_what_is_lost_of_a_run_is_said(tmp_path: Path, kind: str, said: str) -> None:
    for at, record in enumerate(RECORDS):
        if record["kind"] == kind and record.get("event") != "end":
            assert said in doubted(tmp_path, b"".join([*LINES[:at], *LINES[at + 1 :]])), at


def test_records_of_a_later_program_are_named(tmp_path: Path) -> None:
    later: list[Record] = [{"kind": "moon", "cell": "onnx-http/b1/c1", "repeat": 1}, {"kind": "sun"}]
    (tmp_path / "ledger.jsonl").write_bytes(b"".join([*LINES, *lines_of(later)]))
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    assert "this version does not know such records: moon, sun." in (tmp_path / "summary.md").read_text()


@pytest.mark.slow
def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
