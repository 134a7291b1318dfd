"""Ledgers that were edited or damaged: one sentence, whatever is wrong with them, and nothing written."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.fold.server import server_side
from reports.fold.windows import Windows
from reports.study.study import load_study
from reports.topics.published.hypotheses import pairs
from tests.reports.builder import Book
from tests.reports.damage import edited, small, with_each, without
from tests.reports.example import example
from tests.reports.lines import Record, encoded
from tests.reports.pages import crowded
from tests.reports.rates_example import rates_example


def planned(times: int, **changes: Any) -> Callable[[Record], Record]:
    """The first run of the plan so many times."""
    return lambda header: header | {"plan": [header["plan"][0] | changes] * times}


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        ("cold", without("endpoint"), "a record is not what a ledger holds (KeyError('endpoint'))"),
        ("cold", without("batch"), "a record is not what a ledger holds (KeyError('batch'))"),
        ("window", edited(failures=None), "line 6: failures is None, and must be whole numbers from 0"),
        ("window", edited(ok=6), "a record is not what a ledger holds (ValueError('a window of 6 successes"),
        ("caveat", edited(code=None), "line 17: code is None, and must be a text"),
        ("health", edited(cpu_pct=[40]), "a record is not what a ledger holds (TypeError("),
        ("window", edited(images=10**400), "line 6: images is 1000000000"),
        (
            "header",
            planned(2),
            "a record is not what a ledger holds (ValueError('repeat 1 of onnx-grpc/b1/c1",
        ),
        (
            "header",
            planned(1, batch=0),
            "a record is not what a ledger holds (ValueError('batch of a planned",
        ),
        ("header", without("size"), "the header lacks size: run the study again."),
    ],
)
def test_what_a_ledger_does_not_hold_is_refused_by_both_commands(
    *,
    kind: str,
    change: Callable[[Record], Record],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = with_each(tmp_path / "study", kind, change)
    out = tmp_path / "out"
    shown = main(["show", str(folder), "--quiet"])
    said = capsys.readouterr().err
    compared = main(["compare", "step7-a100", str(folder), "--out", str(out), "--quiet"])
    assert (shown, said.startswith(f"inferswarm: {folder}/ledger.jsonl: {sentence}")) == (2, True)
    assert [path.name for path in folder.iterdir()] == ["ledger.jsonl"]
    assert (compared, out.exists()) == ((2, False) if kind != "cold" else (0, True))


def test_a_field_of_the_header_that_is_not_required_may_be_null(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("options", "fingerprint", "images", "links", "hosts"))
    assert main(["show", str(with_each(tmp_path / "study", "header", edited(**nothing))), "--quiet"]) == 0


def test_a_developer_sees_where_an_error_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_each(tmp_path / "study", "cold", without("endpoint"))
    monkeypatch.setattr("reports.ledger.ledger.developing", lambda: True)
    with pytest.raises(KeyError, match="endpoint"):
        main(["show", str(folder), "--quiet"])


def test_half_a_character_is_shown_as_a_question_mark(tmp_path: Path) -> None:
    command = "locust --results-dir caf\udce9 \U0001f600"
    folder = with_each(tmp_path / "study", "header", edited(options={"command": command}))
    assert main(["show", str(folder), "--quiet"]) == 0
    assert "locust --results-dir caf? \U0001f600" in (folder / "report.html").read_text(encoding="utf-8")


def nothing_in(study: Book, **zeros: Any) -> None:
    """Lets no window of HTTP's serial runs have counted something."""
    for record in study.records:
        if record["kind"] == "window" and record["cell"] == "onnx-http/b1/c1" and record["ok"] == 20:
            record |= zeros


def test_successes_without_an_image_have_no_rate(tmp_path: Path) -> None:
    book = small()
    nothing_in(book, images=0)
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 0
    run = next(run for run in load_study(tmp_path).runs if run.cell == "onnx-http/b1/c1")
    assert (run.counts.requests, run.counts.images, run.counts.images_per_s) == (40, 0, None)
    assert [share.images_per_s for share in run.per_worker] == [None]


def test_a_latency_of_nothing_has_a_median_and_is_under_no_ratio(tmp_path: Path) -> None:
    book = small()
    none = encoded([0] * 20)
    nothing_in(book, histograms={"latency": none, "service_time": none, "send_delay": none})
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 0
    runs = [run for run in load_study(tmp_path).runs if run.batch == 1 and run.level == 1]
    assert {run.latency.p50_ns for run in runs if run.endpoint == "onnx-http"} == {0.0}
    assert not list(pairs(runs, lambda run: run.latency.p50_ns))
    out = tmp_path / "out"
    assert main(["compare", str(tmp_path), str(tmp_path), "--out", str(out), "--quiet"]) == 0


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("make", [example, rates_example, crowded])
def test_latencies_of_nothing_have_a_report(tmp_path: Path, make: Callable[[], Book], odd: int) -> None:
    """In one of two windows, so that nothing is compared with something."""
    book = make()
    windows = [record for record in book.records if record["kind"] == "window" and record["ok"]]
    for record in windows[odd::2]:
        none = encoded([0] * record["ok"])
        record["histograms"] |= dict.fromkeys(("latency", "service_time", "send_delay"), none)
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 0


def test_parts_that_no_answer_stated_are_unknown() -> None:
    windows = Windows(server_count=0, server_ns=Counter(compute=5))
    assert server_side([], windows, "done").total_ns is None
    assert server_side([], replace(windows, server_count=1), "done").total_ns == 5


def test_a_worker_that_failed_to_drain_has_said_no_end_of_its_phase(tmp_path: Path) -> None:
    book = small()
    for record in book.records:
        if record["kind"] == "drained" and record["cell"] == "onnx-http/b1/c1":
            for name in ("users", "finished", "abandoned"):
                del record[name]
            record["error"] = "OSError: [Errno 24] Too many open files"
    run = next(run for run in load_study(book.write(tmp_path)).runs if run.cell == "onnx-http/b1/c1")
    assert [one.text for one in run.caveats if one.code == "cut-short"] == [
        "no end of the measure phase from w0"
    ]
