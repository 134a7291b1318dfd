"""What the server counted, and what is said where it could not be asked."""

from pathlib import Path
from typing import Any

import pytest

from tests.reports.builder import Book
from tests.reports.lines import triton
from tests.reports.study.test_fold import MS, codes, folded, text_of


@pytest.mark.parametrize(
    ("counted", "code", "text"),
    [
        (triton(101, 1, MS), "counts-mismatch", "sent 100 requests, the server counted 101"),
        (
            triton(99, 1, MS),
            "several-servers",
            "the server counted only 99 of 100 requests that succeeded: several servers may stand behind "
            "this address, or a proxy answers some",
        ),
        (
            {"requests": -990},
            "counters-reset",
            "the server's counters began again, and no connection broke: its model was loaded anew, or "
            "another server took over",
        ),
        (
            {"requests": -3},  # one that has just started cannot have counted 997 of 100
            "several-servers",
            "the counters went up and down from reading to reading, as those of several servers do",
        ),
        (None, "probe-gap", "the server was not asked before the measure phase"),
    ],
)
def test_the_server_is_doubted(tmp_path: Path, counted: dict[str, Any] | None, code: str, text: str) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=counted)
    run = folded(book, tmp_path)
    assert text_of(run, code) == text
    assert (run.server.total_ns is None) == (counted is None or "queue_ns" not in counted)
    assert run.tainted == (code in ("counts-mismatch", "counters-reset"))


@pytest.mark.parametrize(
    ("status", "read", "gap"),
    [
        ("done", 1, "the server was not asked after the measure phase"),
        ("aborted", 1, None),
        ("failed", 0, None),
        ("failed", 2, None),
    ],
)
def test_a_run_that_ended_badly_is_no_gap(tmp_path: Path, status: str, read: int, gap: str | None) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS), status=status)
    readings = [record for record in book.of(tag) if record["kind"] == "server"]
    for record in readings[read:]:
        book.records.remove(record)
    run = folded(book, tmp_path)
    assert [doubt.text for doubt in run.caveats if doubt.code == "probe-gap"] == ([gap] if gap else [])
    assert run.server.compute_ns == (MS if read == 2 else None)


@pytest.mark.parametrize(
    ("when", "kind", "code"),
    [
        ("after", "refused", "server-lost"),
        ("after", "timeout", "server-lost"),
        ("after", "rejected", "probe-gap"),
        ("before", "refused", "probe-gap"),
    ],
)
def test_a_server_that_answers_no_more_is_lost(tmp_path: Path, when: str, kind: str, code: str) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS))
    error = {"error": f"the counters of onnx-http cannot be read ({kind})", "error_kind": kind}
    book.records.append({"kind": "server", **tag, "when": when, **error})
    run = folded(book, tmp_path)
    assert set(codes(run)) & {"server-lost", "probe-gap"} == {code}
    assert text_of(run, code).endswith(f"the counters of onnx-http cannot be read ({kind})")
    assert run.tainted == (code == "server-lost")


@pytest.mark.parametrize(("counts", "lost"), [([15, 50], False), ([15, 2], True), ([2, 50], True)])
def test_a_restart_is_found_though_it_has_caught_up(tmp_path: Path, counts: list[int], lost: bool) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS))
    for record, count in zip((r for r in book.of(tag) if r["kind"] == "server"), (10, 90), strict=True):
        record["counters"]["requests"] = count
    for second, count in enumerate(counts):
        reading = {"server": {"requests": count}}
        book.records.append({"kind": "sample", **tag, "phase": "measure", "second": second, **reading})
    assert ("counters-reset" in codes(folded(book, tmp_path))) == lost


NEW, OLD = "h/1795251600.000", "h/1795200000.000"


@pytest.mark.parametrize(
    ("told", "failures", "missing", "code"),
    [
        ({}, {}, (), "counters-reset"),
        ({"version": ("1", "1")}, {}, (), "counters-reset"),
        ({"version": ("1", "2")}, {}, (), "counters-reset"),
        ({"version": ("1", "2")}, {"reset": 3}, (), "counters-reset"),
        ({}, {"rejected": 3}, (), "counters-reset"),
        ({}, {"timeout": 3}, (), "counters-reset"),
        ({}, {"reset": 3}, (), "server-lost"),
        ({}, {"refused": 3}, (), "server-lost"),
        ({}, {}, ("server: reset: closed",), "server-lost"),
        ({}, {}, ("server: timeout", "metrics: reset"), "counters-reset"),
        ({"identity": (OLD, OLD)}, {"reset": 3}, (), "counters-reset"),
        ({"identity": (OLD, NEW)}, {}, (), "server-lost"),
        ({"identity": (OLD, NEW.replace("h/", "g/"))}, {}, (), "counters-reset"),
    ],
)
def test_a_model_that_is_loaded_anew_is_no_restart(
    tmp_path: Path,
    told: dict[str, tuple[str, str]],
    failures: dict[str, int],
    missing: tuple[str, ...],
    code: str,
) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS), failures=failures)
    for at, record in enumerate(record for record in book.of(tag) if record["kind"] == "server"):
        record["counters"] = {name: (0.05 if at else 1) * count for name, count in record["counters"].items()}
        record["counters"]["requests"] = (1_000, 60)[at]
        record |= {name: values[at] for name, values in told.items()}
    if missing:
        lacking = {"kind": "sample", **tag, "phase": "measure", "second": 1, "missing": list(missing)}
        book.records.append(lacking)
    run = folded(book, tmp_path)
    assert [one.code for one in run.caveats if one.code in ("server-lost", "counters-reset")] == [code]
    assert (run.tainted, run.server.compute_ns) == (True, None)


def test_another_version_is_another_model_though_its_counters_grew(tmp_path: Path) -> None:
    for last, reset in (("1", False), ("2", True)):
        book = Book()
        tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS))
        for version, record in zip(
            ("1", last), (r for r in book.of(tag) if r["kind"] == "server"), strict=True
        ):
            record["version"] = version
        run = folded(book, tmp_path)
        assert ("counters-reset" in codes(run), run.server.compute_ns) == (reset, None if reset else MS)


@pytest.mark.parametrize(("queue_ns", "requests", "code"), [(-5, 100, "probe-gap"), (5, 100, None)])
def test_what_falls_while_requests_are_counted_on_is_no_counter(
    tmp_path: Path, queue_ns: int, requests: int, code: str | None
) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters={"requests": requests, "queue_ns": queue_ns})
    run = folded(book, tmp_path)
    doubts = {"probe-gap", "counters-reset", "server-lost", "several-servers"}
    assert doubts & set(codes(run)) == ({code} if code else set())
    assert (run.server.queue_ns, run.server.requests) == (None if code else queue_ns / requests, requests)


def test_a_server_that_was_away_is_lost_whatever_it_has_counted_since(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(100, 1, MS))
    for second, why in enumerate(("refused: [Errno 111]", "timeout: 0.9 seconds", "refused: [Errno 111]")):
        missing = {"missing": [f"server: {why}"]}
        book.records.append({"kind": "sample", **tag, "phase": "measure", "second": second, **missing})
    run = folded(book, tmp_path)
    assert text_of(run, "server-lost") == "nobody listened at the server's address in 2 seconds of the phase"


@pytest.mark.parametrize(
    ("kind", "counted", "doubted"),
    [("refused", 100, False), ("refused", 120, False), ("refused", 99, True), ("refused", 121, True),
     ("server-error", 100, False), ("server-error", 99, True), ("server-error", 120, False)],
)  # fmt: skip
def test_an_unanswered_request_may_never_come(tmp_path: Path, kind: str, counted: int, doubted: bool) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 100}, counters=triton(counted, 1, MS), failures={kind: 20})
    found = codes(folded(book, tmp_path))
    assert bool({"counts-mismatch", "several-servers"} & set(found)) == doubted
    assert ("counts-mismatch" in found) == (counted > 120)


def test_the_pytorch_service_has_other_parts_than_triton(tmp_path: Path) -> None:
    parts = {"decode_ns": 1, "preprocess_ns": 2, "queue_ns": 3, "compute_ns": 4}
    book = Book()
    counters = {"requests": 10} | {name: 10 * MS * value for name, value in parts.items()}
    book.add("pytorch-http", 1, 1, {"w0": [20 * MS] * 10}, counters=counters)
    run = folded(book, tmp_path)
    assert (run.server.total_ns, run.server.queue_ns, run.server.compute_ns) == (10 * MS, 3 * MS, 4 * MS)
    assert run.server.executed_batch is None


def test_failures_do_not_dilute_the_means_of_the_server(tmp_path: Path) -> None:
    book = Book()
    counters = triton(100, 1, 8 * MS) | {"requests": 125}
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 100}, failures={"http-500": 25}, counters=counters)
    run = folded(book, tmp_path)
    assert (run.server.compute_ns, run.server.queue_ns, run.server.total_ns) == (8 * MS, 50_000, 8_100_000)
    assert (run.server.executed_batch, codes(run)) == (1, ["few-samples", "failures"])


def test_a_server_without_a_success_has_no_means(tmp_path: Path) -> None:
    book = Book()
    counters = triton(0, 1, MS) | {"requests": 5}
    book.add("onnx-http", 1, 1, {"w0": []}, failures={"http-500": 5}, counters=counters)
    run = folded(book, tmp_path)
    assert (run.server.total_ns, run.server.compute_ns, run.server.executed_batch) == (None, None, None)
