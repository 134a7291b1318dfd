"""The report is all the questions there are: one more is one file, which every format then shows."""

import io
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from reports import topics
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.render.console import render_console
from reports.render.html import render_html
from reports.render.markdown import render_markdown
from reports.study.study import Study, load_study
from reports.topics import report
from reports.topics.report import SECTIONS, answers, build_page, questions
from tests.reports.builder import Book
from tests.reports.example import MS

TOY = '''"""Which run was the last?"""

from reports.page.answer import AnswerRow
from reports.page.page import Chart
from reports.page.question import Question
from reports.page.table import Table, table_of
from reports.study.study import Study


def last_run(study: Study) -> str:
    return study.started[-1].cell


def tables(study: Study) -> list[Table]:
    rows = [(last_run(study), len(study.runs))]
    return [table_of("The last run", ("cell", "of"), rows), table_of("What is empty", ("cell",), [])]


def chart(study: Study) -> Chart:
    return Chart("All runs", "A toy.", "curves", {"panels": [], "series": []})


def finding(study: Study) -> AnswerRow:
    return AnswerRow("Last run", f"The last run was {last_run(study)}.")


def applies(study: Study) -> bool:
    return study.header["study"] == "step9"


QUESTION = Question("last-run", "The end", (tables, chart), finding, applies=applies)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file in the folder of questions; no other one is touched."""
    folder = tmp_path / "topics"
    folder.mkdir()
    (folder / "toy.py").write_text(TOY)
    monkeypatch.setattr(topics, "__path__", [*topics.__path__, str(folder)])
    questions.cache_clear()
    yield
    questions.cache_clear()
    sys.modules.pop("reports.topics.toy")


def study_of(name: str, folder: Path) -> Study:
    book = Book(study=name)
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add("onnx-http", 1, 1, {"w0": [20 * MS] * 40})
    book.footer()
    return load_study(book.write(folder / name))


@pytest.mark.usefixtures("toy")
def test_a_new_question_is_one_file_that_every_format_shows(tmp_path: Path) -> None:
    page, out = build_page(study_of("step9", tmp_path), "DIR"), io.StringIO()
    render_console(page, Console(file=out, width=120))
    shown = {"html": render_html(page), "markdown": render_markdown(page), "console": out.getvalue()}
    for text in shown.values():
        assert "The last run was onnx-http/b1/c1." in text
        assert "The last run" in text
        assert "What is empty" not in text
    assert "| onnx-http/b1/c1 | 1 |" in shown["markdown"]
    section = page.sections[-1]
    assert (section.heading, [chart.title for chart in section.charts]) == ("The end", ["All runs"])
    assert AnswerRow("Last run", "The last run was onnx-http/b1/c1.") in page.answers


@pytest.mark.usefixtures("toy")
def test_a_question_is_asked_only_of_studies_it_applies_to(tmp_path: Path) -> None:
    page = build_page(study_of("step7", tmp_path), "DIR")
    assert "The end" not in [section.heading for section in page.sections]
    assert not [answer for answer in page.answers if answer.question == "Last run"]


def test_every_question_has_a_name_and_a_known_place_of_its_own() -> None:
    every = questions()
    assert len(every) > 25
    assert max(Counter(it.name for it in every).values()) == 1
    assert max(Counter((it.section, it.place) for it in every if it.section).values()) == 1
    assert {it.section for it in every} - {""} == {section.heading for section in SECTIONS}
    assert {name for it in every for name in it.unless} <= {it.name for it in every}


def test_answers_come_by_theme_without_the_needless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(name: str, theme: Theme, finding: str, *unless: str) -> Question:
        made = AnswerRow(name, finding) if finding else None
        return Question(name, "", (), lambda _: made, theme, unless)

    made = (
        asked("backends", Theme.PROTOCOLS, "Backends.", "cause", "protocols"),
        asked("protocols", Theme.PROTOCOLS, "Protocols.", "cause"),
        asked("rate", Theme.SPEED, "Rate."),
        asked("fastest", Theme.SPEED, "Fastest."),
        asked("cause", Theme.CAUSE, ""),
    )
    study = study_of("step7", tmp_path)
    monkeypatch.setattr(report, "questions", lambda: made)
    assert [answer.said for answer in answers(study)] == ["Rate.", "Fastest.", "Protocols."]
    known = (*made[:-1], asked("cause", Theme.CAUSE, "Cause."))
    monkeypatch.setattr(report, "questions", lambda: known)
    assert [answer.said for answer in answers(study)] == ["Cause.", "Rate.", "Fastest."]
