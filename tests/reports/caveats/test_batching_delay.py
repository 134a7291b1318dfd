"""What one user's request waits for at a server that batches, and where that is said."""

from pathlib import Path
from typing import Any

import pytest

from reports.caveats.attribution import attribution_caveats
from reports.page.disclosures import disclosures
from reports.page.study_table import number
from reports.page.table import Footnotes
from reports.stats.figures import compute_ms, images_per_s, in_ms, mean_ms, p50_ms
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.limit_runs import MS, at_server
from tests.reports.lines import triton
from tests.reports.parts import changed

TRITON = {"instances": 1, "max_batch": 32, "batching": True, "batching_delay_ns": 10 * MS}
SAID = "a lone request pays the batching delay in full; --queue-delay-us 0 would save 10.0 ms of 16.0 ms"
NOTE = "a lone request pays the batching delay in full: --queue-delay-us 0 would save 10.0 ms"


def lone(queue: float = 10.1, serving: dict[str, Any] | None = None, **changes: Any) -> Summary:
    """One user of an emulated A100: 10 ms for others, 4 of computing, 2 elsewhere."""
    known = {"level": 1, "in_flight": 1.0, "latency_p50_ns": 16 * MS, "measure_ns": None}
    return at_server(queue, 4, 16, serving=TRITON | (serving or {}), **known | changes)


def doubts(run: Summary) -> list[str]:
    return [doubt.text for doubt in attribution_caveats(run) if doubt.code == "batching-delay"]


def test_one_user_pays_the_delay() -> None:
    assert doubts(lone()) == [SAID]


@pytest.mark.parametrize(
    "run",
    [
        lone(level=2),
        lone(load="open"),
        lone(serving={"batching": False}),
        lone(serving={"batching_delay_ns": 0}),
        lone(serving={"batching_delay_ns": None}),
        lone(batch=32),  # fills a batch by itself
        lone(queue=4.99),  # a batcher that prefers this size sends it on
        lone(queue=15.01),  # others are there, too
        lone(server_queue_ns=None),
        lone(serving={"batching": None}),
    ],
)
def test_others_do_not(run: Summary) -> None:
    assert doubts(run) == []


@pytest.mark.parametrize(("queue", "saved"), [(5, "5.00"), (6, "6.00"), (10, "10.0"), (15, "10.0")])
def test_what_it_would_save_is_what_was_waited(queue: float, saved: str) -> None:
    assert f"would save {saved} ms of 16.0 ms" in doubts(lone(queue, batch=31))[0]
    assert doubts(lone(queue, {"max_batch": None}, batch=32))


def test_it_stands_beside_each_rate_and_latency() -> None:
    run = changed(lone(), caveats=tuple(attribution_caveats(lone())), images_per_s=62.5)
    for value in (images_per_s, p50_ms, mean_ms, in_ms("service.mean_ns")):
        notes = Footnotes()
        assert number([run], value, notes).marks == (1,)
        assert notes.texts == (NOTE,)
    assert number([run], compute_ms, notes).marks == ()
    assert number([lone(level=2)], images_per_s, notes).marks == ()
    assert notes.texts == (NOTE,)


def a_book(*endpoints: str, **told: object) -> Book:
    """One user of each endpoint, whose requests wait for 10 of 16 ms; Triton's say for what."""
    book = Book()
    for name in endpoints:
        tag = book.add(name, 1, 1, {"w0": [16 * MS] * 40}, counters=triton(40, 1, 4 * MS, 10 * MS))
        if name.startswith("onnx"):
            book.serving(tag, **{"batching_delay_ns": 10 * MS} | told)
    return book


def test_it_is_said_once_above_endpoints_that_do_not_wait(tmp_path: Path) -> None:
    study = load_study(a_book("onnx-http", "onnx-grpc", "pytorch-http").write(tmp_path))
    assert disclosures(study, study.endpoints)[-1:] == (f"onnx-grpc and onnx-http: {NOTE}.",)
    codes = {run.endpoint: [doubt.code for doubt in run.caveats] for run in study.runs}
    assert "batching-delay" in codes["onnx-http"]
    assert "batching-delay" not in codes["pytorch-http"]


def test_it_is_not_said_above_endpoints_that_all_wait_or_do_not(tmp_path: Path) -> None:
    alike = load_study(a_book("onnx-http", "onnx-grpc").write(tmp_path / "all"))
    none = load_study(a_book("onnx-http", "pytorch-http", batching_delay_ns=0).write(tmp_path / "none"))
    for study in (alike, none):
        assert not [text for text in disclosures(study, study.endpoints) if "batching delay" in text]
