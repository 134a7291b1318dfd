import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from reports.__main__ import main
from reports.cells_csv.columns import COLUMNS
from reports.render.console import public_path, render_console
from reports.study.study import load_study
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.check import check_golden, without_scripts, without_style
from tests.reports.example import MS, example
from tests.reports.rates_example import rates_example
from tests.reports.rendered import prose

FILES = ("study.json", "cells.csv", "timeline.csv", "summary.md", "report.html")
EVIL = "<script>alert(1)</script>|`x`\n# h\x1b[31m[red]"


def evil_study() -> Book:
    book = Book(title=EVIL, fingerprint={EVIL: EVIL}, options={"command": EVIL})
    book.endpoint("onnx-http", EVIL, weights=EVIL, model=EVIL)
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, failures={EVIL: 1}, status="failed", note=EVIL)
    book.caveat(tag, EVIL, EVIL)
    book.footer("failed", EVIL)
    return book


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = example().write(tmp_path_factory.mktemp("results") / "step7-example")
    assert main(["show", str(folder), "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("name", FILES)
def test_files_are_golden(shown: Path, name: str) -> None:
    check_golden(name, without_style(without_scripts((shown / name).read_text(encoding="utf-8"))))


@pytest.fixture(scope="module")
def shown_rates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = rates_example().write(tmp_path_factory.mktemp("results") / "rates-example")
    assert main(["show", str(folder), "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("name", ["cells.csv", "timeline.csv", "summary.md"])
def test_files_of_open_load_are_golden(shown_rates: Path, name: str) -> None:
    check_golden(f"rates-{name}", (shown_rates / name).read_text(encoding="utf-8"))


def console_text(folder: Path, width: int) -> str:
    out = io.StringIO()
    page = build_page(load_study(folder), f"results/{folder.name}")
    render_console(page, Console(file=out, width=width, highlight=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_the_console_is_golden(shown: Path, shown_rates: Path) -> None:
    check_golden("console.txt", console_text(shown, 100))
    check_golden("rates-console.txt", console_text(shown_rates, 100))


def test_a_narrow_console_folds_and_cuts_nothing(shown_rates: Path) -> None:
    text = console_text(shown_rates, 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_cells_csv_has_the_agreed_columns_and_leaves_the_unknown_empty(shown: Path) -> None:
    rows = list(csv.DictReader((shown / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert (len(rows), tuple(rows[0])) == (36, COLUMNS)
    assert COLUMNS[56:61] == ("stand_in", "model", "codec", "server", "space")
    assert COLUMNS[61:65] == ("connect_ms", "connects_per_request", "network_most_ms", "users_busy")
    assert COLUMNS[65:67] == ("stream_wait_ms", "flow_wait_ms")
    assert COLUMNS[-4:] == ("slo", "goodput_share", "goodput_per_s", "cache_hit_share")
    first = rows[0]
    assert (first["study"], first["cell"], first["repeat"]) == ("step7", "pytorch-http/b1/c1", "1")
    assert (first["requests"], first["link"], first["gpu_power_w"], first["limit"]) == (
        *("40", "", ""),
        "offered-load",
    )
    assert float(first["images_per_s"]) == pytest.approx(40 / float(first["measure_s"]), rel=1e-5)
    assert first["caveats"] == "few-samples"


def test_showing_again_changes_nothing_and_leaves_nothing_behind(shown: Path) -> None:
    before = {name: (shown / name).read_bytes() for name in FILES}
    assert main(["show", str(shown), "--quiet"]) == 0
    assert {name: (shown / name).read_bytes() for name in FILES} == before
    assert sorted(path.name for path in shown.iterdir()) == sorted([*FILES, "ledger.jsonl"])


def test_the_page_asks_for_nothing_from_outside(shown: Path) -> None:
    page = without_scripts((shown / "report.html").read_text(encoding="utf-8"))
    words = ("http://", "https://", "src=", 'href="/', "@import", "url(")
    assert not [word for word in words if word in page]


def test_text_from_outside_shows_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = evil_study().write(tmp_path)
    assert main(["show", str(folder)]) == 0
    page, summary = ((folder / name).read_text(encoding="utf-8") for name in ("report.html", "summary.md"))
    assert "<script>alert" not in page
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;|`x` # h\x1b[31m[red]" in page
    outside_code = prose(summary)
    assert "<script" not in outside_code
    assert "\n# h" not in outside_code
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;\|\`x\` \# h\\x1b\[31m\[red\]" in summary
    assert "\x1b" not in capsys.readouterr().out + page + summary


def empty() -> Book:
    return Book()


def only_planned() -> Book:
    book = Book()
    book.plan("onnx-http", 1, 1)
    return book


def aborted() -> Book:
    book = only_planned()
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 5}, status="aborted")
    book.footer("interrupted", "Ctrl-C")
    return book


def all_failures() -> Book:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": []}, failures={"timeout": 9})
    book.footer()
    return book


@pytest.mark.parametrize(
    ("book", "sentence"),
    [
        (empty(), "The ledger has no footer: the study is still running, or it crashed."),
        (only_planned(), "Not started: 1 of 1 planned run."),
        (aborted(), "The study ended as interrupted: Ctrl-C."),
        (all_failures(), "No request succeeded, so nothing can be said about speed."),
    ],
)
def test_poor_studies_are_shown_too(tmp_path: Path, book: Book, sentence: str) -> None:
    folder = book.write(tmp_path)
    assert main(["show", str(folder), "--quiet"]) == 0
    assert sentence in (folder / "summary.md").read_text(encoding="utf-8")
    assert all((folder / name).stat().st_size for name in FILES)


def test_a_cut_ledger_is_shown_and_said(tmp_path: Path) -> None:
    folder = aborted().write(tmp_path)
    with (folder / "ledger.jsonl").open("a") as ledger:
        ledger.write('{"kind":"wind')
    assert main(["show", str(folder), "--quiet"]) == 0
    assert json.loads((folder / "study.json").read_text())["cut_line"] is True
    assert "last line is cut off" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_directory_without_a_ledger_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("inferswarm: ")
    assert error.endswith("name a directory that a study wrote.\n")
    assert error.count("\n") == 1


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = aborted().write(tmp_path)
    (folder / "cells.csv").mkdir()
    assert main(["show", str(folder)]) == 2
    sentence = f"inferswarm: {folder}: cannot be written (Is a directory): fix that, and try again.\n"
    assert capsys.readouterr().err == sentence
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("directory", "here", "path"),
    [
        ("results/a", "/home/me/swarm", "results/a"),
        ("./results/a/", "/home/me/swarm", "results/a"),
        ("/home/me/swarm/out/a", "/home/me/swarm", "out/a"),
        ("../elsewhere/a", "/home/me/swarm", "DIR/a"),
        ("/mnt/disk/a", "/home/me/swarm", "DIR/a"),
        (".", "/home/me/swarm/results/a", "DIR/a"),
        ("a", "/home/me/swarm/results", "a"),
    ],
)
def test_the_command_names_the_directory_and_nothing_above_it(directory: str, here: str, path: str) -> None:
    assert public_path(Path(directory), Path(here)) == path


def test_the_command_in_the_summary_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aborted().write(tmp_path / "my runs" / "a")
    monkeypatch.chdir(tmp_path)
    assert main(["show", "my runs/a", "--quiet"]) == 0
    summary = (tmp_path / "my runs" / "a" / "summary.md").read_text(encoding="utf-8")
    assert summary.endswith("\ninferswarm report 'my runs/a'\n```\n")


@pytest.mark.system
def test_a_reader_who_leaves_early_is_no_failure(shown: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "reports", "show", str(shown)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_console_says_once_what_tables_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(example().write(tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Percentiles are of all requests of up to 2 repeats") == 1
    assert said.count("Random weights") == 1


@pytest.mark.parametrize(("price", "shown"), [("36", "1000.0"), ("0", "")])
def test_a_price_that_is_named_is_that_of_the_servers(tmp_path: Path, price: str, shown: str) -> None:
    book = Book(options={"usd_per_hour": 7.2})
    book.add("onnx-http", 1, 1, {"w0": [100 * MS] * 40})
    folder = book.write(tmp_path)
    for options, told in (([], "5000.0"), (["--usd-per-hour", price], shown)):
        assert main(["show", str(folder), "--quiet", *options]) == 0
        (row,) = csv.DictReader((folder / "cells.csv").read_text(encoding="utf-8").splitlines())
        assert row["images_per_usd"] == told


@pytest.mark.parametrize(
    "arguments",
    [[], ["show"], ["shew", "x"], ["show", "x", "--loud"]]
    + [["show", "x", "--usd-per-hour", price] for price in ("-1", "nan", "inf", "cheap")],
)
def test_a_wrong_command_line_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2


@pytest.mark.system
def test_the_program_runs_where_the_locale_is_ascii_and_reports_need_no_locust(shown: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    code = (
        "import runpy, sys\n"
        "class Barred:\n"
        "    def find_spec(self, name, *_):\n"
        "        assert name not in ('locust', 'gevent', 'torch'), name\n"
        "sys.meta_path.insert(0, Barred())\n"
        "sys.argv[0] = 'reports'; runpy.run_module('reports', run_name='__main__')"
    )
    command = [sys.executable, "-c", code, "show", str(shown)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Serial throughput" in done.stdout
    assert "\x1b" not in done.stdout
