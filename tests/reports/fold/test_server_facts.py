"""A server's set-up, memory and trace, as the records of a run tell them."""

from typing import Any

import pytest

from reports.fold.records import readable
from reports.fold.server_facts import (
    Memory,
    MemoryReading,
    Percentiles,
    Serving,
    memory_of,
    serving_gap,
    serving_of,
    trace_of,
)
from tests.reports.lines import Record, encoded

MS = 1_000_000
FAILED = {"kind": "serving", "error": "no answer"}
SET_UP: dict[str, Any] = {
    "instances": 2,
    "max_batch": 8,
    "batching": True,
    "batching_delay_ns": 500,
    "steps": {"a": 1},
}


@pytest.mark.parametrize(
    ("records", "serving", "gaps"),
    [
        ([], None, []),
        ([FAILED, SET_UP], Serving(**SET_UP), []),
        ([SET_UP, {"instances": 3}], Serving(instances=3), []),
        ([SET_UP, FAILED], None, ["how the server is set up is not known: no answer"]),
    ],
)
def test_the_last_word_on_a_set_up_stands(
    records: list[Record], serving: Serving | None, gaps: list[str]
) -> None:
    assert serving_of(records) == serving
    assert [(gap.code, gap.text) for gap in serving_gap(records)] == [("probe-gap", text) for text in gaps]


def held(when: str, resident_bytes: int, **more: Any) -> Record:
    line = {"kind": "memory", "when": when, "server": f"onnx {when}", "resident_bytes": resident_bytes}
    return line | {"processes": 4, "how": "pss"} | more


def test_memory_is_that_before_and_after_by_the_last_reading_of_each() -> None:
    some = {"anonymous_bytes": 1, "file_bytes": 2, "shared_bytes": 3, "gpu_memory_bytes": 4}
    before, first, after = held("before", 70), held("after", 80), held("after", 90, how="rss", **some)
    then = MemoryReading(resident_bytes=70, processes=4, how="pss")
    now = MemoryReading(resident_bytes=90, processes=4, how="rss", **some)
    assert memory_of([before, first, after]) == Memory("onnx after", then, now)
    assert memory_of([after, before]) == Memory("onnx before", then, now)
    assert memory_of([before]) == Memory("onnx before", then, None)
    assert (memory_of([]), memory_of([held("later", 1)])) == (None, None)


def test_a_trace_has_the_parts_that_it_knows_and_that_were_seen() -> None:
    texts = {
        "queue": encoded([MS] * 200),
        "outside": encoded([MS] * 94 + [9 * MS] * 6),
        "strange": encoded([1]),
    }
    lines = [
        {"kind": "trace", "requests": requests, "joined": 200, "histograms": texts | {"input": encoded([])}}
        for requests in (400, 250)
    ]
    found = trace_of(readable(lines))
    assert found is not None
    assert (found.requests, found.joined, [*found.parts]) == (250, 200, ["queue", "outside"])
    assert found.parts["outside"] == Percentiles(
        pytest.approx(MS, rel=1e-3), pytest.approx(9 * MS, rel=1e-3), None
    )
