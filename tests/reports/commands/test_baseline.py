"""inferswarm baseline: the file it writes, and what it refuses to make one of."""

from pathlib import Path

import pytest

from reports.__main__ import main
from reports.gates.baseline import load_baseline
from reports.render.console import NOT_TOLD, OK, USAGE_ERROR
from tests.reports.builder import Book
from tests.reports.gates.alike import MS, alike_study


def run(*arguments: str) -> int:
    return main(["baseline", *arguments])


def interrupted() -> Book:
    book = alike_study()
    book.records.pop()
    book.footer("interrupted", "Ctrl-C")
    return book


def failing() -> Book:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, status="failed")
    book.footer()
    return book


def test_the_file_is_a_baseline_of_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, file = alike_study().write(tmp_path / "step7-alike"), tmp_path / "main.json"
    assert run(str(study), "--out", str(file)) == OK
    size = file.stat().st_size
    assert capsys.readouterr().out == f"{file}: 2 cells, 20 of 20 runs count, {size:,} bytes\n"
    kept, whole = load_baseline([str(file)]), load_baseline([str(study)])
    assert list(kept.runs) == list(whole.runs) == ["onnx-http/b1/c1", "onnx-grpc/b1/c1"]
    for cell, runs in whole.runs.items():
        assert [run.row.numbers for run in kept.runs[cell]] == [run.row.numbers for run in runs]


def test_a_cell_of_which_no_run_counts_is_kept_beside_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = alike_study()
    for repeat in range(1, 11):
        book.caveat({"cell": "onnx-grpc/b1/c1", "repeat": repeat}, "client-bound", "the client was")
    file = tmp_path / "main.json"
    assert run(str(book.write(tmp_path / "a")), "--out", str(file)) == OK
    assert f"{file}: 2 cells, 10 of 20 runs count, " in capsys.readouterr().out


def test_without_a_name_it_lies_here_and_is_called_as_the_last_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day, name in enumerate(("first", "second"), 1):
        book = alike_study(started_utc=f"2026-11-0{day}T11:00:00.000Z")
        book.write(tmp_path / "results" / name)
    monkeypatch.chdir(tmp_path)
    assert run("results/first", "results/second/") == OK
    kept = load_baseline(["second.baseline.json"])
    assert [side.name for side in kept.sides] == ["first", "second"]


@pytest.mark.parametrize(
    ("book", "sentence"),
    [
        (interrupted(), "is interrupted, and what it would have measured is not known: name a complete one."),
        (failing(), "has no run that counts: read its caveats, fix their causes, and run it again."),
    ],
)
def test_nothing_is_compared_with_half_a_study(
    tmp_path: Path, book: Book, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study, file = book.write(tmp_path / "a"), tmp_path / "b.json"
    assert run(str(study), "--out", str(file)) == NOT_TOLD
    assert capsys.readouterr().err == f"inferswarm: {study}: {sentence}\n"
    assert not file.exists()


def test_a_directory_without_a_ledger_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path)) == USAGE_ERROR
    assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, file = alike_study().write(tmp_path / "a"), tmp_path / "none" / "b.json"
    assert run(str(study), "--out", str(file)) == USAGE_ERROR
    sentence = f"inferswarm: {file}: cannot be written (No such file or directory): name another --out.\n"
    assert capsys.readouterr().err == sentence
