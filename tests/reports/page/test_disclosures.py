"""What was guessed of endpoints, what their servers fetch, and whose server is silent: each said once."""

from pathlib import Path
from typing import Any

import pytest

from reports import load
from reports.caveat import caveat
from reports.page.disclosures import RANDOM_WEIGHTS, disclosures, guessed, silent_said
from reports.study.study import Study, load_study
from reports.summary.summary import Summary
from reports.topics.answer.bottleneck import bottlenecks
from reports.topics.report import build_page
from reports.topics.servers.breakdown import NO_SERVER, where_the_time_goes
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, phase_line, readings, sample_line
from tests.reports.open_load import notes_at
from tests.reports.strangers import MS, a_book, run, stranger

PREPARED = "Pixels are prepared as for clip, by default: --prepare says how."
BATCH = "The first dimension is taken for the batch: --shape says how."


def written(book: Book, folder: Path) -> Study:
    return load_study(book.write(folder))


def of(**endpoints: dict[str, Any]) -> Book:
    """Two repeats of each endpoint, of which the header tells this."""
    book = a_book()
    for name, about in endpoints.items():
        run(book, name, stranger(book, name, about), ms=(10.0, 10.0))
    return book


def test_a_guess_is_named_once_behind_the_names_of_its_endpoints(tmp_path: Path) -> None:
    study = written(of(a={"guesses": [PREPARED, BATCH]}, b={"guesses": [PREPARED]}, c={}), tmp_path)
    told = [f"a, b: {PREPARED}", f"a: {BATCH}"]
    assert list(guessed(study)) == told
    assert build_page(study, "x").notices[-2:] == tuple(told)
    assert [text for text in load(tmp_path).notices if text in told] == told


def test_of_floors_and_of_what_was_not_asked_no_guess_is_named(tmp_path: Path) -> None:
    book = of(a={"guesses": [PREPARED]})
    stranger(book, "b", {"guesses": [BATCH]})
    stranger(book, "a-floor", {"guesses": [PREPARED], "floor_of": "a"})
    run(book, "a-floor", {"backend": "null", "protocol": "http", "payload": "fp16"})
    assert list(guessed(written(book, tmp_path))) == [f"a: {PREPARED}"]


def test_a_server_that_fetches_the_pictures_is_named_wherever_its_figures_stand(tmp_path: Path) -> None:
    study = written(of(far={"fetched_by_server": True}, near={}), tmp_path)
    said = "far: its server fetches the pictures itself, so its times have a download in them."
    assert disclosures(study, ["near"]) == ()
    assert disclosures(study, ["near", "far"]) == (said,)
    assert said in build_page(study, "x").banner


def test_weights_are_random_only_where_a_server_says_so(tmp_path: Path) -> None:
    study = written(of(a={}, b={"weights": "random (seed 0)"}), tmp_path)
    assert disclosures(study, ["a"]) == ()
    assert disclosures(study, ["b"]) == (RANDOM_WEIGHTS,)


# Inputs of which nobody knows what they are to hold


def test_what_is_sent_at_random_is_said_of_each_run_and_disqualifies_none(tmp_path: Path) -> None:
    inputs = ["pixels FP32 [3, 224, 224] picture", "scale FP32 [1] random", "random FP32 [2] ids"]
    first, again, *others = written(of(a={"inputs": inputs}, b={"inputs": inputs[:1]}), tmp_path).runs
    assert [found(run) for run in (first, again)] == [["what it is sent as scale is random"]] * 2
    assert [found(run) for run in others] == [[], []]
    assert not first.tainted
    assert caveat("random-input", "").advice.endswith("the load is real, the embeddings mean nothing.")


def found(run: Summary) -> list[str]:
    return [one.text for one in run.caveats if one.code == "random-input"]


def test_a_floor_has_no_embeddings_that_could_mean_anything(tmp_path: Path) -> None:
    book = of(a={})
    stranger(book, "a-floor", {"inputs": ["scale FP32 [1] random"], "floor_of": "a"})
    run(book, "a-floor", {"backend": "null", "protocol": "http", "payload": "fp16"})
    assert found(written(book, tmp_path).runs[-1]) == []


# Servers that state no times


def asked(book: Book, tag: Record, counters: Record, sampled: Record | None = None) -> None:
    """Its server's counters before and after, and each second of the measure phase."""
    book.records += readings(tag, counters)
    server = {name: 1_000 + value for name, value in counters.items()}
    book.records += [
        phase_line(tag, "measure", "2026-11-21T11:00:00Z"),
        phase_line(tag, "drain", "2026-11-21T11:00:02Z"),
        *(sample_line(tag, FIRST_SECOND + at, **(sampled or {"server": server})) for at in (0, 1)),
    ]


def silent(*names: str) -> Book:
    """Endpoints whose servers answer and tell nothing, two repeats each."""
    book = of(**{name: {} for name in names})
    for record in [record for record in book.records if record.get("event") == "start"]:
        asked(book, {key: record[key] for key in ("cell", "repeat")}, {})
    return book


def test_a_silent_server_is_said_once_and_doubts_no_run(tmp_path: Path) -> None:
    study = written(silent("old", "new"), tmp_path)
    said = (
        "old and new state no times of their own: the queue and the compute time of each are unknown, "
        "and are part of unexplained."
    )
    assert silent_said(study) == [said]
    assert {one.code for run in study.runs for one in run.caveats} == {"few-samples"}
    assert said in build_page(study, "x").banner
    assert NO_SERVER not in where_the_time_goes(study).notes
    assert said in load(tmp_path).notices
    assert [run.limit.evidence for run in study.runs if run.limit] == [
        "neither client nor path is seen to limit it"
    ] * 4
    (row,) = bottlenecks(study).rows
    assert row[-1].text.startswith(
        "The server states no times of its own: where its answers or metrics do, say so in"
    )


def test_counts_alone_are_no_times(tmp_path: Path) -> None:
    book = of(mine={})
    for repeat in (1, 2):
        asked(book, {"cell": "mine/b1/c1", "repeat": repeat}, {"requests": 40, "images": 40})
    study = written(book, tmp_path)
    assert silent_said(study) == [
        "mine states no times of its own: its queue and its compute time are unknown, "
        "and are part of unexplained."
    ]
    assert [run.server.requests for run in study.runs] == [40, 40]


@pytest.mark.parametrize(
    ("counters", "timed"),
    [({"requests": 40, "successes": 40, "compute_ns": 40 * MS}, False), ({}, True)],
    ids=["by counters", "with answers"],
)
def test_a_server_that_states_times_is_not_silent(counters: Record, tmp_path: Path, *, timed: bool) -> None:
    book = of(mine={})
    for repeat in (1, 2):
        tag = {"cell": "mine/b1/c1", "repeat": repeat}
        asked(book, tag, counters)
        if timed:
            book.server_timing(tag, compute=MS)
    study = written(book, tmp_path)
    assert silent_said(study) == []
    assert [run.server.compute_ns for run in study.runs] == [MS, MS]


def test_one_that_could_not_be_read_keeps_its_caveat(tmp_path: Path) -> None:
    book = of(mine={})
    for repeat in (1, 2):
        tag = {"cell": "mine/b1/c1", "repeat": repeat}
        asked(book, tag, {}, {"missing": ["server: timeout"]})
        (before,) = [one for one in book.of(tag) if one.get("when") == "before"]
        before.pop("counters")
        before["error"] = "the counters of mine cannot be read (timeout)"
    study = written(book, tmp_path)
    assert silent_said(study) == []
    texts = [[one.text for one in run.caveats if one.code == "probe-gap"] for run in study.runs]
    gap = "2 of 2 seconds without a server reading (timeout)"
    assert texts == [["the counters of mine cannot be read (timeout)", gap]] * 2
    table = where_the_time_goes(study)
    assert NO_SERVER in notes_at(table, 0, len(table.heads) - 1)
