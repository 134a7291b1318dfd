"""The thresholds of the examples and of .ci/run can be kept, and broken, by such studies as they are for."""

from pathlib import Path

import pytest

from reports.gates.verdict import Verdict, exit_code
from tests.reports.builder import Book
from tests.reports.gates.book import at_other_times, judged
from tests.reports.lines import health_line

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent.parent
STEP7 = (ROOT / "examples/ci/thresholds.toml").read_text()
REGRESSION = (ROOT / "examples/ci/regression.toml").read_text()
OWN = (ROOT / ".ci/thresholds.toml").read_text()
MS = 1_000_000
JITTER = (1.0, 0.98, 1.02, 1.01, 0.99)
REQUESTS = 40
"""Of a run of step 7 in its quick size."""


def step7(failed: str = "", **slower: float) -> Book:
    """Five repeats of each endpoint with one user and with eight; some are so much slower, one fails once."""
    book = Book()
    ways = ("pytorch-http", "onnx-http", "onnx-grpc", "openvino-http", "openvino-grpc")
    for way in ways:
        book.endpoint(way, "127.0.0.1:8010")
        for level in (1, 8):
            for repeat, jitter in enumerate(JITTER, 1):
                each_ns = round(60 * MS * level * jitter * slower.get(way.replace("-", "_"), 1.0))
                failures = {"timeout": 1} if (way, level, repeat) == (failed, 1, 1) else {}
                requests = {"w0": [each_ns] * REQUESTS}
                tag = book.add(way, 1, level, requests, repeat=repeat, failures=failures)
                book.records.append(health_line(tag, "w0"))
    book.footer()
    return book


def serious(verdicts: list[Verdict], outcome: str) -> set[str]:
    return {verdict.cell for verdict in verdicts if verdict.serious and verdict.outcome == outcome}


def test_a_quick_step7_can_pass(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, STEP7, step7())
    assert exit_code(verdicts) == 0
    # ten cells without a failure, four ratios of gRPC, two of engines, ten generators
    assert len([verdict for verdict in verdicts if verdict.serious]) == 10 + 4 + 2 + 10


def test_a_quick_step7_fails_by_its_ratios_and_by_a_failed_request(tmp_path: Path) -> None:
    verdicts = judged(tmp_path / "slow", STEP7, step7(onnx_grpc=1.4))
    assert serious(verdicts, "fail") == {f"onnx-grpc/b1/c{users} / onnx-http/b1/c{users}" for users in (1, 8)}
    failed = judged(tmp_path / "failed", STEP7, step7("pytorch-http"))
    assert serious(failed, "fail") == {"pytorch-http/b1/c1"}


def test_a_regression_is_one_beyond_what_is_tolerated(tmp_path: Path) -> None:
    def outcomes(grpc_ms: float) -> dict[str, str]:
        now = at_other_times(10, 10, 10, grpc_ms)[-1]
        found = judged(tmp_path / f"{grpc_ms}", REGRESSION, now, baseline=at_other_times())
        of_grpc = [verdict for verdict in found if verdict.cell == "onnx-grpc/b1/c1" and verdict.ratio]
        return {verdict.column: verdict.outcome for verdict in of_grpc}

    assert outcomes(10.0) == {"images_per_s": "pass", "latency_p50_ms": "pass", "latency_p95_ms": "pass"}
    # its requests are 15 % slower, and as many
    assert outcomes(11.5) == {"images_per_s": "pass", "latency_p50_ms": "fail", "latency_p95_ms": "fail"}


def floors(http_ms: float, grpc_ms: float) -> Book:
    """Open-loop load on the null model, three repeats of each."""
    book = Book()
    for way, each_ms in (("emulated-http-floor", http_ms), ("emulated-grpc-floor", grpc_ms)):
        book.endpoint(way, "127.0.0.1:8030")
        for repeat, jitter in enumerate(JITTER[:3], 1):
            book.add_open(way, 50, {"w0": [round(each_ms * jitter * MS)] * 100}, repeat=repeat)
    book.footer()
    return book


def test_the_own_gate_holds_for_a_client_as_it_is_and_breaks_for_one_twice_as_slow(tmp_path: Path) -> None:
    for grpc_ms in (2.8 * 1.13, 2.8 * 1.30):
        assert exit_code(judged(tmp_path / f"as-is-{grpc_ms}", OWN, floors(2.8, grpc_ms))) == 0
        slow_grpc = judged(tmp_path / f"grpc-{grpc_ms}", OWN, floors(2.8, 2 * grpc_ms))
        assert serious(slow_grpc, "fail") == {"emulated-grpc-floor/b1/r50 / emulated-http-floor/b1/r50"}
        slow_http = judged(tmp_path / f"http-{grpc_ms}", OWN, floors(2 * 2.8, grpc_ms))
        assert serious(slow_http, "fail") == {"emulated-http-floor/b1/r50 / emulated-grpc-floor/b1/r50"}
