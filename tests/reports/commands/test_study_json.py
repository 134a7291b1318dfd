"""study.json: each number of a run under its own name, and what the ledger's header and end say."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from reports.page.page import Page
from reports.render.study_json import render_json
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.gates.outcomes import FAILED
from tests.reports.lines import health_line

MS = 1_000_000


def test_each_number_of_a_run_has_its_own_name(tmp_path: Path) -> None:
    book = Book()
    axes = {
        "workers": 4,
        "hosts": 2,
        "instances": 3,
        "channels": "pool:4",
        "queue_delay_us": 700,
        "variant": "v",
    }
    tag = book.add_open(
        "onnx-http", 50, {"w0": [10 * MS] * 300, "w1": [30 * MS] * 100}, late=7, dropped=5,
        failures={"timeout": 2, "connection": 1}, arrivals="poisson", axes=axes, repeat=2,
    )  # fmt: skip
    for record in book.of(tag):
        if record["kind"] == "drained":
            record["abandoned"] = 4
    for worker, cpu, lag in (("w0", 30.0, MS), ("w1", 60.0, 9 * MS)):
        book.records.append(health_line(tag, worker, lags_ns=[lag] * 40, cpu_pct=cpu, gc_max_ns=3 * MS))
    book.cold("onnx-http", 8, 900 * MS, 90 * MS)
    book.footer("interrupted", "Ctrl-C")
    study = load_study(book.write(tmp_path))
    page = Page(title="t", facts="", notices=("a notice",), sections=(), commands=(), banner=("a banner",))
    told = json.loads(render_json(study, page, [FAILED]))
    (run,) = told["runs"]
    names = "cell repeat status arrivals requests timeouts abandoned late due dropped workers workers_asked "
    names += "hosts_asked instances_asked channels queue_delay_us variant worker_cpu_pct gc_max_ns"
    assert {name: run[name] for name in names.split()} == {
        **{"cell": "onnx-http/b1/r50/v", "repeat": 2, "status": "done", "arrivals": "poisson"},
        **{"requests": 406, "timeouts": 4, "abandoned": 8, "late": 14, "due": 416, "dropped": 10},
        **{"workers": 2, "workers_asked": 4, "hosts_asked": 2, "instances_asked": 3},
        **{"channels": "pool:4", "queue_delay_us": 700, "variant": "v", "worker_cpu_pct": 60.0},
        **{"gc_max_ns": 3 * MS},
    }
    assert run["failures"] == {"timeout": 4, "connection": 2}
    assert run["latency_mean_ns"] == pytest.approx(15 * MS, rel=1e-3)
    assert run["loop_lag_p99_ns"] == pytest.approx(9 * MS, rel=1e-2)
    assert told["cold"] == [
        {"endpoint": "onnx-http", "batch": 8, "first_ns": 900 * MS, "second_ns": 90 * MS, "reloaded": None}
    ]
    ended = ("status", "reason", "cut_line", "inconclusive", "notices", "banner", "verdicts", "study", "size")
    assert [told[name] for name in ended] == [
        *(
            "interrupted",
            "Ctrl-C",
            False,
            True,
            ["a notice"],
            ["a banner"],
            [asdict(FAILED)],
            "step7",
            "quick",
        )
    ]
