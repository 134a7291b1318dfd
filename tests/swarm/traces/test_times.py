"""Times of traces: the unit that is found, or asked for; their origin; rows of one time."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from swarm.traces.generate import poisson
from swarm.traces.times import find_resolution, named_unit, read_time, spread
from swarm.traces.trace import ArrivalTrace, TraceRow, read_trace

MOONCAKE = '{{"timestamp": {}, "input_length": 7, "output_length": 5, "hash_ids": [0, 1]}}'
BAILIAN = '{{"chat_id": 1, "timestamp": {}, "input_length": 7, "hash_ids": [0]}}'
AIPERF = '{{"timestamp": {}, "input_length": 7, "hash_ids": [3]}}'
MINUTE = (0, 500, 2_000, 60_000)
UNIX = (1_700_000_000, 1_700_000_002, 1_700_000_060)


def trace(folder: Path, name: str, lines: Sequence[str], **given: str | float) -> ArrivalTrace:
    path = folder / name
    path.write_text("\n".join(lines))
    return read_trace(path, **given)  # type: ignore[arg-type]


def csv_of(head: str, times: Sequence[object], more: str = "") -> list[str]:
    return [head, *(f"{time}{more}" for time in times)]


@pytest.mark.parametrize(
    ("name", "lines", "unit", "seconds"),
    [
        ("a.jsonl", [MOONCAKE.format(t) for t in MINUTE], "ms", [0, 0.5, 2, 60]),
        ("a.jsonl", [AIPERF.format(t) for t in MINUTE], "ms", [0, 0.5, 2, 60]),
        ("a.jsonl", [MOONCAKE.format(t) for t in (27_000, 27_400, 27_900)], "ms", [0, 0.4, 0.9]),
        ("a.jsonl", [BAILIAN.format(t) for t in (61.114, 62, 1_100)], "s", [0, 0.886, 1_038.886]),
        # absolute times say their unit by their size, whatever stands beside them
        ("a.jsonl", [MOONCAKE.format(f'"{t}000000500"') for t in UNIX], "ns", [0, 2, 60]),
        ("a.csv", csv_of("timestamp", UNIX), "s", [0, 2, 60]),
        ("a.csv", csv_of("time", [f"{t}250" for t in UNIX]), "ms", [0, 2, 60]),
        ("a.csv", csv_of("timestamp", [f"{t}.25e6" for t in UNIX]), "us", [0, 2, 60]),
        ("a.csv", csv_of("timestamp", [f"{t}000000000" for t in UNIX]), "ns", [0, 2, 60]),
        *(
            ("a.csv", csv_of(head, MINUTE), unit, [0, 500 / per_s, 2_000 / per_s, 60_000 / per_s])
            for unit, per_s, heads in (
                ("s", 1, ("time_s", "T (sec)", "timestamp_seconds")),
                ("ms", 1e3, ("time_ms", "Timestamp (ms)", "ts_ms", "arrival_time_ms", "timestamp[ms]")),
                ("us", 1e6, ("t_us", "time_µs", "timestamp_micros")),
                ("ns", 1e9, ("time_ns", "start_time_ns")),
            )
            for head in heads
        ),
        ("a.csv", csv_of("timestamp_start_unix_ms", [f"{t}000" for t in UNIX]), "ms", [0, 2, 60]),
        # BurstGPT, by its columns
        ("a.csv", csv_of("Timestamp,Request tokens", (5, 45, 6_000), ",472"), "s", [0, 40, 5_995]),
        # as milliseconds these would take less than a second, or be more than any server answers
        ("a.csv", csv_of("timestamp", (0, 1, 4, 900)), "s", [0, 1, 4, 900]),
        ("a.csv", csv_of("time", ("0.0", "1.5", "7200.0")), "s", [0, 1.5, 7_200]),
        ("a.csv", csv_of("time", (0, 1_500, 3_600)), "s", [0, 1_500, 3_600]),
        ("a.csv", csv_of("time", range(0, 7_200, 9)), "s", range(0, 7_200, 9)),
        ("a.csv", csv_of("time", range(86_400)), "s", range(86_400)),
        # Azure's, with a digit more than Python's microseconds
        (
            "a.csv",
            ["TIMESTAMP,ContextTokens", "2023-11-16 18:17:03.9799600,7", "2023-11-16 18:17:05.4799610,7"],
            "ISO 8601",
            [0, 1.500001],
        ),
        # a slice does not replay the silence before it
        ("a.csv", csv_of("time", ("500.5", "501", "502.25")), "s", [0, 0.5, 1.75]),
    ],
)  # fmt: skip
def test_the_unit_and_the_origin_are_found(
    tmp_path: Path, name: str, lines: list[str], unit: str, seconds: Sequence[float]
) -> None:
    found = trace(tmp_path, name, lines)
    assert found.unit == unit
    assert found.times_s.tolist() == pytest.approx(seconds, abs=1e-6)


def test_so_many_that_they_cannot_be_milliseconds_are_seconds(tmp_path: Path) -> None:
    times = [second for second in range(1_001) for _ in range(11)]
    assert trace(tmp_path, "a.csv", csv_of("timestamp", times)).unit == "s"
    with pytest.raises(ValueError, match="--replay-unit"):
        trace(tmp_path, "b.csv", csv_of("timestamp", times[::2]))


@pytest.mark.parametrize(
    ("head", "times"),
    [
        ("timestamp", MINUTE),
        ("timestamp", ("0.5", "1200.25")),
        ("time", MINUTE),
        ("time", (0, 700_000)),
        ("time", ("0.0", "500.0", "2000.0", "60000.0")),  # as pandas has them
        ("time", range(0, 7_200, 11)),
        ("time", range(0, 60_000, 2)),
        ("timestamp", (0, 5_000_000, 60_000_000)),
        ("timestamp,input_length,output_length", ("0,1,1", "1000,1,1", "2000,1,1")),
    ],
)
def test_a_unit_that_cannot_be_told_is_asked_for(tmp_path: Path, head: str, times: Sequence[object]) -> None:
    with pytest.raises(ValueError, match="; give --replay-unit"):
        trace(tmp_path, "a.csv", csv_of(head, times))
    assert trace(tmp_path, "a.csv", csv_of(head, times), unit="ms").unit == "ms"


def test_a_unit_that_is_given_goes_before_all_and_one_that_cannot_be_is_refused(tmp_path: Path) -> None:
    lines = [MOONCAKE.format(t) for t in MINUTE]
    assert trace(tmp_path, "a.jsonl", lines, unit="us").times_s[-1] == pytest.approx(0.06)
    for number, shown in (("1700000000000", "1,700,000,000,000"), ("1e300", "1e\\+300")):
        with pytest.raises(ValueError, match=rf"begins at {shown} s, .* another --replay-unit"):
            trace(tmp_path, "b.csv", csv_of("time_s", [number]))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (csv_of("time,time_ms", ["0,0"]), "line 2: time is given twice; leave out time_ms"),
        (['{"time": 0}', '{"time_ms": 5}'], "line 2: time_ms has numbers, and time numbers in line 1"),
        (
            ['{"time": 0}', '{"time": "2026-11-26T09:00Z"}'],
            "line 2: time has ISO 8601 with a zone, and time nu",
        ),
        # an hour apart, or a second
        (
            csv_of("time", ["2026-11-26T09:00:00+01:00", "2026-11-26T09:00:01"]),
            "line 3: time has ISO 8601, and time ISO 8601 with a zone in line 2",
        ),
        (csv_of("time_to_first_token_ms", [0]), "line 2: has no time"),
    ],
)
def test_columns_of_times_that_do_not_fit(tmp_path: Path, lines: list[str], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        trace(tmp_path, f"a.{'jsonl' if '{' in lines[0] else 'csv'}", lines)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("column", ["time", "timestamp", "ts", "latency_ms", "times", "t", "duration_s"])
def test_columns_without_a_unit(column: str) -> None:
    assert named_unit(column) == ""


@pytest.mark.parametrize("value", ["-1", -0.5, "nan", "inf", True, None, "noon", [1], "1970-01-02"])
def test_no_times(value: object) -> None:
    with pytest.raises(ValueError, match=r"^time is "):
        read_time(value)


@pytest.mark.parametrize(
    ("times", "resolution_s"),
    [
        ([0, 0, 1, 4, 4], 1),
        ([0, 60, 60, 240], 60),
        ([0, 0.1, 0.1, 0.7], 0.1),
        ([0.5, 1.5, 1.5, 9.5], 1),
        # too few different times to tell a clock from chance
        ([0, 0, 0], 0),
        ([0, 60, 60], 0),
        # milliseconds are as exact as anybody needs
        ([0, 0.001, 0.002, 0.007], 0),
        ([0.05 * tick for tick in range(1, 30) for _ in range(3)], 0.05),
        ([7 * tick for tick in range(30)], 1),
    ],
)
def test_a_resolution_is_that_of_a_clock(times: list[float], resolution_s: float) -> None:
    assert find_resolution(np.array(times)) == resolution_s


def test_bursts_in_step_with_no_clock_are_asked_about(tmp_path: Path) -> None:
    lines = [MOONCAKE.format(3_000 * tick) for tick in range(20) for _ in range(4)]
    with pytest.raises(ValueError, match=r"every 3 s, .* --replay-resolution 3 to spread them, or 0"):
        trace(tmp_path, "a.jsonl", lines)
    spread_out, kept = (trace(tmp_path, "a.jsonl", lines, resolution_s=of) for of in (3.0, 0.0))
    assert len(np.unique(spread_out.times_s)) == 80
    assert np.unique(kept.times_s).tolist() == [3 * tick for tick in range(20)]


def test_rows_of_one_time_are_spread_over_the_resolution_alike_each_time() -> None:
    rows = [TraceRow(second, items) for second in range(12) for items in range(1, 31)]
    made, again, other = (ArrivalTrace.of(rows, seed=seed) for seed in (0, 0, 1))
    assert made.times_s.tolist() == again.times_s.tolist() != other.times_s.tolist()
    assert np.floor(made.times_s).tolist() == [row.time_s for row in rows]
    assert made.items.tolist() == [row.items for row in rows], "in their order"
    gaps = np.diff(made.times_s)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.2), "as independent requests come"
    assert "360 rows" in made.notes[0]
    kept = ArrivalTrace.of(rows, resolution_s=0.0)
    assert np.unique(kept.times_s).tolist() == list(range(12))
    assert kept.notes == ()


def queued_p95_s(times_s: Sequence[float], service_s: float) -> float:
    """The latency at p95 of a server that answers one request at a time."""
    free_s, latencies = 0.0, []
    for at_s in sorted(times_s):
        free_s = max(at_s, free_s) + service_s
        latencies.append(free_s - at_s)
    return float(np.percentile(latencies, 95))


def test_whole_seconds_meet_the_queue_that_the_exact_times_met() -> None:
    exact = poisson(rate=30, seconds=120, seed=5)
    whole = ArrivalTrace.of(TraceRow(float(second)) for second in np.floor(exact))
    bursts, wanted = (queued_p95_s(times.tolist(), 0.01) for times in (np.floor(exact), exact))
    assert queued_p95_s(whole.times_s.tolist(), 0.01) == pytest.approx(wanted, rel=0.15)
    assert bursts > 10 * wanted


def test_a_row_that_is_alone_stays_where_it_is() -> None:
    times_s, moved = spread(np.array([0.0, 1.0, 1.0, 5.0]), 1.0)
    assert (times_s[0], times_s[3], moved) == (0, 5, 2)
    assert 1 <= times_s[1] < times_s[2] < 2
