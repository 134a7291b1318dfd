"""Ledgers with one thing wrong, thousands of them: refused by one sentence, or shown; never a traceback."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

import reports
from reports.__main__ import main
from reports.cells_csv.columns import render_csv
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study
from tests.bad_input import Tally, is_clear, said_by, tried
from tests.reports.bad_ledgers import BAD_LEDGERS, LINES, RECORDS, WHOLE, lines_of
from tests.reports.lines import Record

pytestmark = pytest.mark.slow

TALLY = Tally(ledgers_at_baseline=1_200, ledgers_at_show=120, ledgers_at_others=150, ledgers_at_load=150)
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
    assert (more, line.startswith("reports: "), is_clear(line)) == ([], True, True), said
    return code == 2


@tried(2_000)
@given(BAD_LEDGERS)
def test_one_that_is_kept_as_a_baseline(folder: Path, text: bytes) -> None:
    kept = folder / "kept.json"
    kept.unlink(missing_ok=True)
    if answered(folder, text, ["baseline", "{}/bad", "--out", "{}/kept.json"], (0, 3)):
        TALLY.refused("ledgers_at_baseline", text)
        assert not kept.exists()


@tried(240)
@given(BAD_LEDGERS)
def test_one_that_is_shown(folder: Path, text: bytes) -> None:
    for path in (folder / "bad").iterdir():
        path.unlink()
    refused = answered(folder, text, ["show", "{}/bad", "--quiet"], (0,))
    written = sorted(path.name for path in (folder / "bad").iterdir() if path.name != "ledger.jsonl")
    assert written == ([] if refused else SHOWN)
    if refused:
        TALLY.refused("ledgers_at_show", text)


OTHERS: list[list[str]] = [
    ["calibrate", "{}/bad"],
    ["gate", "{}/bad", "--thresholds", "{}/thresholds.toml", "--out", "{}/out", "--quiet"],
    ["compare", "{}/whole", "{}/bad", "--out", "{}/out", "--quiet"],
]


@tried(330)
@given(BAD_LEDGERS, st.sampled_from(OTHERS))
def test_one_that_is_judged_compared_or_calibrated_from(folder: Path, text: bytes, argv: list[str]) -> None:
    for path in (folder / "out").iterdir():
        path.unlink()
    if answered(folder, text, argv, (0, 1, 3)):
        TALLY.refused("ledgers_at_others", text)
        assert not list((folder / "out").iterdir())


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


def doubted(folder: Path, text: bytes) -> str:
    """Why numbers of a ledger are not to be believed: it is refused, or what its caveats are."""
    path = folder / "ledger.jsonl"
    path.write_bytes(text)
    try:
        study = load_study(folder)
    except LedgerError:
        return "refused"
    return ";".join(row["caveats"] for row in csv.DictReader(io.StringIO(render_csv(study))))


NORMAL = "few-samples"


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
def test_a_count_that_is_another_is_refused_or_doubted(
    tmp_path: Path, name: str, change: Callable[[Any], Any]
) -> None:
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


def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
