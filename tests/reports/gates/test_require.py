"""What a threshold requires, and what it may not."""

import pytest

from reports.cells_csv.columns import NUMBERS
from reports.gates.require import (
    COMPARABLE,
    GATED,
    JUDGED,
    PERCENTILES,
    GateError,
    JudgedBy,
    Require,
    parse_require,
    results_in_a_run,
    results_needed,
    unit_of,
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
    ("text", "bound"),
    [
        *(("latency_p99_ms >= 0", 0), ("latency_p99_ms <= 1e15", 1e15), ("failure_ratio <= 1", 1)),
        *(("latency_p99_ms / baseline <= 0.001", 0.001), ("latency_p99_ms / baseline >= 1000", 1_000)),
        *(("failures<=+.5e1", 5), ("latency_p50_ms <= 12.", 12)),
    ],
)
def test_bounds_may_be_as_far_out_as_these(text: str, bound: float) -> None:
    found = parse_require(text)
    assert (found.bound, found.at_most, found.text) == (bound, "<=" in text, text)


@pytest.mark.parametrize(
    ("text", "of", "said"),
    [
        ("latency_p99_ms <= 1.1e15", "", "give a bound of 0 or more, and of 1e+15 at most"),
        ("failure_ratio <= 1.01", "", "give a bound from 0 to 1"),
        ("latency_p99_ms / baseline <= 0.0009", "", "give a ratio from 0.001 to 1,000"),
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
        ("goodput_share <= 0.9", "", "good requests are bounded from below; write >="),
        ("goodput_share >= 1", "", "write >= and a share below 1"),
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
    assert set(NUMBERS) - set(GATED) == {"repeat", "batch", "level", "split"}
    assert set(GATED) - set(NUMBERS) == {"failure_ratio", "unexplained_share"}


def test_how_each_column_is_judged() -> None:
    kinds = {
        JudgedBy.SHARE: "latency_p50_ms latency_p90_ms latency_p95_ms latency_p99_ms latency_p999_ms "
        "service_p50_ms service_p95_ms service_p99_ms failure_ratio goodput_share",
        JudgedBy.FACT: "failures abandoned latency_max_ms workers hosts tcp_connections request_bytes "
        "response_bytes gpu_memory_bytes",
        JudgedBy.EVIDENCE: "requests images measure_s worker_cpu_pct loop_lag_p99_ms send_delay_p99_ms",
    }
    told = {column: kind for kind, columns in kinds.items() for column in columns.split()}
    assert {name: JUDGED[name] for name in GATED} == {
        name: told.get(name, JudgedBy.REPEATED) for name in GATED
    }
    without = {*kinds[JudgedBy.EVIDENCE].split(), "failure_ratio"}
    assert set(GATED) - set(COMPARABLE) == without


def test_the_percentile_that_a_column_is_and_the_histogram_that_has_it() -> None:
    percents = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}
    for name, (histogram, percent) in PERCENTILES.items():
        stem, short, _ = name.split("_")
        assert (histogram, percent) == ({"service": "service_time"}.get(stem, stem), percents[short])


@pytest.mark.parametrize(
    ("column", "ratio", "said"),
    [
        *(("latency_p95_ms", False, "0.500 ms"), ("latency_p95_ms", True, "0.500×")),
        *(("failure_ratio", False, "50.0 %"), ("unexplained_share", False, "50.0 %")),
        *(("goodput_share", False, "50.0 %"), ("goodput_per_s", False, "0.500/s")),
        *(("worker_cpu_pct", False, "0.500 %"), ("images_per_s", False, "0.500/s")),
        *(("measure_s", False, "0.500 s"), ("request_bytes", False, "0.500 bytes")),
        *(("gpu_power_w", False, "0.500 W"), ("requests", False, "0.500")),
    ],
)
def test_a_value_is_written_in_its_columns_unit(column: str, ratio: bool, said: str) -> None:
    assert unit_of(column, ratio).text(0.5) == said


def test_a_percentile_takes_fifty_results_beyond_it() -> None:
    assert [results_needed(f"latency_{name}_ms") for name in ("p50", "p95", "p99", "p999")] == [
        *(100, 1_000, 5_000, 50_000)
    ]
    assert [results_in_a_run(f"latency_{name}_ms") for name in ("p50", "p95", "p99", "p999")] == [
        *(20, 200, 1_000, 10_000)
    ]
    assert (results_needed("images_per_s"), results_in_a_run("failure_ratio")) == (1, 1)
