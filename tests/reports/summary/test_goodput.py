"""Good requests and classes of a run, from its ledger to cells.csv, classes.csv and timeline.csv."""

import csv
import io
from contextlib import nullcontext
from pathlib import Path

import pytest

from reports.cells_csv.columns import render_classes, render_csv, render_timeline
from reports.fold.windows import Arrivals, Results
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study
from reports.summary.classes import asked_shares, in_order
from reports.summary.goodput import Goodput, goodput_of, share_said
from tests.reports.builder import Book
from tests.reports.mixed_book import MIX, MS, a_mix, mixed_second
from tests.reports.open_load import at_rate

SLO = {"slo": "p90<=50"}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def mixed(folder: Path, **more: object) -> Path:
    """Ten seconds: in each 8 of batch 1, of which one is slow and one fails, and 2 of batch 16, one slow."""
    book = Book(options=SLO)
    second = {1: [10.0] * 6 + [60.0], 16: [40.0, 90.0]}
    a_mix(book, [mixed_second({}, at, second, 50, failed=1) for at in range(10)], **more)
    return book.write(folder)


@pytest.mark.parametrize(
    ("more", "due", "share"),
    [({}, 100, "0.7"), ({"arrivals": "constant", "dropped": 40}, 140, "0.5")],
)
def test_failures_and_dropped_arrivals_are_due_and_not_good(
    more: dict[str, object], due: int, share: str, tmp_path: Path
) -> None:
    study = load_study(mixed(tmp_path, **more))
    (run,) = study.runs
    assert run.goodput == Goodput(slo="p90<=50", objective=0.9, good=70, due=due, per_s=pytest.approx(7.0))
    assert run.goodput.is_met is False
    (row,) = rows(render_csv(study))
    assert (row["slo"], row["goodput_share"], row["goodput_per_s"]) == ("p90<=50", share, "7.0")
    assert [second["goodput_per_s"] for second in rows(render_timeline(study))] == ["7"] * 10


def test_a_class_has_its_own_row(tmp_path: Path) -> None:
    study = load_study(mixed(tmp_path))
    first, second = rows(render_classes(study))
    told = ("class", "requests", "failures", "images", "share", "asked", "goodput_share")
    assert [first[name] for name in told] == ["b1", "80", "10", "70", "0.8", "0.8", "0.75"]
    assert [second[name] for name in told] == ["b16", "20", "0", "320", "0.2", "0.2", "0.5"]
    assert float(second["latency_p50_ms"]) == pytest.approx(40, rel=1e-3)
    assert float(first["latency_p90_ms"]) == pytest.approx(60, rel=1e-3)
    assert second["latency_p90_ms"] == ""
    assert (study.runs[0].counts.images, study.runs[0].latency.p50_ns) == (
        390,
        pytest.approx(10 * MS, rel=1e-3),
    )


def test_without_an_objective_or_classes_nothing_is_told(tmp_path: Path) -> None:
    book = Book()
    at_rate(book, 10, 30)
    study = load_study(book.write(tmp_path))
    (row,) = rows(render_csv(study))
    assert (row["slo"], row["goodput_share"], row["goodput_per_s"], render_classes(study)) == ("", "", "", "")
    assert {second["goodput_per_s"] for second in rows(render_timeline(study))} == {""}


def test_of_a_ledger_that_does_not_count_them_the_share_is_unknown(tmp_path: Path) -> None:
    book = Book(options=SLO)
    at_rate(book, 10, 30)
    assert load_study(book.write(tmp_path)).runs[0].goodput == Goodput(slo="p90<=50", objective=0.9)


def test_a_second_without_an_answer_has_no_good_request(tmp_path: Path) -> None:
    book = Book(options=SLO)
    seconds = [mixed_second({}, at, {1: [10.0]} if at != 1 else {1: []}, 50) for at in range(3)]
    a_mix(book, seconds)
    assert [one.goodput_per_s for one in load_study(book.write(tmp_path)).timeline] == [1, 0, 1]


@pytest.mark.parametrize(
    ("batches", "told", "why"),
    [
        ({17: [40.0] * 2}, True, "has 3 successes of batch up to 16, and 50 images"),
        ({0: [40.0] * 20}, True, "has 21 successes of batch up to 16, and 16 images"),
        ({1: [40.0] * 2}, False, "has 3 requests, and its classes have 1"),
        ({1: [40.0] * 2}, True, ""),
    ],
)
def test_a_mix_has_as_many_images_as_its_batches_allow_and_all_requests_in_classes(
    batches: dict[int, list[float]], told: bool, why: str, tmp_path: Path
) -> None:
    seconds = [mixed_second({}, 0, {16: [40.0]}), mixed_second({}, 1, batches)]
    if not told:
        del seconds[1]["classes"]
    book = Book()
    a_mix(book, seconds)
    book.write(tmp_path)
    with pytest.raises(LedgerError, match=why) if why else nullcontext():
        load_study(tmp_path)


def test_asked_shares_are_those_of_labels() -> None:
    assert asked_shares(MIX, "") == {"b1": 0.8, "b16": 0.2}
    assert asked_shares("", "640:0.5,large:0.5") == {"640px": 0.5, "large": 0.5}
    assert asked_shares(MIX, "640:0.25,large:0.75") == pytest.approx(
        {"b1/640px": 0.2, "b1/large": 0.6, "b16/640px": 0.05, "b16/large": 0.15}
    )
    assert asked_shares("", "") == {}
    assert in_order(["b16", "b2/9px", "b2", "b2/10px"]) == ["b2", "b2/9px", "b2/10px", "b16"]


@pytest.mark.parametrize(
    ("share", "said"), [(1, "100 %"), (0.99999, "99.99 %"), (0.9, "90 %"), (0.98996, "98.99 %"), (0, "0 %")]
)
def test_no_share_is_said_to_be_more_than_it_is(share: float, said: str) -> None:
    assert share_said(share) == said


def test_where_nothing_was_sent_of_what_was_due_none_is_good() -> None:
    found = goodput_of("p90<=50", "open", Results(), Arrivals(due=40, dropped=40), 10e9)
    assert found == Goodput(slo="p90<=50", objective=0.9, good=0, due=40, per_s=0.0)


def test_an_objective_is_met_by_exactly_its_share() -> None:
    met = [Goodput(objective=0.99, good=good, due=1_000).is_met for good in (989, 990, 991)]
    assert met == [False, True, True]
    assert Goodput(objective=0.99, good=0, due=0).is_met is None
