"""Baselines: a file says what its directory says, and what is none is refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.gates.baseline import baseline_text, load_baseline
from reports.gates.judge import judge
from reports.gates.require import GateError
from reports.gates.thresholds import parse_gates
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.gates.book import a_book, a_study, at_other_times, require, source

TEXT = require("latency_p95_ms / baseline <= 1")


def kept(folder: Path, *books: Book) -> Path:
    paths = [book.write(folder / f"then{at}") for at, book in enumerate(books)]
    place = folder / "baseline.json"
    place.write_text(baseline_text([(path, load_study(path)) for path in paths]), encoding="utf-8")
    return place


def test_a_file_says_what_its_directories_say(tmp_path: Path) -> None:
    file = str(kept(tmp_path, *at_other_times(images={"count": 3})))
    then = [file], [str(tmp_path / f"then{at}") for at in range(3)]
    now = source(tmp_path / "now", a_study(11.5, images={"count": 3}))
    other = source(tmp_path / "other", a_study(11.5))
    for study, outcomes in ((now, {"pass", "fail"}), (other, {"inconclusive"})):
        by_file, by_directories = (
            judge(parse_gates(TEXT, "x"), study, load_baseline(places)) for places in then
        )
        assert by_file == by_directories
        assert {verdict.outcome for verdict in by_file if verdict.ratio} == outcomes


def test_a_file_is_small_and_holds_no_plan_and_may_hold_several_studies(tmp_path: Path) -> None:
    place = kept(tmp_path, a_study(), a_study())
    found = json.loads(place.read_text())
    assert [one["status"] for one in found["studies"]] == ["complete", "complete"]
    assert "plan" not in found["studies"][0]["header"]
    both = load_baseline([str(place)])
    assert len(both.sides) == 2
    assert [len(runs) for runs in both.runs.values()] == [10, 10]


def test_places_that_are_no_baseline_are_refused(tmp_path: Path) -> None:
    empty, binary = a_book(), tmp_path / "binary"
    empty.plan("onnx-http", 1, 1)
    cut = a_study()
    cut.records.pop()
    binary.write_bytes(b"\xff\x00")
    for place, said in (
        (tmp_path / "nowhere", "is neither a directory with a ledger.jsonl nor a file"),
        (tmp_path, "is neither a directory with a ledger.jsonl nor a file"),
        (tmp_path / ("x" * 300), "cannot be read (File name too long)"),
        (empty.write(tmp_path / "empty"), "has no run that was begun"),
        (binary, "is no baseline that this program reads"),
        (
            cut.write(tmp_path / "cut"),
            "cut: is unfinished, and what it would have measured is not known: name a",
        ),
        (kept(tmp_path, cut), "baseline.json: is unfinished, and what it would have measured is not known"),
    ):
        with pytest.raises(GateError) as error:
            load_baseline([str(place)])
        assert str(error.value).startswith("baseline ")
        assert said in str(error.value)


def hostile() -> list[Any]:
    whole = {
        "name": "x",
        "status": "complete",
        "header": {"study": "s", "title": "t", "size": "q"},
        "cells_csv": [],
    }
    base = {"kind": "inferswarm-baseline", "version": 1}
    changed = [
        whole | change
        for change in (
            {"header": None},
            {"header": []},
            {"header": whole["header"] | {"started_utc": 5}},  # type: ignore[operator]
            {"header": whole["header"] | {"started_utc": "x", "options": 5}},  # type: ignore[operator]
            {"cells_csv": None},
            {"cells_csv": [5]},
            {"cells_csv": ["a,b"]},
            {"cells_csv": [f'"{"x" * 200_000}"']},
        )
    ]
    return [
        *(None, 5, [], {}, "x", {"kind": "other", "version": 1, "studies": []}, base, base | {"version": 2}),
        *(base | {"studies": studies} for studies in (None, 5, "xy", [], [None], [5], {"a": 1})),
        *(base | {"studies": [one]} for one in (whole, {}, *changed)),
    ]


@pytest.mark.parametrize("found", hostile())
def test_files_that_are_damaged_are_refused_in_one_sentence(tmp_path: Path, found: Any) -> None:
    place = tmp_path / "x.json"
    place.write_text(json.dumps(found))
    with pytest.raises(GateError) as error:
        load_baseline([str(place)])
    assert str(error.value).startswith("baseline ")
    assert "\n" not in str(error.value)


def test_a_header_in_a_file_has_the_shape_of_a_ledgers(tmp_path: Path) -> None:
    place = kept(tmp_path, a_study())
    found = json.loads(place.read_text())
    found["studies"][0]["header"]["options"] = 5
    place.write_text(json.dumps(found))
    with pytest.raises(GateError, match="the header's options is not an object"):
        load_baseline([str(place)])


@pytest.mark.parametrize("text", ["", "NaN", "{", "[" * 100_000, '{"kind": 1e999}'])
def test_what_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    place = tmp_path / "x.json"
    place.write_text(text)
    with pytest.raises(GateError, match="is no baseline that this program reads"):
        load_baseline([str(place)])


def test_numbers_in_a_file_must_be_numbers(tmp_path: Path) -> None:
    place = kept(tmp_path, a_study())
    place.write_text(place.read_text().replace(",closed,1,", ",closed,nan,"))
    with pytest.raises(GateError, match="level is 'nan', which is no number"):
        load_baseline([str(place)])


def test_a_study_counts_once_however_it_is_named(tmp_path: Path) -> None:
    first, second, third = at_other_times()
    file = str(kept(tmp_path, first, second))
    places = [str(book.write(tmp_path / name)) for name, book in (("a", second), ("b", third))]
    assert [side.name for side in load_baseline([file, places[1]]).sides] == ["then0", "then1", "b"]
    for named, said in (
        ([file, file], f"{file}: is named twice, or holds the same study as {file}: name each once."),
        ([places[0], places[0]], f"{places[0]}: is named twice, or holds the same study as {places[0]}"),
        ([*places, file], f"{file}: is named twice, or holds the same study as {places[0]}: name each once."),
    ):
        with pytest.raises(GateError) as error:
            load_baseline(named)
        assert str(error.value).startswith(said)
