"""A study of growth beside the published one, its instances, and what an image costs on so many."""

from pathlib import Path

from reports.study.study import Study, load_study
from reports.summary.summary import Summary
from reports.topics.load.cost import AT_ANY_NUMBER, cost_table
from reports.topics.load.scaling import saturation_table, scaling_table
from reports.topics.published.step6b import SCALING, costs_beside, growth_beside, shared_pct
from reports.topics.servers.cold_start import cold_starts
from tests.reports.builder import Book
from tests.reports.lines import Record, triton
from tests.reports.open_load import MS, notes_at, texts

REQUESTS = 320


def grown(
    book: Book, users: int, instances: int, latency_ms: float, executions: int, repeat: int = 1
) -> Record:
    """320 requests of so many users, all as slow, in so many executions."""
    axes = {"instances": instances, "variant": f"{instances}-instances"}
    counters = triton(REQUESTS, 1, 8 * MS, 9 * MS) | {"executions": executions}
    latencies = {"w0": [round(latency_ms * MS)] * REQUESTS}
    more = {"repeat": repeat, "axes": axes, "counters": counters}
    tag = book.add("onnx-http", 1, users, latencies, **more)
    book.serving(tag, instances=instances)
    return tag


def study_of(folder: Path, name: str = "step6b", **header: object) -> Study:
    book = Book(study=name, **header)
    for users, instances, latency_ms, executions in (
        *((1, 1, 20, 320), (4, 1, 20, 80), (32, 1, 80, 40)),
        *((32, 2, 50, 80), (32, 4, 40, 160)),
    ):
        grown(book, users, instances, latency_ms, executions)
    return load_study(book.write(folder))


def test_each_level_stands_beside_the_published_one(tmp_path: Path) -> None:
    table = growth_beside(study_of(tmp_path))
    assert texts(table) == [
        ["onnx-http 1-instances", "1", "50.0", "3.4", "20.0", "268", "9.0", "8.0", "0"],
        ["onnx-http 1-instances", "4", "200", "11", "20.0", "270", "9.0", "8.0", "75.0"],
        ["onnx-http 1-instances", "32", "400", "43.2", "80.0", "416", "9.0", "8.0", "87.5"],
        ["onnx-http 2-instances", "32", "640", "43.2", "50.0", "416", "9.0", "8.0", "75.0"],
        ["onnx-http 4-instances", "32", "800", "43.2", "40.0", "416", "9.0", "8.0", "50.0"],
    ]
    source = "published: Step 6B results on 4 x RTX 4080, undated: one run, iterations not stated"
    assert [notes_at(table, 0, column) for column in (2, 3, 4, 5)] == [[], [source], [], [source]]
    assert "560 executions for 721 requests: 22 %" in table.caption
    assert 1 - 560 / 721 == 0.22330097087378642


def test_another_payload_has_no_published_figure_beside_it(tmp_path: Path) -> None:
    book = Book(study="step6b")
    for name in ("onnx-http", "onnx-json-http"):
        book.add(name, 1, 32, {"w0": [80 * MS] * 320})
    rows = texts(growth_beside(load_study(book.write(tmp_path))))
    assert {row[0]: (row[3], row[5]) for row in rows} == {
        "onnx-http": ("43.2", "416"),
        "onnx-json-http": ("–", "–"),
    }


def test_other_studies_have_no_such_table(tmp_path: Path) -> None:
    study = study_of(tmp_path, name="step7")
    assert (growth_beside(study).rows, costs_beside(study).rows) == ((), ())
    assert SCALING not in scaling_table(study).caption


def test_the_published_costs_follow_from_their_prices_and_rates(tmp_path: Path) -> None:
    rows = texts(costs_beside(study_of(tmp_path)))
    for _, price, rate, cost in rows:
        for dollars, told in zip(price.split("–"), cost.split("–"), strict=True):
            assert round(1_000_000 * float(dollars) / (float(rate) * 3600)) == float(told)
    assert [row[0] for row in rows] == ["1 × RTX 4080", "1 × A100", "4 × RTX 4080"]


def test_instances_scale_at_each_level_and_each_has_its_limit(tmp_path: Path) -> None:
    table = scaling_table(study_of(tmp_path))
    assert [row[1:6] for row in texts(table)] == [
        ["instances", "1", "400", "1.00", "100"],
        ["instances", "2", "640", "1.60", "80.0"],
        ["instances", "4", "800", "2.00", "50.0"],
    ]
    assert [row[6] for row in texts(table)] == ["inconclusive"] * 3
    assert SCALING in table.caption
    assert round(43.2 / 24.3, 1) == 1.8


def test_growth_with_users_never_mixes_numbers_of_instances(tmp_path: Path) -> None:
    table = saturation_table(study_of(tmp_path))
    assert table is not None
    rows = texts(table)
    assert [row[0] for row in rows] == ["onnx-http 1-instances"], "the others have one level each"
    assert rows[0][7] == "400"


def test_runs_of_another_queue_delay_are_no_scaling(tmp_path: Path) -> None:
    book = Book()
    for instances, delay_us in ((1, 0), (2, 5000)):
        axes = {"instances": instances, "queue_delay_us": delay_us, "variant": f"v{instances}"}
        tag = book.add("onnx-http", 1, 8, {"w0": [20 * MS] * 80}, axes=axes)
        book.serving(tag, instances=instances, batching_delay_ns=delay_us * 1000)
    assert scaling_table(load_study(book.write(tmp_path))).rows == ()


def test_a_price_is_said_to_be_the_same_for_every_number_of_instances(tmp_path: Path) -> None:
    table = cost_table(study_of(tmp_path, options={"usd_per_hour": 0.36}))
    assert [(row[0], row[3]) for row in texts(table)] == [
        ("onnx-http 1-instances", "0.250"),
        ("onnx-http 2-instances", "0.156"),
        ("onnx-http 4-instances", "0.125"),
    ]
    assert AT_ANY_NUMBER in table.caption
    assert AT_ANY_NUMBER not in cost_table(study_of(tmp_path / "free")).caption


def test_ways_stand_from_few_instances_and_short_delays_to_many(tmp_path: Path) -> None:
    book = Book()
    for instances, delay_us in ((10, 0), (2, 10_000), (2, 500), (0, None)):
        variant = f"{instances}-{delay_us}"
        axes = {"instances": instances, "queue_delay_us": delay_us, "variant": variant}
        book.add("onnx-http", 1, 8, {"w0": [20 * MS] * 8}, axes=axes)
    ways = load_study(book.write(tmp_path)).ways
    assert [way.variant for way in ways] == ["0-None", "2-500", "2-10000", "10-0"]


def test_cold_starts_after_reloads_are_medians_of_their_own(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [MS] * 8})
    for first_ms, second_ms, reloaded in ((100, None, False), (30, 9, True), (20, 7, True), (90, 8, True)):
        line = {"kind": "cold", "endpoint": "onnx-http", "batch": 1, "opening": not reloaded}
        times = {"first_ns": first_ms * MS, "second_ns": second_ms and second_ms * MS}
        book.records.append(line | times | ({"reloaded": True} if reloaded else {}))
    table = cold_starts(load_study(book.write(tmp_path)))
    assert [row[3:] for row in texts(table)] == [["1", "100", "–"], ["1", "30.0", "8.0"]]
    assert notes_at(table, 1, 4) == ["after the study had loaded the model again: medians over 3 loads"]


def test_without_the_servers_count_no_share_is_told(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [MS] * 8})
    (run,) = load_study(book.write(tmp_path)).runs
    assert isinstance(run, Summary)
    assert shared_pct(run) is None
