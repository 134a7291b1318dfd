"""inferswarm calibrate: what it prints, how it ends, and what it refuses."""

from pathlib import Path

import pytest

from reports.__main__ import main
from reports.commands.calibrate import calibrate_page
from reports.gates.calibrate import Alike, detectable, pairs_for, pairs_to_pass, passable
from reports.render.console import NOT_TOLD, OK, USAGE_ERROR
from tests.reports.builder import Book
from tests.reports.check import check_golden
from tests.reports.gates.alike import OFF, alike_study


def run(*arguments: str) -> int:
    return main(["calibrate", *arguments])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return alike_study().write(tmp_path_factory.mktemp("results") / "step7-alike")


def test_the_file_is_golden(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "calibration.md"
    assert run(str(study), "--out", str(out)) == OK
    check_golden("calibration.md", out.read_text(encoding="utf-8"))


def test_the_terminal_has_both_tables(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(study), "--measure", "latency_p50_ms", "--cells", "*-http/*", "--pairs", "4") == OK
    text = " ".join(capsys.readouterr().out.split())
    assert "1 cell, 10 runs that count" in text
    assert "How the machine varies" in text
    assert "What it can tell" in text
    assert "4 pairs" in text
    assert "onnx-grpc" not in text
    assert "any of" not in text
    assert "latency_p50_ms: least_effect = 0.05 does; what did not change passes" in text


def test_studies_are_taken_in_the_order_in_which_they_were_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = alike_study(OFF[:3], started_utc="2026-11-21T11:00:00.000Z").write(tmp_path / "a")
    second = alike_study(OFF[3:], started_utc="2026-11-21T12:00:00.000Z").write(tmp_path / "b")
    printed = []
    for places in ((first, second), (second, first)):
        assert run(*map(str, places), "--measure", "images_per_s") == OK
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "2 cells, 20 runs that count" in " ".join(printed[0].split())


def test_cells_with_too_few_repeats_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = alike_study()
    tag = {"cell": "onnx-grpc/b1/c1", "repeat": 1}
    for repeat in range(1, 6):
        book.caveat(tag | {"repeat": repeat}, "client-bound", "the client was")
    assert run(str(book.write(tmp_path)), "--measure", "images_per_s") == OK
    said = "onnx-grpc/b1/c1, images_per_s: 5 repeats count, and it takes 6: 5 runs left out (client-bound)."
    assert said in " ".join(capsys.readouterr().out.split())


def test_too_few_repeats_of_all_tell_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(alike_study(OFF[:5]).write(tmp_path))) == NOT_TOLD
    sentence = "onnx-http/b1/c1, images_per_s: 5 repeats count, and it takes 6. Make more: --repeats 20."
    assert capsys.readouterr().err == f"inferswarm: {sentence}\n"


def test_six_repeats_of_a_cell_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(alike_study(OFF[:6]).write(tmp_path))) == OK
    assert "2 cells, 12 runs that count" in " ".join(capsys.readouterr().out.split())


def test_what_is_advised_is_by_the_cell_that_varies_most() -> None:
    quiet, noisy = (
        Alike(cell, "images_per_s", tuple(times * off for off in OFF))
        for cell, times in (("q", 0.1), ("n", 3))
    )
    for found in ([quiet, noisy], [noisy, quiet]):
        page = calibrate_page(found, (5,), (), "x")
        assert page.findings[0] == (
            f"images_per_s: put least_effect = {passable(noisy.of_a_pair, 10):g}, and what did not change "
            "passes in 95 % of all cases with 10 pairs; at the default of 0.05 it takes "
            f"{pairs_to_pass(noisy.of_a_pair, 0.05)} pairs."
        )
        taken = [pairs_for(change, noisy.of_a_pair, 2) for change in (0.05, 0.1, 0.15)]
        assert page.findings[1].endswith(
            "of half of it: {} for 5 %, {} for 10 %, {} for 15 %.".format(*taken)
        )
    (told,) = (table for table in page.sections[0].tables if table.title == "What it can tell")
    shares = [detectable(noisy.of_a_pair, 5, 2, power, 0.05) for power in (0.8, 0.95)]
    assert told.rows[0][2].text == " / ".join(f"{100 * share:.1f}" for share in shares)


def test_studies_of_different_things_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"count": 64, "source": "photographs", "jpeg_bytes_mean": 9800, "sha256": "cd34"}
    first = alike_study().write(tmp_path / "a")
    second = alike_study(images=other, started_utc="2026-11-22T11:00:00.000Z").write(tmp_path / "b")
    assert run(str(first), str(second)) == NOT_TOLD
    error = capsys.readouterr().err
    assert error.startswith("inferswarm: a and b are not of one and the same thing: images.sha256 (cd34 here")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [("trt-*", "--cells 'trt-*': names no cell; there are onnx-http/b1/c1, onnx-grpc/b1/c1.")],
)
def test_a_cell_that_is_none_is_refused(
    study: Path, cells: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(study), "--cells", cells) == USAGE_ERROR
    assert capsys.readouterr().err == f"inferswarm: {sentence}\n"


def test_a_study_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(Book().write(tmp_path))) == USAGE_ERROR
    sentence = "--cells '*': names no cell; there are none that was begun."
    assert capsys.readouterr().err == f"inferswarm: {sentence}\n"


def test_a_directory_without_a_ledger_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path)) == USAGE_ERROR
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_refused(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none" / "calibration.md"
    assert run(str(study), "--out", str(out)) == USAGE_ERROR
    error = capsys.readouterr().err
    assert error == f"inferswarm: {out}: cannot be written (No such file or directory): name another --out.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--measure", "latency_p95"), "did you mean latency_p95_ms?"),
        (("--measure", "failure_ratio"), "is no column whose ratio can be gated"),
        (("--measure", "requests"), "is no column whose ratio can be gated"),
        (("--pairs", "2"), "give numbers from 3 to 1,000"),
        (("--pairs", "5,x"), "give numbers from 3 to 1,000"),
    ],
)
def test_wrong_options_end_with_2(
    arguments: tuple[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run("somewhere", *arguments)
    assert end.value.code == USAGE_ERROR
    assert sentence in capsys.readouterr().err
