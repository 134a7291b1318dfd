"""The published study's H5 between two sides: true, false, inconclusive, and by which figures."""

from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean

import pytest

from reports.cells_csv.sides import Side, load_side, load_sides
from reports.compare.differences import gpus, no_other_gpu
from reports.compare.penalty import penalties, penalty_said, penalty_table
from reports.published_study import SPACE
from tests.reports.builder import Book
from tests.reports.compare_book import serial
from tests.reports.strangers import GRPC, a_book, run, stranger


def sides(
    folder: Path,
    first: tuple[float, float],
    second: tuple[float, float],
    repeats: int = 3,
    gpus: tuple[str, str] = ("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090"),
) -> list[Side]:
    """Two studies with HTTP's and gRPC's p50 in milliseconds, each on its GPU."""
    places = []
    for name, latencies, gpu in (("a", first, gpus[0]), ("b", second, gpus[1])):
        book = Book(fingerprint={"gpus": [gpu]} if gpu else {})
        for endpoint, ms in zip(("onnx-http", "onnx-grpc"), latencies, strict=True):
            serial(book, endpoint, 1, ms, repeats)
        places.append(str(book.write(folder / name)))
    return list(load_sides(places))


@pytest.mark.parametrize(
    ("first", "second", "repeats", "verdict"),
    [
        ((200, 210), (300, 420), 3, "true"),
        ((200, 210), (300, 316), 3, "false"),
        ((200, 210), (300, 420), 1, "inconclusive"),
    ],
)
def test_it_holds_where_the_interval_of_the_change_leaves_1_out(
    *, first: tuple[float, float], second: tuple[float, float], repeats: int, verdict: str, tmp_path: Path
) -> None:
    (found,) = penalties(*sides(tmp_path, first, second, repeats))
    assert found.verdict == verdict
    assert found.base.ratio == pytest.approx(1.05, rel=1e-3)
    assert found.change.ratio == pytest.approx(second[1] / second[0] / 1.05, rel=1e-3)


def test_the_published_studies_leave_it_open() -> None:
    base, other = load_sides(("step7-a100", "step7-rtx4090"))
    onnx, trt = penalties(base, other)
    assert (onnx.name, trt.name, onnx.verdict, trt.verdict) == ("onnx", "trt", "inconclusive", "inconclusive")
    assert [round(it.ratio, 3) for it in (onnx.base, onnx.other, trt.base, trt.other)] == [
        *(1.042, 1.171, 1.168, 1.158),
    ]
    assert onnx.doubts == ("unconfirmed: with 1 run on a side, a difference may be chance",)
    assert trt.doubts[0].startswith("cold-shape: ")
    assert penalty_said(base, other) == (
        "H5 (on a slower GPU gRPC's batch-1 penalty differs), candidate against base: inconclusive. "
        "Published as: confirmed (11–17 % on the RTX 4090)."
    )


def test_the_change_is_welchs_of_both_sides_pairs(tmp_path: Path) -> None:
    """Against SciPy's own test of the logs of each repeat's ratio."""
    from scipy.stats import ttest_ind

    ratios = [[1.05, 1.1, 1.12], [1.3, 1.42, 1.36]]
    places = []
    for name, gpu, of in zip("ab", ("A100", "RTX 4090"), ratios, strict=True):
        book = Book(fingerprint={"gpus": [gpu]})
        for repeat, times in enumerate(of, 1):
            ms = 20 * repeat
            book.add("onnx-http", 1, 1, {"w0": [ms * 1_000_000] * 40}, repeat=repeat)
            book.add("onnx-grpc", 1, 1, {"w0": [round(ms * times * 1_000_000)] * 40}, repeat=repeat)
        places.append(str(book.write(tmp_path / name)))
    (found,) = penalties(*load_sides(places))
    logs = [[log(ratio) for ratio in of] for of in ratios]
    tested = ttest_ind(logs[1], logs[0], equal_var=False)
    ends = tested.confidence_interval(0.95)
    assert found.change.ratio == pytest.approx(exp(mean(logs[1]) - mean(logs[0])), rel=2e-3)
    assert (found.change.low, found.change.high) == pytest.approx((exp(ends.low), exp(ends.high)), rel=5e-3)
    assert (found.base.runs, found.other.runs, found.verdict) == (3, 3, "true")


def test_the_table_marks_why_a_verdict_is_open(tmp_path: Path) -> None:
    base, other = sides(tmp_path, (200, 210), (300, 420), 1)
    table = penalty_table(base, [other])
    assert [cell.text for cell in table.rows[0]] == [
        "onnx",
        "candidate",
        "1.05×",
        "1.40×",
        "1.33×",
        "inconclusive",
    ]
    assert table.notes == (
        "unconfirmed: with 1 run on a side, a difference may be chance; rerun with --repeats 5 to confirm",
    )


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        (("", ""), "No GPU is stated for base and candidate, so it is not known whether the GPU differs."),
        (("NVIDIA L4", ""), "No GPU is stated for candidate, so it is not known whether the GPU differs."),
        (
            ("NVIDIA L4", "NVIDIA L4"),
            "The GPUs stated for base (NVIDIA L4) and candidate (NVIDIA L4) are the same, and the claim "
            "needs two different ones.",
        ),
        (
            ("A100", "NVIDIA A100-SXM4-80GB"),
            "The GPUs stated for base (A100) and candidate (NVIDIA A100-SXM4-80GB) are the same, and the "
            "claim needs two different ones.",
        ),
    ],
)
def test_it_is_not_tested_without_two_gpus_that_differ(
    *, gpus: tuple[str, str], reason: str, tmp_path: Path
) -> None:
    base, other = sides(tmp_path, (200, 210), (300, 420), 3, gpus)
    (found,) = penalties(base, other)
    assert (found.change.p_even < 0.05, found.verdict) == (True, "not tested")
    table = penalty_table(base, [other])
    assert (table.rows[0][-1].text, table.rows[0][-1].marks, table.notes) == ("not tested", (1,), (reason,))
    assert penalty_said(base, other).startswith(
        f"H5 (on a slower GPU gRPC's batch-1 penalty differs), candidate against base: not tested. {reason} "
    )


@pytest.mark.parametrize(
    ("study", "named"),
    [
        *(("step5a", ("RTX A4000",)), ("step5a-cpu", ()), ("step6a-a100", ("A100",))),
        *(("step6a-rtx4080", ("RTX 4080",)), ("step6b", ("RTX 4080",))),
        *(("step7-a100", ("A100",)), ("step7-rtx4090", ("RTX 4090",))),
    ],
)
def test_published_studies_name_their_gpu_in_their_sources(study: str, named: tuple[str, ...]) -> None:
    assert gpus(load_side(study)) == named


def test_a_study_on_the_gpu_of_a_published_one_does_not_test_it(tmp_path: Path) -> None:
    ours = sides(tmp_path, (200, 210), (300, 420))
    for side, told in zip(ours, ("A100) and", ""), strict=True):
        assert told in no_other_gpu(*load_sides(("step7-a100", side.place)))
    assert not no_other_gpu(*load_sides(("step7-a100", ours[1].place)))


def test_sides_without_both_protocols_do_not_test_it() -> None:
    base, other = load_sides(("step6a-a100", "step6b"))
    assert (list(penalties(base, other)), penalty_said(base, other)) == ([], "")
    assert penalty_table(base, [other]).rows == ()


def mine(folder: Path, **planned: str) -> list[Side]:
    """Two studies of the published ones' name, of a user's own endpoints."""
    places = []
    for name, grpc_ms in (("a", 210.0), ("b", 420.0)):
        book = a_book(study="step7", fingerprint={"gpus": [f"GPU {name}"]})
        for endpoint, ms, protocol in (("h", 200.0, {}), ("g", grpc_ms, GRPC)):
            run(book, endpoint, stranger(book, endpoint, **protocol, **planned), [ms] * 3)
        places.append(str(book.write(folder / name)))
    return list(load_sides(places))


def test_it_is_of_their_model_alone(tmp_path: Path) -> None:
    theirs = mine(tmp_path / "a", space=SPACE)
    (found,) = penalties(*theirs)
    assert (found.name, found.endpoint, found.verdict) == ("g / h", "g", "true")
    assert penalty_said(*theirs).startswith("H5 (on a slower GPU")
    others = mine(tmp_path / "b", space="siglip")
    assert list(penalties(*others)) == []
    assert penalty_said(*others) == ""
    assert penalty_table(others[0], others[1:]).rows == ()


def test_another_study_is_none_of_theirs(tmp_path: Path) -> None:
    base, other = sides(tmp_path, (200, 210), (300, 420))
    mixed = replace(other, rows=tuple(replace(row, study="study") for row in other.rows))
    assert len(list(penalties(base, other))) == 1
    assert list(penalties(base, mixed)) == []
