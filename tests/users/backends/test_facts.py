"""Facts of backends in a ledger, and ledgers of version 1, whose headers say nothing of them."""

from dataclasses import asdict, fields
from pathlib import Path

import pytest

from reports import version_1
from reports.__main__ import main
from reports.backend_facts import BackendFacts, facts_of
from reports.ledger.ledger import READABLE, VERSION
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.example import example
from users.backends.base import Facts
from users.backends.registry import FLOOR, backends

FACTS = {name: backend.facts for name, backend in backends().items()} | {"null": FLOOR}
SHOWN = ("study.json", "cells.csv", "timeline.csv", "summary.md", "report.html")


def with_facts(book: Book) -> Book:
    """The same as a study writes it now."""
    book.header["version"] = VERSION
    book.header["backends"] = {name: asdict(facts) for name, facts in FACTS.items()}
    return book


def test_the_last_version_and_the_one_before_are_read() -> None:
    assert (READABLE, VERSION) == ((1, 2), 2)


def test_the_report_of_an_old_ledger_is_that_of_a_new_one_to_the_byte(tmp_path: Path) -> None:
    old = example().write(tmp_path / "old/step7-x")
    new = with_facts(example()).write(tmp_path / "new/step7-x")
    for folder in (old, new):
        assert main(["show", str(folder), "--quiet"]) == 0
    assert load_study(old).header.get("backends") is None
    assert load_study(old).stand_ins == load_study(new).stand_ins != {}
    for name in SHOWN:
        assert (old / name).read_bytes() == (new / name).read_bytes(), name


def test_the_table_is_closed_and_as_its_backends_were() -> None:
    """Whoever changes a backend's facts leaves the table as it is, and takes it out of this test."""
    assert version_1.BACKENDS.keys() == {"null", "emulated", "openvino", "trt", "gateway"}
    for name, facts in FACTS.items():
        was = facts_of({}, name)
        now = facts_of({"backends": {name: asdict(facts)}}, name)
        # That emulated stands for onnx was not in reports.
        assert {**vars(was), "stands_for": ""} == {**vars(now), "stands_for": ""}, name
        assert (was.stands_for or now.stands_for) == now.stands_for


def test_what_a_backend_says_of_itself_is_what_a_report_reads() -> None:
    said, read = ([(one.name, one.default) for one in fields(of)] for of in (Facts, BackendFacts))
    assert said == read


@pytest.mark.parametrize("told", [None, {}, {"mine": {}}, {"mine": {"colour": "red"}}])
def test_a_backend_of_which_nothing_is_said_computes_under_its_own_name(told: object) -> None:
    assert facts_of({"backends": told}, "mine") == BackendFacts()


def test_a_stand_in_without_a_sentence_of_its_own_has_one() -> None:
    facts = facts_of({"backends": {"mine": {"stands_for": "theirs"}}}, "mine")
    assert facts.stand_in == "Stands in for theirs."
