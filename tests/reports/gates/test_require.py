"""What a threshold requires, and what it may not."""

import pytest

from reports.cells_csv.columns import NUMBERS
from reports.gates.require import (
    GATED,
    JUDGED,
    GateError,
    JudgedBy,
    Require,
    parse_require,
    results_in_a_run,
    results_needed,
)


def test_the_three_forms_are_told_apart() -> None:
    absolute = parse_require("latency_p99_ms <= 120")
    ratio = parse_require(" onnx-grpc / onnx-http >= 0.95 ", "images_per_s")
    baseline = parse_require("latency_p95_ms / baseline<=1e0")
    assert absolute == Require("latency_p99_ms <= 120", "latency_p99_ms", True, 120.0)
    assert (absolute.absolute, absolute.to_baseline, absolute.kind) == (True, False, JudgedBy.SHARE)
    assert (ratio.column, ratio.over, ratio.under) == ("images_per_s", "onnx-grpc", "onnx-http")
    assert (ratio.at_most, ratio.bound, ratio.absolute, ratio.to_baseline) == (False, 0.95, False, False)
    assert (baseline.column, baseline.bound, baseline.to_baseline) == ("latency_p95_ms", 1.0, True)
    assert {ratio.kind, baseline.kind} == {JudgedBy.REPEATED}


@pytest.mark.parametrize(
    ("text", "of", "said"),
    [
        ("", "", "write 'latency_p99_ms <= 120'"),
        ("latency_p99_ms < 120", "", "write 'latency_p99_ms <= 120'"),
        ("latency_p99_ms <= 1-2", "", "write 'latency_p99_ms <= 120'"),
        ("latency_p98_ms <= 120", "", "did you mean latency_p9"),
        ("speed <= 120", "", "they are workers, hosts, tcp_connections"),
        ("level <= 8", "", "'level': is no column that can be gated"),
        ("onnx-grpc >= 0.95", "", "is no column; for a ratio of two endpoints write"),
        ("onnx-grpc / onnx-http >= 0.95", "", "of: is missing; say which column"),
        ("onnx-grpc / onnx-http >= 0.95", "image_per_s", "of 'image_per_s': is no column that can be gated"),
        ("latency_p99_ms <= 120", "images_per_s", "of 'images_per_s': is for the ratio of two endpoints"),
        ("latency_p99_ms / baseline <= 1", "images_per_s", "of 'images_per_s': is for the ratio"),
        ("*-grpc / onnx-http >= 1", "images_per_s", "write one * on both sides"),
        ("*-*-grpc / *-*-http >= 1", "images_per_s", "write one * on both sides"),
        ("onnx-http / onnx-http >= 1", "images_per_s", "name two different endpoints"),
        ("latency_p99_ms <= -1", "", "give a bound of 0 or more"),
        ("latency_p99_ms <= 1e999", "", "give a bound of 0 or more"),
        ("latency_p99_ms / baseline <= 0", "", "give a ratio from 0.001 to 1,000"),
        ("latency_p99_ms / baseline <= 1001", "", "give a ratio from 0.001 to 1,000"),
        ("failure_ratio >= 0.1", "", "failures are bounded from above"),
        ("failure_ratio <= 5", "", "give a bound from 0 to 1"),
        ("failure_ratio / baseline <= 1", "", "bound it by itself, e.g. 'failure_ratio <= 1'"),
        ("requests / baseline >= 1", "", "requests has no ratio that means something"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, of: str, said: str) -> None:
    with pytest.raises(GateError) as error:
        parse_require(text, of)
    assert said in str(error.value)
    assert not str(error.value).endswith(".")


def test_every_number_of_a_cell_can_be_gated_but_those_that_choose_it() -> None:
    assert set(NUMBERS) - set(GATED) == {"repeat", "batch", "level"}
    assert set(GATED) - set(NUMBERS) == {"failure_ratio", "unexplained_share"}
    kinds = {kind: [name for name in GATED if JUDGED[name] is kind] for kind in JudgedBy}
    assert "latency_p999_ms" in kinds[JudgedBy.SHARE]
    assert "failures" in kinds[JudgedBy.FACT]
    assert "worker_cpu_pct" in kinds[JudgedBy.EVIDENCE]
    assert "images_per_s" in kinds[JudgedBy.REPEATED]


def test_a_percentile_takes_fifty_results_beyond_it() -> None:
    assert [results_needed(f"latency_{name}_ms") for name in ("p50", "p95", "p99", "p999")] == [
        *(100, 1_000, 5_000, 50_000)
    ]
    assert [results_in_a_run(f"latency_{name}_ms") for name in ("p50", "p95", "p99", "p999")] == [
        *(20, 200, 1_000, 10_000)
    ]
    assert (results_needed("images_per_s"), results_in_a_run("failure_ratio")) == (1, 1)
