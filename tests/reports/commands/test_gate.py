"""inferswarm gate: what it writes and prints, how it ends, and what it refuses."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports.__main__ import main
from reports.gates.verdict import kept_in
from reports.page.table import LONG
from reports.study.study import load_study
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.gates.outcomes import EVIL, FAILED, MADE, judged_place, study
from tests.reports.rendered import prose

PASSING = (
    '[[threshold]]\nrequire = "latency_p50_ms <= 100"\n[[threshold]]\nrequire = "failure_ratio <= 0.5"\n'
)
UNSURE = '[[threshold]]\nrequire = "latency_p99_ms <= 120"\n'
FILES = {"gates.json", "junit.xml", "gates.md"}
REPORT = {"study.json", "cells.csv", "timeline.csv", "summary.md", "report.html"}
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, in no job of GitHub Actions."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_study_with_every_outcome_fails_and_says_all(here: Path, capsys: Said) -> None:
    folder = judged_place(here / "a")
    assert main(["gate", "a"]) == 1
    assert names(folder) == {"ledger.jsonl", "thresholds.toml"} | FILES | REPORT
    kept = json.loads((folder / "gates.json").read_text())
    outcomes = [(it["require"], it["cell"], it["outcome"]) for it in kept["verdicts"]]
    assert ("latency_p50_ms <= 30", "onnx-http/b1/c1", "pass") in outcomes
    assert ("latency_p50_ms <= 30", "onnx-grpc/b1/c1", "fail") in outcomes
    assert ("latency_p99_ms <= 120", "onnx-http/b1/c1", "inconclusive") in outcomes
    said = capsys.readouterr().out
    assert "4 of 12 gates failed, 2 are inconclusive; 3 warnings." in " ".join(said.split())
    assert said.index("Gates that did not pass") < said.index("Gates that passed")
    assert said.endswith("Verdicts: a/gates.md, a/junit.xml\n")
    assert "Serial throughput" not in said
    suite = ElementTree.parse(folder / "junit.xml").getroot()[0]
    counts = {"tests": "15", "failures": "4", "errors": "2", "skipped": "3"}
    assert counts.items() <= suite.attrib.items()
    assert suite[0].attrib["file"] == "a/thresholds.toml"
    assert (folder / "gates.md").read_text().endswith("\n```\ninferswarm gate a\n```\n")


@pytest.mark.parametrize(("thresholds", "code"), [(PASSING, 0), (UNSURE, 3), (UNSURE + PASSING, 3)])
def test_the_exit_code(here: Path, thresholds: str, code: int) -> None:
    judged_place(here / "a", thresholds)
    assert main(["gate", "a", "--quiet"]) == code
    assert json.loads((here / "a" / "gates.json").read_text())["exit_code"] == code


def test_every_report_of_it_shows_the_verdicts_then(here: Path, capsys: Said) -> None:
    folder = judged_place(here / "a")
    assert main(["gate", "a", "--all"]) == 1
    said = capsys.readouterr().out
    assert said.index("Gates that passed") < said.index("Serial throughput")
    before = {name: (folder / name).read_bytes() for name in REPORT}
    assert main(["show", "a", "--quiet"]) == 0
    assert {name: (folder / name).read_bytes() for name in REPORT} == before
    summary = (folder / "summary.md").read_text()
    assert summary.index("4 of 12 gates failed") < summary.index("## Gates") < summary.index("## Results")
    assert summary.endswith("\ninferswarm report a\ninferswarm gate a\n```\n")
    kept = json.loads((folder / "study.json").read_text())["verdicts"]
    assert kept == [asdict(verdict) for verdict in kept_in(folder)]
    assert 'data-kind="gates"' in (folder / "report.html").read_text()


def test_a_study_without_gates_has_no_section_of_them(here: Path) -> None:
    folder = study().write(here / "a")
    assert main(["show", "a", "--quiet"]) == 0
    assert json.loads((folder / "study.json").read_text())["verdicts"] == []
    assert "ates" not in (folder / "summary.md").read_text().partition("## Results")[0]


def test_what_did_not_pass_is_never_folded(here: Path) -> None:
    loaded = load_study(study().write(here / "a"))
    page = build_page(loaded, "a", verdicts=[FAILED] * (LONG + 1) + [MADE] * (LONG + 1))
    gates = page.sections[0]
    assert (gates.heading, gates.brief) == ("Gates", True)
    assert [(len(table.rows), table.folded) for table in gates.tables] == [(9, False), (9, True)]


def test_actions_is_told_where_the_thresholds_that_people_edit_stand(
    here: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    (here / "ci").mkdir()
    (here / "ci" / "gates.toml").write_text(UNSURE)
    book = study()
    book.header["options"]["gate"] = "ci/gates.toml"
    folder = judged_place(here / "results" / "a", UNSURE, book)
    assert main(["gate", "results/a", "--quiet"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(
        line.startswith("::warning file=ci/gates.toml,line=1,title=inconclusive%3A ") for line in lines
    )
    assert (here / "summary.md").read_text() == (folder / "gates.md").read_text()
    (here / "ci" / "gates.toml").write_text("# changed since\n" + UNSURE)
    assert main(["gate", "results/a"]) == 3
    said = capsys.readouterr().out
    assert said.startswith("::stop-commands::")
    assert "::warning file=results/a/thresholds.toml,line=1," in said


def lacking(here: Path) -> list[str]:
    study().write(here / "a")
    return ["gate", "a"]


def misspelt(here: Path) -> list[str]:
    judged_place(here / "a", PASSING + 'endpoint = "onnx-htpt"\n')
    return ["gate", "a"]


def without_a_baseline(here: Path) -> list[str]:
    judged_place(here / "a", '[[threshold]]\nrequire = "latency_p95_ms / baseline <= 1"\n')
    return ["gate", "a"]


def no_study(here: Path) -> list[str]:
    (here / "thresholds.toml").write_text(PASSING)
    return ["gate", "nowhere"]


def several(here: Path) -> list[str]:
    return ["gate", *(str(judged_place(here / name, PASSING)) for name in "ab")]


def unwritable(here: Path) -> list[str]:
    judged_place(here / "a", PASSING)
    (here / "out").write_text("a file")
    return ["gate", "a", "--out", "out"]


def damaged(here: Path) -> list[str]:
    (study().write(here / "a") / "gates.json").write_text('{"verdicts": [{"outcome": "fine"}]}')
    return ["show", "a"]


@pytest.mark.parametrize(
    ("arrange", "sentence"),
    [
        (lacking, "inferswarm: thresholds.toml: cannot be read (No such file or directory)"),
        (misspelt, "a/thresholds.toml: threshold 2: endpoint 'onnx-htpt': the study has none"),
        (without_a_baseline, "a threshold is to a baseline, and none is named: give --baseline."),
        (no_study, "inferswarm: nowhere"),
        (several, "--out: name where the verdicts go, since several directories are judged as one."),
        (unwritable, "inferswarm: out: cannot be written (File exists): fix that, or give --out."),
        (damaged, "a/gates.json: is not what gates leave (threshold is None): remove it, or judge"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    here: Path, capsys: Said, arrange: Callable[[Path], list[str]], sentence: str
) -> None:
    assert main(arrange(here)) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert (told.err.count("\n"), told.out) == (1, "")
    assert not [path for path in here.rglob("*") if path.name in ("junit.xml", "gates.md")]


def test_text_from_outside_shows_as_text(here: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    book = Book(title=EVIL, study=EVIL)
    for repeat in range(1, 4):
        book.add("onnx-http", 1, 1, {"w0": [20_000_000] * 300}, repeat=repeat, axes={"variant": EVIL})
    book.footer()
    named = f'[[threshold]]\nrequire = "latency_p50_ms <= 10"\nname = {json.dumps(EVIL)}\n'
    folder = judged_place(here / "<b>a|x", named, book)
    main(["gate", str(folder)])
    said = capsys.readouterr().out
    html, summary, gates, junit = (
        (folder / name).read_text() for name in ("report.html", "summary.md", "gates.md", "junit.xml")
    )
    outside_code = prose(summary) + prose(gates)
    assert "<script>alert" not in html + outside_code + junit
    assert not {"\x1b", "\x00"} & set(said + html + summary + gates + junit)
    assert len(list(ElementTree.fromstring(junit).iter("testcase"))) == 2
    token = said.partition("\n")[0].removeprefix("::stop-commands::")
    told = said.partition(f"\n::{token}::\n")[2].splitlines()
    assert [line.partition(" ")[0] for line in told] == ["::error"]
