"""What a request cost the generator, and which client made and sent it."""

import json
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.fold.health import COARSE, MOSTLY_FIXED
from reports.render.markdown import escaped
from reports.study.study import load_study, notices
from reports.summary.summary import Summary
from reports.topics.runs.workers import HEALTH_HEADS, generator_health
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, health_line
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
LOADS = {"w0": [20 * MS] * 600, "w1": [20 * MS] * 600}
LIBRARY, PREPARED = {"client": "library"}, {"client": "prepared"}
BUILT = "were built while measuring and sent by the client library (client: library): both count in"


def told(worker: str, at: int, cpu_pct: float, span_ms: int, **more: object) -> Record:
    """What a worker says of a part of the measure phase."""
    return health_line({}, worker, FIRST_SECOND + at, cpu_pct=cpu_pct, span_ns=span_ms * MS, **more)


def two_workers(book: Book) -> None:
    """1,200 successes and 300 failures; 0.8 s and 0.4 s of processor time in the measure phase."""
    tag = book.add("onnx-http", 1, 8, LOADS, axes=PREPARED, failures={"timeout": 150})
    lines = (
        told("w0", -1, 99.0, 1_000, phase="warm-up"),
        told("w0", 0, 40.0, 1_000),
        told("w0", 1, 80.0, 500),
        told("w0", 1, 99.0, 500, phase="drain"),
        told("w1", 0, 20.0, 1_000),
        told("w1", 1, 20.0, 1_000),
    )
    book.records += [line | tag for line in lines]


def one_run(folder: Path, *lines: Record, requests: int = 1_000) -> Summary:
    """A run of one worker with so many successes and these records of its health."""
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * requests})
    book.records += [line | tag for line in lines]
    return load_study(book.write(folder)).runs[0]


def test_all_workers_time_in_the_measure_phase_goes_over_what_came_back(tmp_path: Path) -> None:
    book = Book()
    two_workers(book)
    run = load_study(book.write(tmp_path)).runs[0]
    assert run.counts.requests == 1_500
    assert run.client_cpu.ns == pytest.approx(1.2e9 / 1_500)
    assert run.client_cpu.doubts == ()


def test_it_is_unknown_where_a_worker_that_sent_does_not_tell(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 8, LOADS)
    book.records.append(told("w0", 0, 40.0, 1_000) | tag)
    assert load_study(book.write(tmp_path)).runs[0].client_cpu.ns is None


def test_a_worker_that_sent_nothing_costs_too(tmp_path: Path) -> None:
    run = one_run(tmp_path, told("w0", 0, 30.0, 10_000), told("w1", 0, 2.0, 10_000))
    assert run.client_cpu.ns == pytest.approx(3.2e9 / 1_000)


@pytest.mark.parametrize(
    ("lines", "requests"),
    [((), 1_000), ((told("w0", 0, 40.0, 1_000),), 0), ((told("w0", 0, 0.0, 1_000),), 1_000)],
    ids=["nobody told", "nothing came back", "no time was seen"],
)
def test_it_is_unknown_where_there_is_nothing_to_divide(
    tmp_path: Path, lines: tuple[Record, ...], requests: int
) -> None:
    run = one_run(tmp_path, *lines, requests=requests)
    assert (run.client_cpu.ns, run.client_cpu.doubts) == (None, ())


@pytest.mark.parametrize(
    ("cpu_pct", "span_ms", "in_flight", "doubts"),
    [
        # the ticks are 20 ms of 5 s, the edges 0.2 s of 10 s
        (50.0, 10_000, 4, ()),
        (10.0, 10_000, 4, ()),
        (9.9, 10_000, 4, (MOSTLY_FIXED,)),
        # 0.2 s of 1.2 s and 20 ms of 1.2 s; of 1 s each
        (100.0, 1_200, 1, ()),
        (100.0, 1_000, 1, (COARSE,)),
        # 20 ms of 0.1 s
        (5.0, 2_000, 1, (COARSE, MOSTLY_FIXED)),
        # of 1,000 requests so many were under way at the end
        (50.0, 10_000, 170, ()),
        (50.0, 10_000, 180, (COARSE,)),
    ],
)
def test_it_says_where_it_is_coarse_and_where_mostly_fixed_work(
    tmp_path: Path, cpu_pct: float, span_ms: int, in_flight: int, doubts: tuple[str, ...]
) -> None:
    run = one_run(tmp_path, told("w0", 0, cpu_pct, span_ms, in_flight=in_flight))
    assert run.client_cpu.ns == pytest.approx(cpu_pct / 100 * span_ms * MS / 1_000)
    assert run.client_cpu.doubts == doubts


def test_the_table_and_study_json_have_client_and_cost(tmp_path: Path) -> None:
    book = Book()
    two_workers(book)
    tag = book.add("onnx-grpc", 1, 1, {"w0": [MS] * 100}, axes=LIBRARY)
    book.records.append(told("w0", 0, 5.0, 2_000) | tag)
    book.add("onnx-grpc", 4, 1, {"w0": [MS] * 100})
    table = generator_health(load_study(book.write(tmp_path)))
    assert HEALTH_HEADS[:4] == ("run", "client", "workers", "CPU a request, µs")
    assert [row[:4] for row in texts(table)] == [
        ["onnx-http/b1/c8", "prepared", "2", "800"],
        ["onnx-grpc/b1/c1", "library", "1", "1,000"],
        ["onnx-grpc/b4/c1", "–", "1", "–"],
    ]
    assert [notes_at(table, row, 3) for row in range(3)] == [[], [COARSE, MOSTLY_FIXED], []]
    assert table.numeric == frozenset(range(2, 12))
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    runs = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))["runs"]
    assert [run["client_cpu_ns"] for run in runs] == [pytest.approx(8e5), pytest.approx(1e6), None]
    assert [run["client_cpu_doubts"] for run in runs] == [[], [COARSE, MOSTLY_FIXED], []]


@pytest.mark.parametrize(
    ("clients", "said"),
    [
        (["library", "library"], [f"Requests {BUILT} every latency."]),
        (["prepared", "library"], [f"Requests of 1 of 2 runs {BUILT} their latencies."]),
        (["prepared", "prepared"], []),
        (["", "prepared"], []),
    ],
)
def test_the_report_says_at_its_top_that_a_client_library_made_the_requests(
    tmp_path: Path, clients: list[str], said: list[str]
) -> None:
    book = Book()
    for level, client in enumerate(clients, 1):
        book.add("onnx-http", 1, level, {"w0": [MS] * 10}, axes={"client": client})
    book.footer()
    assert list(notices(load_study(book.write(tmp_path)))) == said
    assert main(["show", str(tmp_path), "--quiet"]) == 0
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.count("> **Note:**") == len(said)
    assert all(escaped(sentence) in summary for sentence in said)


def test_a_run_that_never_began_is_not_counted_among_those_of_a_client_library(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, axes=PREPARED)
    book.plan("onnx-http", 1, 2, axes=LIBRARY)
    book.footer()
    assert list(notices(load_study(book.write(tmp_path)))) == ["Not started: 1 of 2 planned runs."]
