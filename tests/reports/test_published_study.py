"""What was published of one model stands beside figures of that model alone, and on nobody else's page."""

from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.published_figures.figures import of_three_backends, published_figures
from reports.published_study import SPACE, STUDIES
from reports.study.study import Study, load_study
from reports.topics.contention.conclusion import contention_tables
from reports.topics.published.hypotheses import judged
from reports.topics.published.step6b import of_growth
from reports.topics.servers.operators import operator_tables
from tests.reports.builder import Book
from tests.reports.contention_book import BY_CONNECTIONS, LINK, arms
from tests.reports.contention_book import a_study as contention
from tests.reports.example import MS
from tests.reports.strangers import GRPC, a_book, run, stranger
from tests.reports.topics.servers.test_operators import RECORD

THEIRS = ("published", "hypothes", "A100", "RTX", "H1")
"""Words of what the published studies found."""


def presets(study: str = "step7", **axes: Any) -> Book:
    """The three backends that there were, by a link that one of their studies modelled."""
    book = Book(study=study, links=[LINK])
    for name in ("pytorch-http", "onnx-http", "onnx-grpc"):
        book.endpoint(name, "127.0.0.1:8010")
        book.add(name, 1, 1, {"w0": [10 * MS] * 40}, axes={"link": "wan-a100", **axes})
    book.records.append(dict(RECORD))
    book.footer()
    return book


def strangers(study: str = "study", **planned: Any) -> Book:
    """HTTP against gRPC of somebody's model, JSON too, by the same link."""
    book = a_book(study=study, links=[LINK])
    for name, about in (("a", {}), ("b", GRPC), ("c", {"payload": "json"}), ("d", {"payload": "fp32"})):
        told = stranger(book, name, {"inputs": ["x FP32 [3, 384, 384] picture"]}, **{**about, **planned})
        (tag,) = run(book, name, told | {"link": "wan-a100", "client": "library"})
        book.phases(tag, encode=MS)
    book.records.append(dict(RECORD))
    book.footer()
    return book


def written(book: Book, folder: Path) -> Study:
    return load_study(book.write(folder))


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_older_ledgers_of_their_studies_are_theirs(study: str, tmp_path: Path) -> None:
    assert written(presets(study), tmp_path).of_published_study


def test_another_study_of_their_model_is_not_theirs(tmp_path: Path) -> None:
    study = written(presets("study"), tmp_path)
    assert not study.of_published_study
    assert (judged(study), published_figures(study)) == ((), {})


@pytest.mark.parametrize(
    ("space", "theirs"), [(SPACE, True), ("siglip", False), ("", False)], ids=["theirs", "another", "none"]
)
def test_what_is_asked_beside_presets_is_of_their_model(space: str, tmp_path: Path, *, theirs: bool) -> None:
    book = presets(space=SPACE)
    run(book, "mine", stranger(book, "mine", space=space))
    study = written(book, tmp_path)
    assert study.of_published_study is theirs
    assert bool(judged(study)) is theirs
    assert bool(published_figures(study)) is theirs


def test_what_computes_nothing_must_be_of_their_model_too(tmp_path: Path) -> None:
    book = presets(space=SPACE)
    run(book, "idle", stranger(book, "idle", {"computes": False}))
    assert not written(book, tmp_path).of_published_study


@pytest.mark.parametrize("study", ["study", "step6a", "step6b", "step7"])
def test_on_anybody_elses_page_stands_nothing_of_theirs(study: str, tmp_path: Path) -> None:
    place = strangers(study).write(tmp_path)
    assert main(["show", str(place), "--quiet"]) == 0
    page = (place / "summary.md").read_text(encoding="utf-8").replace(LINK["published"], "")
    assert "Encoding: JSON against binary" in page
    assert "Operators of the model" in page
    assert [word for word in THEIRS if word in page] == []
    told = load_study(place)
    assert (of_three_backends(told), of_growth(told)) == ({}, False)


def test_their_own_page_has_it_all(tmp_path: Path) -> None:
    place = presets().write(tmp_path)
    assert main(["show", str(place), "--quiet"]) == 0
    page = (place / "summary.md").read_text(encoding="utf-8")
    assert [word for word in THEIRS if word not in page] == []


@pytest.mark.parametrize(("study", "column"), [("step7_contention", True), ("mine", False)])
def test_arms_stand_beside_theirs_in_their_study_alone(study: str, tmp_path: Path, *, column: bool) -> None:
    (first, _) = contention_tables(written(arms(contention(study=study), BY_CONNECTIONS), tmp_path))
    assert ("published" in first.heads) is column


def test_operators_of_another_model_have_no_column_of_theirs(tmp_path: Path) -> None:
    of_any = list(operator_tables(written(strangers(), tmp_path / "a")))
    theirs = list(operator_tables(written(presets(), tmp_path / "b")))
    assert [table.heads[-1] for table in of_any] == ["share %", "ours", "highest"]
    assert [(*table.heads, theirs[at].heads[-1]) for at, table in enumerate(of_any)] == [
        table.heads for table in theirs
    ]
    assert [row[0].text for row in of_any[0].rows] == ["MatMul", "Concat", "3 other types"]
    assert all(len(row) == len(table.heads) for table in of_any for row in table.rows)
    assert [note for table in of_any for note in table.notes if "published" in note] == []
