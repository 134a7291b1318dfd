"""Loads beside each other against each alone: the matrix, its verdicts, and the first screen."""

from pathlib import Path
from typing import Any

import pytest

from reports.study.study import Study, load_study
from reports.topics.together.interference import effects, interference_matrix, interference_pairs
from tests.reports.answers import row, told
from tests.reports.builder import Book
from tests.reports.open_load import texts
from tests.reports.topics.together.planted import interfering

MS = 1_000_000


def study(book: Book, folder: Path) -> Study:
    book.footer()
    return load_study(book.write(folder))


def test_a_planted_slow_down_is_recovered_and_none_is_told_as_none(tmp_path: Path) -> None:
    found = study(interfering(1.8, 1.01), tmp_path)
    slowed, same = effects(found)
    assert (slowed.verdict, same.verdict) == ("slowed", "no interference")
    for one, planted in ((slowed, 1.8), (same, 1.01)):
        assert one.slower is not None
        low, high = one.slower.low, one.slower.high
        assert low is not None
        assert high is not None
        assert low <= planted <= high < 1.01 * low * 1.01
    assert row(found, "Interference") == (
        "clip@c8 makes siglip@r50 1.806 times slower (95 % CI 1.794–1.818, p50); "
        "siglip@r50 does not slow clip@c8 (95 % CI 1.006–1.021, images/s)."
    )


def test_the_matrix_has_a_row_for_each_load_and_a_column_for_what_it_ran_beside(tmp_path: Path) -> None:
    found = study(interfering(1.8, 1.01), tmp_path)
    matrix, pairs = interference_matrix(found), interference_pairs(found)
    assert matrix.heads == ("load", "alone", "with clip@c8", "with siglip@r50")
    assert texts(matrix) == [
        ["siglip@r50", "p50 20.8 (19.8–21.8) ms", "1.806× (1.794–1.818)", ""],
        ["clip@c8", "385 (367–403) images/s", "", "1.013× (1.006–1.021)"],
    ]
    assert [line[4:8] for line in texts(pairs)] == [
        ["1.806× (1.794–1.818)", "1.806× (1.794–1.818)", "1.000× (0.998–1.002)", "1.806 times slower"],
        [
            "1.013× (1.006–1.020)",
            "1.013× (1.006–1.020)",
            "0.987× (0.980–0.994)",
            "no interference: within ±5 %",
        ],
    ]


@pytest.mark.parametrize(
    ("planted", "more", "said"),
    [
        (
            (1.0, 0.5), {},
            "siglip@r50 makes clip@c8 1.993 times faster (95 % CI 1.979–2.008, images/s); "
            "clip@c8 does not slow siglip@r50 (95 % CI 0.996–1.010, p50).",
        ),
        (
            (1.0, 1.0), {"spread": 0.2},
            "clip@c8 is not shown to slow siglip@r50 (95 % CI 0.87–1.47, p50); "
            "siglip@r50 is not shown to slow clip@c8 (95 % CI 0.87–1.47, images/s).",
        ),
        (
            (1.0, 1.12), {"spread": 0.12},
            "clip@c8 is not shown to slow siglip@r50 (95 % CI 0.92–1.27, p50); siglip@r50 may make clip@c8"
            " 1.21 times slower (95 % CI 1.03–1.42, images/s), unconfirmed among all pairs.",
        ),
        (
            (1.8, 1.0), {"repeats": 1},
            "clip@c8 on siglip@r50: not known, inconclusive without repeats; 1.81 times slower by p50; "
            "siglip@r50 on clip@c8: not known, inconclusive without repeats; 1.00 times slower by images/s. "
            "Rerun with --repeats 5 to confirm.",
        ),
        (
            (1.8, 1.0), {"failures": {"timeout": 9}},
            "clip@c8 makes siglip@r50 1.806 times slower (95 % CI 1.794–1.818, p50); "
            "siglip@r50 on clip@c8: not known, each run together is invalidated: failures.",
        ),
        (
            (1.8, 1.0), {"repeats": 2},
            "clip@c8 on siglip@r50: not known, fewer than 3 repeats; 1.80 times slower by p50; "
            "siglip@r50 on clip@c8: not known, fewer than 3 repeats; 1.00 times slower by images/s. "
            "Rerun with --repeats 5 to confirm.",
        ),
    ],
)  # fmt: skip
def test_what_is_said_of_each_pair(
    planted: tuple[float, float], more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    assert row(study(interfering(*planted, **more), tmp_path), "Interference") == said


def test_the_first_screen_answers_the_study_s_question_first_and_ranks_no_model(tmp_path: Path) -> None:
    rows = told(study(interfering(1.8, 1.01), tmp_path))
    assert [line.partition(":")[0] for line in rows] == [
        "Interference", "Latency", "Confidence", "Bottleneck", "Next step",
    ]  # fmt: skip


def test_repeats_that_were_invalidated_are_not_said_to_be_missing(tmp_path: Path) -> None:
    book = interfering(1.8, 1.01)
    for repeat in (1, 2):
        book.caveat({"cell": "clip/b1/c8", "repeat": repeat}, "client-bound", "worker w0 at 98 % CPU")
    said = row(study(book, tmp_path), "Interference")
    assert "on clip@c8: not known, fewer than 3 repeats, others are invalidated: client-bound" in said


def test_a_group_of_three_is_compared_with_its_own_cell_alone_and_nothing_is_said_without_one(
    tmp_path: Path,
) -> None:
    book = Book()
    axes = {"together": "a@c1+b@b4/c2+c@c1", "variant": "with-others"}
    for repeat in (1, 2, 3):
        for batch, how in ((1, {}), (4, {}), (4, axes)):
            slow = 2 if how else 1
            book.add("b", batch, 2, {"w0": [slow * 10 * MS] * 100}, repeat=repeat, axes=how)
        for name in ("a", "c"):
            book.add(name, 1, 1, {"w0": [10 * MS] * 100}, repeat=repeat, axes=axes)
    found = {one.name: one for one in effects(study(book, tmp_path))}
    assert (
        found["b@b4/c2"].said
        == "a@c1 and c@c1 make b@b4/c2 2.000 times slower (95 % CI 1.996–2.004, images/s)"
    )
    assert found["a@c1"].said == "b@b4/c2 and c@c1 on a@c1: not known, no run alone"


def test_where_nothing_succeeded_that_is_the_answer(tmp_path: Path) -> None:
    book = Book()
    axes = {"together": "a@c1+b@c1", "variant": "with-b-c1"}
    book.add("a", 1, 1, {"w0": []}, axes=axes, status="failed", note="it died")
    said = row(study(book, tmp_path), "Interference")
    assert said == "Nothing was measured, so nothing can be said about speed."
