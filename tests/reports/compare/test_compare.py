"""Comparisons: cells matched, ratios with their intervals, and verdicts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.cells_csv.rows import Row, SideError, rows_of
from reports.cells_csv.sides import STUDY, Side, load_side, load_sides
from reports.compare.answer import by_how_much
from reports.compare.differences import differences
from reports.compare.failures import FEWER, MORE, Failures, failures, judged
from reports.compare.matching import (
    FASTER,
    INCONCLUSIVE,
    NONE_SHOWN,
    P50,
    RATE,
    Doubt,
    Figure,
    Match,
    magnitude,
    matches,
)
from reports.stats.log_ratio import RESOLUTION
from tests.reports.builder import Book
from tests.reports.compare_book import MS, before, page_of
from tests.reports.example import example
from tests.reports.gates.rows import Run, a_run, repeated

FROM_A100_TO_RTX4090 = {
    "pytorch-http/b1/c1": 2.1,
    "onnx-http/b1/c1": 1.3,
    "onnx-grpc/b1/c1": 1.5,
    "trt-http/b1/c1": 1.6,
    "trt-grpc/b1/c1": 1.6,
}


def between(one: str, two: str, column: str) -> dict[str, Match]:
    base, other = load_sides((one, two))
    return {it.cell: it for it in matches(base, other) if it.measure.column == column}


def test_a_study_against_itself_has_ratios_of_1_and_shows_nothing(tmp_path: Path) -> None:
    folder = str(example().write(tmp_path / "x"))
    base, other = load_sides((folder, folder))
    found = list(matches(base, other))
    assert len({it.cell for it in found}) == 20
    assert {it.ratio.ratio for it in found} == {1.0}
    assert {it.verdict for it in found} == {INCONCLUSIVE}, "it has two repeats at most"
    assert not [it for it in found if it.ratio.p_even < 0.05]
    assert {it.verdict for it in failures(base, other)} <= {NONE_SHOWN, INCONCLUSIVE}
    assert differences((base, other)) == ()
    assert (base.name, other.name, other.label) == ("x (base)", "x (candidate)", "x (candidate)")
    told = {answer.question: answer.said for answer in page_of(folder, folder).answers}
    assert told["Verdict"] == "Not confirmed whether x (candidate) is faster than x (base)."
    assert told["Difference"] == "None, all values are equal."


def side_of(role: str, *runs: Run) -> Side:
    return Side(role=role, name=role, kind=STUDY, place=role, rows=tuple(run.row for run in runs), header={})


def found_in(base: Sequence[Run], other: Sequence[Run]) -> dict[tuple[str, str], Match]:
    """By cell and column."""
    return {(it.cell, it.measure.column): it for it in matches(side_of("base", *base), side_of("x", *other))}


def test_repeats_that_came_out_alike_by_luck_are_as_sure_as_half_of_the_middle_ones() -> None:
    """Alone they would differ for sure; beside others that vary by a tenth they do not."""
    cells = [f"onnx-http/b{batch}/c1" for batch in (1, 2, 4)]

    def of(times: float, noisy: Sequence[str]) -> list[Run]:
        quiet = repeated(cells[0], "images_per_s", *[100 * times] * 3)
        return [*quiet, *(run for cell in noisy for run in repeated(cell, "images_per_s", 90, 100, 110))]

    for noisy, verdict in (([], FASTER), (cells[1:], NONE_SHOWN)):
        assert found_in(of(1, noisy), of(1.05, noisy))[cells[0], "images_per_s"].verdict == verdict


@pytest.mark.parametrize(("failed", "values"), [(0, (1, 2, 3)), (100, (1, 2, 3)), (9_000, (1, 2, 3, 50))])
def test_disqualified_repeats_are_left_out_unless_too_many_requests_of_the_cell_failed(
    failed: int, values: tuple[float, ...]
) -> None:
    runs = [
        *repeated("a-http/b1/c1", "latency_p50_ms", 1, 2, 3),
        a_run("a-http/b1/c1", 4, "worker-lost", latency_p50_ms=50, failures=failed),
    ]
    found = found_in(runs, runs)["a-http/b1/c1", "latency_p50_ms"]
    assert (found.base.values, found.other.values) == (values, values)
    assert found.invalid == (("worker-lost",) if len(values) == 4 else ())


def test_the_mean_is_compared_unless_both_have_a_p50() -> None:
    cell, mean = "a-http/b1/c1", "latency_mean_ms"
    both, alone = repeated(cell, mean, 1, 2, 3, latency_p50_ms=1), repeated(cell, mean, 1, 2, 3)
    compared = [(cell, mean) in found_in(*sides) for sides in ((both, both), (both, alone), (alone, both))]
    assert compared == [False, True, True]


def test_one_equal_value_does_not_make_all_equal() -> None:
    base, other = (
        [
            *repeated("a-http/b1/c1", "images_per_s", 1, 2, 3),
            *repeated("b-http/b1/c1", "images_per_s", *those),
        ]
        for those in ((1, 1, 1), (4, 4, 4))
    )
    said, _ = by_how_much(list(found_in(base, other).values()))
    assert said.startswith("b-http/b1/c1 4.00× faster")


def test_of_a_side_that_states_nothing_nothing_differs(tmp_path: Path) -> None:
    stated = load_side(str(before().write(tmp_path)))
    assert [it.what for it in differences((stated, replace(stated, header={})))] == []


def test_the_published_ratios_come_out_and_single_runs_show_nothing() -> None:
    found = between("step7-a100", "step7-rtx4090", "latency_p50_ms")
    assert {cell: round(it.ratio.ratio, 1) for cell, it in found.items()} == FROM_A100_TO_RTX4090
    assert {it.verdict for it in found.values()} == {INCONCLUSIVE}
    assert {(it.ratio.low, it.ratio.high) for it in found.values()} == {(None, None)}
    assert found["onnx-http/b1/c1"].doubts == (
        Doubt("1 run", "unconfirmed: with 1 run on a side, a difference may be chance"),
    )
    assert found["onnx-http/b1/c1"].said == "slower, medium, unconfirmed: 1 run"
    cold = found["trt-http/b1/c1"]
    assert (cold.doubts[0].invalid, cold.invalid, cold.said) == (True, ("cold-shape",), "invalid: cold-shape")


def test_too_few_results_behind_a_percentile_are_inconclusive(tmp_path: Path) -> None:
    places = []
    for name, ms in (("a", 20), ("b", 10)):
        book = Book()
        for repeat in (1, 2, 3):
            book.add(
                "onnx-http", 1, 1, {"w0": [ms * MS] * 500 if name == "b" else [ms * MS] * 150}, repeat=repeat
            )
        places.append(str(book.write(tmp_path / name)))
    (p95,) = between(*places, "latency_p95_ms").values()
    assert p95.verdict == INCONCLUSIVE
    assert p95.doubts == (
        Doubt("few results", "unconfirmed: fewer than 200 results in a run are too few for this percentile"),
    )
    assert p95.said == "faster, large, unconfirmed: few results"
    assert between(*places, "latency_p99_ms") == {}, "150 results have no p99"


def test_a_difference_within_the_buckets_of_histograms_is_none(tmp_path: Path) -> None:
    one, two = Book(), Book()
    for repeat in (1, 2, 3):
        one.add("onnx-http", 1, 1, {"w0": [20_000_000] * 40}, repeat=repeat)
        two.add("onnx-http", 1, 1, {"w0": [20_030_000] * 40}, repeat=repeat)
    it = between(str(one.write(tmp_path / "a")), str(two.write(tmp_path / "b")), "images_per_s")
    ratio = it["onnx-http/b1/c1"].ratio
    assert ratio.high is not None
    assert ratio.high / ratio.ratio == pytest.approx(RESOLUTION), "though the repeats are alike"
    assert ratio.ratio != 1
    assert (ratio.p_even < 0.05, it["onnx-http/b1/c1"].verdict) == (False, NONE_SHOWN)


def test_the_rate_that_open_load_asked_for_is_not_compared(tmp_path: Path) -> None:
    book = Book()
    for repeat in (1, 2):
        book.add_open("onnx-http", 10, {"w0": [5 * MS] * 40}, repeat=repeat)
    folder = str(book.write(tmp_path / "x"))
    assert between(folder, folder, RATE.column) == {}
    assert list(between(folder, folder, P50.column)) == ["onnx-http/b1/r10"]


def test_the_mean_is_compared_where_a_side_has_no_p50() -> None:
    found = between("step6a-a100", "step6a-rtx4080", "latency_mean_ms")
    assert {cell: round(it.ratio.ratio, 2) for cell, it in found.items()} == {
        "pytorch-http/b1/c1": round(219 / 56.9, 2),
        "onnx-http/b1/c1": round(337 / 182.9, 2),
        "trt-http/b1/c1": round(337 / 212.5, 2),
    }
    assert between("step7-a100", "step7-a100", "latency_mean_ms") == {}


def test_more_and_fewer_failures_are_told(pair: tuple[str, str]) -> None:
    found = {it.cell: it for it in failures(*load_sides(pair))}
    assert found["onnx-grpc/b8/c1"].verdict == MORE
    assert found["onnx-grpc/b8/c1"].other.values == (0.2, 0.2, 0.2)
    assert found["onnx-http/b1/c1"].verdict == NONE_SHOWN
    back = {it.cell: it.verdict for it in failures(*load_sides(pair[::-1]))}
    assert back["onnx-grpc/b8/c1"] == FEWER


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        ([(0, 41)] * 3, [(1, 41)] * 3, NONE_SHOWN),
        ([(0, 41)] * 2, [(5, 41)] * 2, INCONCLUSIVE),
        ([(0, 41)] * 2, [(0, 41)] * 2, NONE_SHOWN),
        ([(0, 41)] * 3, [(5, 41)] * 2, INCONCLUSIVE),
        ([(0, 41)] * 3, [(5, 41)] * 3, MORE),
        ([(50, 4_100)] * 3, [(0, 4_100)] * 3, FEWER),
        ([(0, 4_100)] * 3, [(0, 4_100)] * 2 + [(400, 4_100)], NONE_SHOWN),
        ([(41, 41)] * 3, [(41, 41)] * 3, NONE_SHOWN),
    ],
)
def test_few_failures_of_few_requests_may_be_chance_however_alike_the_repeats(
    base: list[tuple[int, int]], other: list[tuple[int, int]], verdict: str
) -> None:
    sides = [
        Figure(tuple(failing(*run) for run in runs), tuple(failed / requests for failed, requests in runs))
        for runs in (base, other)
    ]
    (found,) = judged([Failures("x", *sides)])
    assert found.verdict == verdict


def test_failures_are_told_among_all_cells_that_have_any() -> None:
    def a_cell(name: str, failed: int) -> Failures:
        sides = (Figure((failing(some, 4_100),) * 3, (some / 4_100,) * 3) for some in (10, failed))
        return Failures(name, *sides)

    assert [it.verdict for it in judged([a_cell("x", 19)])] == [MORE]
    crowd = [a_cell(str(at), 10) for at in range(9)]
    assert {it.verdict for it in judged([a_cell("x", 19), *crowd])} == {NONE_SHOWN}


def failing(failed: int, requests: int) -> Row:
    """A run with so many failures."""
    (row,) = rows_of(
        [
            "study,cell,endpoint,backend,protocol,payload,batch,load,level,requests,failures",
            f"s,onnx-http/b1/c1,onnx-http,onnx,http,fp32,1,closed,1,{requests},{failed}",
        ],
        "x",
    )
    return row


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        *((1.0, "about the same"), (1.05, "about the same"), (1.051, "small"), (1.25, "small")),
        *((1.26, "medium"), (2.0, "medium"), (2.01, "large"), (0.5, "medium"), (0.49, "large")),
        *((0.96, "about the same"), (0.8, "small")),
    ],
)
def test_a_magnitude_is_the_same_whichever_way_round(ratio: float, word: str) -> None:
    assert magnitude(ratio) == magnitude(1 / ratio) == word


def test_a_speedup_is_above_1_where_the_candidate_is_faster(pair: tuple[str, str]) -> None:
    rate, p50 = (between(*pair, column)["onnx-http/b1/c1"] for column in (RATE.column, P50.column))
    assert rate.speedup == rate.ratio
    assert p50.speedup.ratio == pytest.approx(2.0, rel=1e-3)
    assert (p50.speedup.low, p50.speedup.high) == pytest.approx((rate.ratio.low, rate.ratio.high), rel=1e-3)
    assert p50.said == FASTER


def test_the_roles_have_letters_only_where_there_are_several_candidates(pair: tuple[str, str]) -> None:
    two, three = load_sides(pair), load_sides((*pair, "step6b"))
    assert [(side.role, side.short) for side in two] == [("base", "base"), ("candidate", "candidate")]
    assert [(side.role, side.short) for side in three] == [
        *(("base", "base"), ("candidate A", "A"), ("candidate B", "B")),
    ]
    assert [side.label for side in three][1:] == ["candidate A (after)", "candidate B (step6b)"]
    assert load_sides(("step6b",) * 27)[-1].role == "candidate Z"
    with pytest.raises(SideError, match="at most 26 candidates"):
        load_sides(("step6b",) * 28)


def test_a_difference_is_told_among_all_cells_and_measures(tmp_path: Path) -> None:
    def a_study(name: str, others: int, ms: Sequence[float]) -> str:
        book = Book()
        for cell in range(others + 1):
            for repeat, each in enumerate(ms if not cell else (20, 21, 22), 1):
                book.add("onnx-http", 1, cell + 1, {"w0": [round(each * MS)] * 40}, repeat=repeat)
        return str(book.write(tmp_path / name))

    for others, verdict in ((0, FASTER), (9, NONE_SHOWN)):
        places = [
            a_study(f"{name}{others}", others, ms) for name, ms in (("a", (20, 21, 22)), ("b", (16, 17, 18)))
        ]
        it = between(*places, "images_per_s")["onnx-http/b1/c1"]
        assert it.verdict == verdict
        assert it.ratio.p_even < 0.05
