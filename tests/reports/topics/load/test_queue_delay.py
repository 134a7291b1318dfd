"""A sweep of queue delays: Triton's own batches, the best for a bound, and what repeats do not tell."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.stats.figures import p95_ms
from reports.study.study import Study, load_study
from reports.topics.load.queue_delay import best_delays, delay_finding, fastest, queue_delays, sweeps
from tests.reports.builder import Book
from tests.reports.lines import Record, triton
from tests.reports.open_load import MS, notes_at, texts

REQUESTS = 200


def at_delay(
    book: Book, delay_ms: float, latency_ms: float, executions: int, repeat: int = 1, **more: Any
) -> Record:
    """200 or so many `requests` of 8 users, all as slow, in so many executions of Triton's."""
    requests = more.pop("requests", REQUESTS)
    axes = {"queue_delay_us": round(delay_ms * 1000), "variant": f"delay-{delay_ms:g}ms"}
    counters = triton(requests, 1, MS) | {"executions": executions}
    return book.add(
        "onnx-http",
        more.pop("batch", 1),
        8,
        {"w0": [round(latency_ms * MS)] * requests},
        repeat=repeat,
        axes=axes | more,
        counters=counters,
    )


def swept(folder: Path, latencies: dict[float, Sequence[float]], bound: float = 0) -> Study:
    """Each delay in ms with the latencies of its repeats."""
    book = Book(options={"p95_bound": bound})
    for delay, values in latencies.items():
        for repeat, latency_ms in enumerate(values, 1):
            at_delay(book, delay, latency_ms, REQUESTS // (4 if delay else 1), repeat)
    return load_study(book.write(folder))


def test_each_delay_has_tritons_own_batches_beside_its_rate_and_p95(tmp_path: Path) -> None:
    table = queue_delays(swept(tmp_path, {5: [20, 25], 0: [40, 40]}))
    assert texts(table) == [
        ["onnx-http", "1", "users 8", "0", "200 (200–200)", "40.0 (39.9–40.1)", "1.00", "1.00"],
        ["onnx-http", "1", "users 8", "5", "360 (87–1,500)", "25 (6.1–100)", "4.00", "0.250"],
    ]
    assert table.notes == ()


def test_one_delay_or_none_is_no_sweep(tmp_path: Path) -> None:
    study = swept(tmp_path, {5: [20]})
    assert (queue_delays(study).rows, best_delays(study).rows, delay_finding(study)) == ((), (), "")


def test_loads_that_differ_in_more_than_the_delay_are_apart(tmp_path: Path) -> None:
    book = Book()
    at_delay(book, 0, 20, 200, instances=1)
    at_delay(book, 5, 20, 50, instances=2)
    at_delay(book, 0, 20, 200, batch=4)
    for delay_us in (0, 5000):
        axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us}"}
        book.add("onnx-http-floor", 1, 8, {"w0": [MS] * REQUESTS}, axes=axes)
    assert sweeps(load_study(book.write(tmp_path))) == []


def test_a_search_for_a_rate_is_no_sweep(tmp_path: Path) -> None:
    book = Book(options={"find_rate": "p99<=100"})
    at_delay(book, 0, 20, 200)
    at_delay(book, 5, 20, 50)
    assert sweeps(load_study(book.write(tmp_path))) == []


def test_a_bound_is_kept_at_its_very_value_and_not_by_an_unknown_p95(tmp_path: Path) -> None:
    study = swept(tmp_path, {0: [40, 40.4, 40.2], 5: [60]})
    (sweep,) = sweeps(study)
    slowest = max(p95_ms(run) or 0.0 for run in sweep[0])
    best = fastest(study, sweep, slowest)
    assert best is not None
    assert (best.name, best.fewest, best.compared) == ("0 ms", 3, True)
    assert fastest(study, sweep, slowest - 0.001) is None
    every = fastest(study, sweep)
    assert every is not None
    assert (every.name, every.fewest, every.compared, every.alike) == ("0 ms", 1, False, ())
    book = Book()
    for delay in (0, 5):
        at_delay(book, delay, 20, 50, requests=99)
    few = load_study(book.write(tmp_path / "few"))
    assert fastest(few, sweeps(few)[0], 1_000) is None


def test_repeats_tell_the_best_from_the_others_or_not(tmp_path: Path) -> None:
    study = swept(
        tmp_path, {0: [40, 40.4, 40.2], 1: [20, 20.4, 20.3], 5: [20.1, 20.2, 20.1], 10: [80, 80.4, 80.2]}
    )
    (sweep,) = sweeps(study)
    best = fastest(study, sweep)
    assert best is not None
    assert (best.name, best.alike, best.compared) == ("5 ms", ("1 ms",), True)
    (row,) = texts(best_delays(study))
    assert row == [
        *("onnx-http", "1", "users 8", "5 ms", "397 (395–400)", "20.2 (20.1–20.3)"),
        *("5 ms", "20.2 (20.1–20.3)", "397 (395–400)"),
    ]
    assert notes_at(best_delays(study), 0, 3) == ["not significantly different from 1 ms"]
    assert delay_finding(study) == (
        "Of those tested, onnx-http at batch 1 and 8 users: most images/s with 5 ms (397, "
        "not significantly different from 1 ms), lowest p95 with 5 ms (20.2 ms, not significantly different "
        "from 1 ms)."
    )


def test_one_run_each_tells_nothing_apart(tmp_path: Path) -> None:
    study = swept(tmp_path, {0: [40], 5: [20]})
    one = "with one run behind a figure, this may be chance; rerun with --repeats 5 to confirm"
    assert [notes_at(best_delays(study), 0, column) for column in (3, 6)] == [[one], [one]]
    assert delay_finding(study) == (
        "Of those tested, onnx-http at batch 1 and 8 users: most images/s with 5 ms (400), "
        "lowest p95 with 5 ms (20.0 ms). With one run behind a figure, this may be chance; rerun with "
        "--repeats 5 to confirm."
    )


def test_where_only_some_loads_have_repeats_the_others_say_so_themselves(tmp_path: Path) -> None:
    book = Book()
    for repeat, latency_ms in ((1, 40), (2, 40.4), (3, 40.2)):
        at_delay(book, 0, latency_ms, 200, repeat)
        at_delay(book, 5, latency_ms / 2, 50, repeat)
    at_delay(book, 0, 40, 200, batch=4)
    at_delay(book, 5, 20, 50, batch=4)
    study = load_study(book.write(tmp_path))
    counted = [row[6:] for row in texts(queue_delays(study)) if row[1] == "4"]
    assert counted == [["1.00", "4.00"], ["4.00", "1.00"]]
    said = delay_finding(study)
    assert "5 ms (398), lowest p95 with 5 ms (20.2 ms); onnx-http at batch 4" in said
    assert "lowest p95 with 5 ms (20.0 ms, 1 run). With one run behind a figure" in said


def test_a_p95_of_few_results_is_marked_and_said(tmp_path: Path) -> None:
    book = Book()
    for delay_us, count in ((0, 140), (5000, 150)):
        axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us / 1000:g}ms"}
        book.add("onnx-http", 1, 8, {"w0": [20 * MS] * count}, axes=axes)
    study = load_study(book.write(tmp_path))
    assert [texts(best_delays(study))[0][column] for column in (4, 5, 7)] == ["400", "20.0*", "20.0*"]
    assert delay_finding(study).endswith(" p95 is of as few as 140 results; it needs 200.")


@pytest.mark.parametrize("requests", [60, 120])
def test_a_p95_of_all_repeats_together_is_not_few_because_each_has_few(requests: int, tmp_path: Path) -> None:
    book = Book()
    for repeat in (1, 2, 3):
        for delay, latency_ms in ((0, 40), (5, 20 + repeat / 10)):
            at_delay(book, delay, latency_ms, 10, repeat, requests=requests)
    said = delay_finding(load_study(book.write(tmp_path)))
    # Each repeat has a p95 of its own from 100 results on.
    lowest = "20.3 ms" if requests == 120 else "20.3 ms, not compared"
    assert f"lowest p95 with 5 ms ({lowest})" in said
    few = "Not compared: fewer than 3 repeats have the figure at both delays."
    assert (few in said) == (requests == 60)
    assert ("p95 is of as few as 180 results; it needs 200." in said) == (requests == 60)
    assert "p95 is of as few as 120" not in said


def test_a_bound_leaves_out_what_one_repeat_took_beyond_it(tmp_path: Path) -> None:
    latencies = {0: [30.0, 30.2, 30.1], 5: [20, 26, 21], 10: [80, 80.2, 80.1]}
    study = swept(tmp_path, latencies, bound=25)
    assert texts(best_delays(study))[0][3:7] == ["–", "–", "–", "5 ms"]
    assert notes_at(best_delays(study), 0, 3) == ["none kept p95 at 25 ms in each repeat"]
    assert "none keeps p95 at 25 ms, the lowest is with 5 ms (26 ms" in delay_finding(study)
    kept = swept(tmp_path / "kept", latencies, bound=31)
    assert texts(best_delays(kept))[0][3:5] == ["5 ms", "360 (250–510)"]
    assert "of those with p95 at most 31 ms, most images/s with 5 ms (360, " in delay_finding(kept)
    assert "(360, not significantly different from 0 ms)." in delay_finding(kept)


def test_what_is_disqualified_is_never_the_best(tmp_path: Path) -> None:
    book = Book()
    at_delay(book, 0, 40, 200)
    book.caveat(at_delay(book, 5, 10, 50), "worker-lost", "w1")
    at_delay(book, 10, 10, 50)
    axes = {"queue_delay_us": 10_000, "variant": "delay-10ms"}
    book.add("onnx-http", 1, 8, {"w0": []}, axes=axes, failures={"timeout": 9}, repeat=2)
    study = load_study(book.write(tmp_path))
    (sweep,) = sweeps(study)
    best = fastest(study, sweep)
    assert best is not None
    assert (best.name, best.alike) == ("0 ms", ())


def test_of_open_load_only_the_latency_is_the_settings_own(tmp_path: Path) -> None:
    book = Book()
    for delay_us, latency_ms in ((0, 40), (5000, 60)):
        axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us / 1000:g}ms"}
        book.add_open("onnx-http", 50, {"w0": [latency_ms * MS] * REQUESTS}, axes=axes)
    study = load_study(book.write(tmp_path))
    assert texts(best_delays(study))[0][2:8] == ["50/s", "–", "–", "–", "0 ms", "40.0"]
    assert delay_finding(study).startswith(
        "Of those tested, onnx-http at batch 1 and 50 requests/s: lowest p95 with 0 ms (40.0"
    )


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"instances": 2, "batching_delay_ns": 5_000_000}, ""),
        (
            {"instances": 1, "batching_delay_ns": 5_000_000},
            "instances asked for: 2, according to the server: 1",
        ),
        (
            {"instances": 2, "batching_delay_ns": 0},
            "queue delay asked for: 5000 us, according to the server: 0 us",
        ),
        ({"instances": 2, "batching": False, "batching_delay_ns": 0}, ""),
    ],
)
def test_a_server_that_says_otherwise_disqualifies_the_run(
    tmp_path: Path, told: dict[str, Any], text: str
) -> None:
    book = Book()
    book.serving(at_delay(book, 5, 20, 50, instances=2), **told)
    (run,) = load_study(book.write(tmp_path)).runs
    assert [doubt.text for doubt in run.caveats if doubt.code == "settings-differ"] == (
        [text] if text else []
    )
    assert run.tainted == bool(text)


def test_the_finding_names_the_busiest_loads_and_counts_the_others(tmp_path: Path) -> None:
    book = Book()
    for users in (1, 2, 4, 8):
        for delay_us in (0, 5000):
            axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us / 1000:g}ms"}
            book.add("onnx-http", 1, users, {"w0": [20 * MS] * REQUESTS}, axes=axes)
    said = delay_finding(load_study(book.write(tmp_path)))
    assert [f"{users} users" in said for users in (2, 4, 8)] == [True] * 3
    assert "1 user " not in said
    assert "; 1 more load in the table. With one run behind a figure" in said


def test_one_user_has_nobody_to_share_with_so_no_delay_is_called_faster(tmp_path: Path) -> None:
    book = Book()
    for delay_ms, latency_ms in ((0, 20), (5, 25)):
        axes = {"queue_delay_us": delay_ms * 1000, "variant": f"delay-{delay_ms}ms"}
        book.add("onnx-http", 1, 1, {"w0": [latency_ms * MS] * REQUESTS}, axes=axes)
    study = load_study(book.write(tmp_path))
    ((*_, fastest, rate, p95, quickest, lowest, _),) = texts(best_delays(study))
    assert (fastest, rate, p95) == ("–", "–", "–")
    assert (quickest, lowest) == ("0 ms", "20.0")
    assert "one user shares no execution" in best_delays(study).notes
    assert "lowest p95 with 0 ms" in delay_finding(study)
    assert "most images/s" not in delay_finding(study)
