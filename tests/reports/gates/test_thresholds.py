"""Files of thresholds: what they mean, and what is refused in one sentence."""

from pathlib import Path

import pytest

from reports.gates.require import GateError, parse_require
from reports.gates.thresholds import Gates, Threshold, parse_gates, read_gates

WHOLE = """\
[baseline]
place = "before.json"
may_differ = ["cpu", "host.*"]

[[threshold]]
require = "latency_p99_ms <= 120"
endpoint = "onnx-*"
batch = [1, 8]
level = 4
abort_after_s = 10

  [[ threshold ]]
require = "onnx-grpc / onnx-http >= 0.95"
of = "images_per_s"
name = "gRPC keeps up"
severity = "warn"

[[threshold]]
require = "latency_p95_ms / baseline <= 1"
least_effect = 0.1
"""
ONE = "[[threshold]]\nrequire = 'latency_p99_ms <= 120'\n"
RATIO = "[[threshold]]\nrequire = 'a / b >= 1'\nof = 'images_per_s'\n"


def parsed(text: str) -> Gates:
    return parse_gates(text, "thresholds.toml")


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_text(f"\ufeff{WHOLE}", encoding="utf-8")
    gates = read_gates(path)
    first, second, third = gates.thresholds
    assert (gates.place, gates.baseline) == (str(path), str(tmp_path / "before.json"))
    assert (gates.may_differ, gates.lines, gates.need_baseline) == (("cpu", "host.*"), (5, 12, 18), True)
    assert dict(first.choice) == {"endpoint": "onnx-*", "batch": {1.0, 8.0}, "level": {4.0}}
    assert (first.severity, first.abort_after_s, first.tolerated) == ("fail", 10.0, 120.0)
    assert (first.title, second.title) == ("latency_p99_ms <= 120", "gRPC keeps up")
    assert (second.severity, second.tolerated) == ("warn", pytest.approx(0.95 / 1.05))
    assert (third.number, third.tolerated) == (3, pytest.approx(1.1))


def test_cells_are_chosen_by_patterns_and_numbers() -> None:
    chosen = parsed(WHOLE).thresholds[0]
    cell = {"endpoint": "onnx-grpc", "batch": 8, "level": 4.0}
    assert chosen.chooses(cell)
    for other in ({"endpoint": "trt-grpc"}, {"batch": 4}, {"level": 8.0}, {"level": None}):
        assert not chosen.chooses(cell | other)


@pytest.mark.parametrize(
    ("text", "least", "tolerated", "kept", "broken"),
    [
        ("latency_p99_ms <= 100", None, 100, [99, 100], [100.1]),
        ("latency_p99_ms <= 100", "0.1", 110, [100, 110], [110.1]),
        ("images_per_s >= 100", None, 100, [100, 101], [99.9]),
        ("images_per_s >= 110", "0.1", 100, [100, 110], [99.9]),
        ("latency_p99_ms / baseline <= 1", None, 1.05, [1.05], [1.06]),
        ("images_per_s / baseline >= 1", None, 1 / 1.05, [0.953, 2], [0.952]),
        ("images_per_s / baseline >= 1", "0", 1, [1], [0.999]),
        ("latency_p99_ms <= 100", "1", 200, [200], [201]),
    ],
)
def test_what_is_tolerated_lies_beyond_the_bound(
    text: str, least: str | None, tolerated: float, kept: list[float], broken: list[float]
) -> None:
    (found,) = parsed(
        f"[[threshold]]\nrequire = '{text}'\n" + (f"least_effect = {least}" if least else "")
    ).thresholds
    assert found.tolerated == pytest.approx(tolerated)
    assert [found.keeps(value) for value in (*kept, *broken)] == [True] * len(kept) + [False] * len(broken)


@pytest.mark.parametrize(
    ("text", "number", "counts"),
    [
        *(("failure_ratio <= 0", 1, True), ("failure_ratio <= 0.1", 1, False), ("failures <= 0", 1, False)),
        *(("failure_ratio <= 0.1", 0, True), ("latency_p50_ms <= 0", 0, False)),
    ],
)
def test_failures_are_counted_where_none_may_fail_or_no_file_says_how_many(
    text: str, number: int, counts: bool
) -> None:
    assert Threshold(number, parse_require(text)).counts is counts


def test_lines_are_not_told_where_they_are_not_known() -> None:
    assert (parsed(ONE).baseline, parsed(ONE).lines) == ("", (1,))
    assert parsed("threshold = [{require = 'failures <= 1'}, {require = 'failures <= 2'}]").lines == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no [[threshold]]"),
        ("[threshold]\nrequire = 'latency_p99_ms <= 120'", "has no [[threshold]]"),
        ("threshold = [1]", "has no [[threshold]]"),
        ("[[threshold]]", "threshold 1: has no require"),
        (f"{ONE}require = 'failures <= 1'", "is no TOML (Cannot overwrite a value"),
        ("x = " + "[" * 5_000, "is no TOML ("),
        ("x = " + "9" * 5_000, "is no TOML ("),
        (f"{ONE}[extra]", "'extra' is no field of it; they are threshold, baseline"),
        (f"{ONE}endpont = 'x'", "threshold 1: 'endpont' is no field of it; they are require, of"),
        (
            f"{ONE}[baseline]\nplaces = 'x'",
            "[baseline]: 'places' is no field of it; they are place, may_differ",
        ),
        (f"baseline = 1\n{ONE}", "baseline is no table"),
        (f"{ONE}[baseline]\nplace = 1", "[baseline]: place 1: give a text in quotes"),
        (
            f"{ONE}[baseline]\nmay_differ = 'cpu'",
            "may_differ 'cpu': give a list of texts, e.g. ['cpu', 'system']",
        ),
        ("[[threshold]]\nrequire = 'latency_p95 <= 5'", "can be gated; did you mean latency_p95_ms?"),
        ("[[threshold]]\nrequire = 5", "threshold 1: require 5: give a text in quotes"),
        (f"{ONE}endpoint = 5", "endpoint 5: give a text in quotes"),
        (f"{ONE}severity = 'error'", "severity 'error': give fail or warn"),
        (f"{ONE}severity = ['fail']", "severity ['fail']: give fail or warn"),
        (f"{ONE}batch = true", "batch True: give a number or a list of numbers"),
        (f"{ONE}batch = []", "batch []: give a number"),
        (f"{ONE}level = [1, 'x']", "level [1, 'x']: give a number"),
        (f"{ONE}level = nan", "level nan: give a number"),
        (f"{ONE}level = 1{'0' * 400}", "it has a number of more than 64 bits"),
        (f"{ONE}least_effect = -0.1", "least_effect -0.1: give a number from 0 to 1"),
        (f"{ONE}least_effect = 1.5", "least_effect 1.5: give a number from 0 to 1"),
        (f"{ONE}abort_after_s = inf", "abort_after_s inf: give a number from 0 to 86,400"),
        (f"{ONE}abort_after_s = 1\nseverity = 'warn'", "abort_after_s: a warning stops nothing"),
        (
            "[[threshold]]\nrequire = 'images_per_s >= 1'\nabort_after_s = 1",
            "only an upper bound of a percentile",
        ),
        (
            "[[threshold]]\nrequire = 'latency_p50_ms >= 1'\nabort_after_s = 1",
            "only an upper bound of a percentile",
        ),
        (f"{RATIO}abort_after_s = 1", "only an upper bound of a percentile"),
        (f"{RATIO}endpoint = 'x'", "endpoint: the ratio names the endpoints already"),
        (f"{RATIO}cell = 'x'", "cell: the ratio names the endpoints already"),
        (f"{ONE}of = 'images_per_s'", "threshold 1: of 'images_per_s': is for the ratio of two endpoints"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(GateError) as error:
        parsed(text)
    told = str(error.value)
    assert told.startswith("thresholds.toml: ")
    assert said in told
    assert told.endswith((".", "?"))
    assert not told.endswith(("..", "?."))
    assert "\n" not in told


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, said in (("none", "No such file"), ("binary", "not UTF-8"), ("", "Is a directory")):
        with pytest.raises(GateError, match=said):
            read_gates(tmp_path / name)
