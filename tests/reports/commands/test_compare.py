"""inferswarm compare: what it writes, how it ends, and what it refuses."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from reports.__main__ import main
from reports.cells_csv.sides import load_sides
from reports.commands.compare import default_folder
from reports.compare.csv import COLUMNS
from reports.render.console import NOT_TOLD as NOTHING_IN_COMMON
from reports.render.console import OK, USAGE_ERROR, render_console
from tests.reports.builder import Book
from tests.reports.check import check_golden, without_scripts, without_style
from tests.reports.compare_book import EVIL, MS, evil, page_of
from tests.reports.rendered import prose

FILES = ("compare.html", "compare.md", "compare.csv")


def run(*arguments: str) -> int:
    return main(["compare", *arguments])


@pytest.fixture(scope="module")
def compared(pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compared")
    assert run(*pair, "--out", str(out), "--quiet") == OK
    return out


def test_the_csv_is_golden(compared: Path) -> None:
    check_golden("compare.csv", (compared / "compare.csv").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["compare.html", "compare.md"])
def test_pages_are_golden(compared: Path, name: str) -> None:
    text = (compared / name).read_text(encoding="utf-8")
    check_golden(name, without_style(without_scripts(text)))
    assert "inferswarm compare DIR/before DIR/after" in text


def test_the_console_is_golden(pair: tuple[str, str]) -> None:
    out = io.StringIO()
    render_console(page_of(*pair), Console(file=out, width=100, highlight=False))
    check_golden("compare.txt", "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def test_the_csv_has_one_row_a_measure_and_cell(compared: Path) -> None:
    rows = list(csv.DictReader((compared / "compare.csv").read_text(encoding="utf-8").splitlines()))
    assert tuple(rows[0]) == COLUMNS
    # no run of the two studies has results enough for a p95
    assert {row["measure"] for row in rows} == {"images_per_s", "latency_p50_ms", "failures_pct"}


def test_nothing_in_common_is_said_and_ends_with_3(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("step6b", pair[1], "--out", str(tmp_path / "out")) == OK
    book = Book()
    book.add("openvino-http", 1, 1, {"w0": [MS] * 40})
    other = str(book.write(tmp_path / "other"))
    assert run("step6b", other, "--out", str(tmp_path / "out")) == NOTHING_IN_COMMON
    # one candidate of two with something in common is enough
    assert run("step6b", other, pair[1], "--out", str(tmp_path / "both"), "--quiet") == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "Candidate (other) cannot be compared with base (step6b): no cell in common." in said
    assert "OpenVINO: a stand-in" in (tmp_path / "out" / "compare.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        (["step7-a100"], "compare: takes a base and one candidate or more: name another directory"),
        (["step7-a100", "step9"], "step9: is neither a directory with a ledger.jsonl, a CSV file"),
        (
            ["step9", "step7-a100"],
            "those are step5a, step5a-cpu, step6a-a100",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    *, sides: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*sides, "--out", str(tmp_path / "out")) == USAGE_ERROR
    error = capsys.readouterr().err
    assert error.startswith("inferswarm: ")
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "lacks the columns study, cell, endpoint"),
        ("", "lacks the columns study, cell, endpoint"),
        (
            "study,cell,endpoint,backend,protocol,payload,batch,load,level,images_per_s\n"
            "s,e/b1/c1,e,b,http,fp32,1,closed,1,fast\n",
            "line 2: images_per_s is 'fast', which is no number",
        ),
        (
            "study,cell,endpoint,backend,protocol,payload,batch,load,level\ns,e/b1/c1,e,b,http,fp32,,closed,1\n",
            "line 2: has no batch",
        ),
        (
            "study,cell,endpoint,backend,protocol,payload,batch,load,level\n",
            "has no run that was begun",
        ),
    ],
)
def test_a_file_that_is_no_cells_csv_is_refused(
    *, text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cells.csv").write_text(text, encoding="utf-8")
    assert run("step7-a100", str(tmp_path / "cells.csv"), "--out", str(tmp_path / "out")) == USAGE_ERROR
    assert sentence in capsys.readouterr().err


def test_a_study_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Book()
    book.plan("onnx-http", 1, 1)
    folder = str(book.write(tmp_path / "x"))
    assert run("step7-a100", folder, "--out", str(tmp_path / "out")) == USAGE_ERROR
    assert "has no run that was begun" in capsys.readouterr().err


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("a file")
    assert run("step7-a100", "step7-rtx4090", "--out", str(tmp_path / "out")) == USAGE_ERROR
    assert "cannot be written" in capsys.readouterr().err


def test_the_default_folder_is_named_after_the_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("step7-a100", "step7-rtx4090", "--quiet") == OK
    folder = tmp_path / "results" / "compare-step7-a100-vs-step7-rtx4090"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    sides = load_sides(("step6b", "step6b"))
    assert default_folder(sides) == Path("results/compare-step6b-base-vs-step6b-candidate")


def test_text_from_outside_shows_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(evil().write(tmp_path / "evil"))
    other = str(evil(fingerprint={EVIL: "1"}, images={"sha256": EVIL}).write(tmp_path / "<b>other|x"))
    assert run(folder, other, "--out", str(tmp_path / "out")) == OK
    html, text = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in FILES[:2])
    outside_code = prose(text)
    assert "<script>alert" not in html + outside_code
    assert "<b>other" not in html + outside_code
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;|`x` # h\x1b[31m[red]" in html
    assert "\x1b" not in capsys.readouterr().out + html + text
