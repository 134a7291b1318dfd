"""Where more users bring no more throughput, and the table that says so."""

from pathlib import Path

import pytest

from reports.page.answer import AnswerRow
from reports.page.table import Table
from reports.stats.scaling_laws import BestLaw
from reports.study.study import Study, load_study
from reports.summary.summary import Way
from reports.topics.load.saturation import (
    NO_P95,
    Curve,
    Knee,
    NoKnee,
    curves,
    curves_chart,
    explores_load,
    fallen,
    saturation,
)
from reports.topics.load.scaling import saturation_table
from tests.reports.builder import Book
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
RISING = {1: 10.0, 2: 18.0, 4: 30.0, 8: 39.0, 16: 40.0, 32: 38.0}
FEW_LEVELS = {1: 10.0, 4: 20.0, 8: 30.0}


def one_level(book: Book, users: int, rate: float, repeat: int = 1, **more: object) -> None:
    """A run with some images a second, by requests that all take the same time."""
    endpoint = str(more.pop("endpoint", "onnx-http"))
    each_ns = round(users / rate * 1e9)
    book.add(endpoint, 1, users, {"w0": [each_ns] * (40 * users)}, repeat=repeat, **more)  # type: ignore[arg-type]


def study(folder: Path, rates: dict[int, float], repeats: int = 3) -> Study:
    book = Book()
    for users, rate in rates.items():
        for repeat in range(1, repeats + 1):
            one_level(book, users, rate * (0.98 + 0.01 * repeat), repeat)
    return load_study(book.write(folder))


def only(found: tuple[Curve, ...]) -> Curve:
    assert len(found) == 1
    return found[0]


def knee_of(found: Study) -> Knee:
    knee = only(curves(found)).knee
    assert isinstance(knee, Knee)
    return knee


def row_of(found: Study) -> AnswerRow:
    row = saturation(found)
    assert row is not None
    return row


def table_of(found: Study) -> Table:
    table = saturation_table(found)
    assert table is not None
    return table


def test_the_knee_is_the_best_trade_and_beside_it_is_what_is_enough(tmp_path: Path) -> None:
    slow = knee_of(study(tmp_path, RISING | {8: 44.0, 16: 47.0}))
    assert (slow.at.users, slow.enough.users) == (8, 16), "44² / 8 is above 30² / 4 and 47² / 16"


def test_a_last_doubling_that_gains_more_than_it_costs_has_not_reached_it(tmp_path: Path) -> None:
    rising = study(tmp_path / "up", {1: 10, 8: 38, 16: 60})
    assert only(curves(rising)).knee == NoKnee("not reached: still rising at 16 users", rising=True)
    costly = knee_of(study(tmp_path / "costly", {1: 10, 8: 38, 16: 44}))
    assert (costly.at.users, costly.enough.users) == (8, 16), "15.8 % more images/s for 72.7 % more p95"


def test_a_knee_at_either_end_may_lie_beyond(tmp_path: Path) -> None:
    low = knee_of(study(tmp_path / "low", {8: 40, 16: 40, 32: 40}))
    assert (low.at.users, low.enough.users) == (8, 8)
    assert low.doubts == ("there is no lower level than 8 users: it may lie below",)
    book = Book()
    for users, quick_ms, slow_ms, of_ten in ((1, 50, 500, 1), (4, 100, 1_000, 1), (8, 370, 370, 0)):
        some = [slow_ms * MS] * 20 * of_ten + [quick_ms * MS] * 20 * (10 - of_ten)
        for repeat in (1, 2):
            book.add("onnx-http", 1, users, {"w0": some}, repeat=repeat)
    high = knee_of(load_study(book.write(tmp_path / "high")))
    assert (high.at.users, high.doubts) == (8, ("it is the highest level tested: it may lie above",))


def test_without_p95_at_every_level_the_mean_latency_counts(tmp_path: Path) -> None:
    book = Book()
    for users, rate, results in ((1, 10.0, 200), (4, 30.0, 30), (8, 31.0, 200)):
        book.add("onnx-http", 1, users, {"w0": [round(users / rate * 1e9)] * results})
    found = load_study(book.write(tmp_path))
    assert row_of(found).said == (
        "onnx-http: knee at 4 users (30.0 images/s, mean latency 133 ms); 31.0 at 8 users costs 258 ms."
    )
    assert notes_at(table_of(found), 0, 4) == ["mean latency: some level has too few results for p95"]


def test_a_p95_of_few_results_is_marked(tmp_path: Path) -> None:
    book = Book()
    for users, rate in {1: 10.0, 4: 30.0, 8: 31.0}.items():
        book.add("onnx-http", 1, users, {"w0": [round(users / rate * 1e9)] * 150})
    found = load_study(book.write(tmp_path))
    assert row_of(found).said.endswith("images/s, p95 133* ms); 31.0 at 8 users costs 258* ms.")
    assert [texts(table_of(found))[0][column] for column in (4, 6)] == ["133*", "133*"]


def test_a_chart_without_any_p95_has_rates_only_and_says_why(tmp_path: Path) -> None:
    book = Book()
    for users in (1, 4, 8):
        book.add("onnx-http", 1, users, {"w0": [10 * MS] * 30})
    chart = curves_chart(load_study(book.write(tmp_path)))
    assert chart is not None
    assert ([panel["key"] for panel in chart.data["panels"]], chart.notes[0]) == (["rate"], NO_P95)


def test_a_chart_has_points_with_their_ends_the_knee_and_the_law(tmp_path: Path) -> None:
    chart = curves_chart(study(tmp_path, RISING, repeats=2))
    assert chart is not None
    assert chart.notes == ("Knee of onnx-http, batch 1: 4 users; 95 % of the highest images/s from 8 on.",)
    (series,) = chart.data["series"]
    assert (series["name"], series["batch"], series["knee"]) == ("onnx-http, batch 1", "1", 4)
    (*_, last), fit = series["points"], series["fit"]
    assert (last["users"], last["doubted"]) == (32, False)
    for key in ("rate", "p95"):
        assert last[f"{key}_low"] < last[key] < last[f"{key}_high"]
    assert (last["rate"], fit[0][0], fit[-1][0]) == (pytest.approx(37.8, abs=0.1), 1, 32)
    assert curves_chart(load_study(Book().write(tmp_path / "empty"))) is None


def test_fewer_than_three_valid_levels_have_no_knee(tmp_path: Path) -> None:
    found = only(curves(study(tmp_path, {1: 20, 8: 20.5})))
    assert found.knee == NoKnee("unknown: 2 of 2 levels valid, 3 needed")


def test_one_run_at_some_level_is_said(tmp_path: Path) -> None:
    book = Book()
    for users, rate, repeats in ((1, 10, 2), (8, 20, 1), (16, 20, 2)):
        for repeat in range(repeats):
            one_level(book, users, rate, repeat + 1)
    assert knee_of(load_study(book.write(tmp_path))).doubts == (
        "one run at a level: a few percent may be chance; rerun with --repeats 5 to confirm",
    )


def test_a_fall_beyond_the_highest_level_is_a_peak(tmp_path: Path) -> None:
    falling = study(tmp_path, RISING | {32: 30.0})
    (said,) = fallen(only(curves(falling)))
    assert said.startswith("32 users make 25.0 % less than 16 (at least 2")
    assert row_of(falling).said.endswith(f"; {said}.")
    assert notes_at(table_of(falling), 0, 7) == [said]


def test_neither_the_highest_nor_the_first_is_one_that_is_invalidated_or_fails(tmp_path: Path) -> None:
    """Where one repeat fails altogether the level fails, though its figures are of the other."""
    book = Book()
    for users, rate in {1: 10, 4: 20, 8: 21, 16: 50, 32: 60}.items():
        one_level(book, users, rate, status="aborted" if users == 16 else "done")
        one_level(book, users, 2 * rate, status="aborted", endpoint="onnx-grpc")
    one_level(book, 32, 60, repeat=2, failures={"timeout": 100})
    found = load_study(book.write(tmp_path))
    grpc, http = curves(found)
    assert [point.users for point in http.points if point.tainted] == [16, 32]
    assert (http.highest.users, grpc.highest.users) == (8, 32)
    assert row_of(found).said.startswith("onnx-http: knee at 1 user (")
    assert row_of(found).detail.endswith("Invalidated or failing, and so left out: 16, 32 users.")
    assert [row[7] for row in texts(table_of(found))] == ["120", "21.0"]
    assert notes_at(table_of(found), 0, 7) == ["invalidated: aborted"]


def test_a_curve_has_its_points_its_knee_and_its_fit(tmp_path: Path) -> None:
    found = only(curves(study(tmp_path, RISING)))
    assert (found.name, found.way, found.batch, found.lost) == ("onnx-http", Way("onnx-http"), (1, 1), ())
    assert [round(each.rate.value, 2) for each in found.points] == list(RISING.values())
    assert [len(each.runs) for each in found.points] == [3] * 6
    assert found.points[3].p95_ms is not None
    assert round(found.points[3].p95_ms.value) == 207
    assert isinstance(found.knee, Knee)
    assert (found.knee.at.users, found.knee.enough.users, found.knee.by_p95) == (4, 8, True)
    assert found.knee.doubts == ()
    assert isinstance(found.law, BestLaw)
    assert (found.highest.users, found.fall) == (16, None), "32 users make 5 % less: runs differ by as much"


def test_floors_open_load_single_levels_and_failures_have_no_curve(tmp_path: Path) -> None:
    book = Book()
    for users in (1, 8):
        one_level(book, users, 10.0 * users, endpoint="onnx-http-floor")
        book.add("onnx-grpc", 1, users, {"w0": []}, failures={"timeout": 5})
        book.plan("openvino-grpc", 1, users)
        book.add_open("pytorch-http", 10.0 * users, {"w0": [MS] * 50})
    one_level(book, 8, 10)
    found = load_study(book.write(tmp_path / "odd"))
    assert curves(found) == ()
    assert saturation_table(found) is None
    assert curves(load_study(Book().write(tmp_path / "empty"))) == ()


def test_levels_without_a_success_and_disqualified_ones_are_out_of_knee_and_fit(tmp_path: Path) -> None:
    book = Book()
    for users, rate in (RISING | {2: 18.0, 6: 36.0}).items():
        one_level(book, users, rate, status="aborted" if users == 32 else "done")
    book.add("onnx-http", 1, 64, {"w0": []}, failures={"timeout": 5})
    found = only(curves(load_study(book.write(tmp_path))))
    assert [each.tainted for each in found.points] == [False] * 6 + [True]
    assert list(found.lost) == [64]
    assert isinstance(found.law, BestLaw)
    assert list(found.law.levels) == [1, 16]
    assert isinstance(found.knee, Knee)
    assert found.knee.doubts[1:] == (
        "invalidated or failing, and so left out: 32 users",
        "no request succeeded at 64 users",
    )


def test_the_table_has_the_knee_and_the_law(tmp_path: Path) -> None:
    table = table_of(study(tmp_path, RISING))
    (row,) = texts(table)
    knees, highest, law = row[:7], row[7], row[8:]
    assert knees[:4] == ["onnx-http", "1", "4", "30.0 (29.3–30.8)"]
    assert knees[4].startswith("135 (13")
    assert knees[5] == "8"
    assert knees[6].startswith("207 (20")
    assert highest == "40.0 (39.0–41.0)"
    assert law[0] == "one queue"
    assert law[1].startswith("limit 38.9 (38.2–39.6) images/s; ")
    assert "; service 25.7 (25.2–26.2) ms an image; " in law[1]
    assert law[3].endswith(" (USL)")
    assert [len(cells) for cells in table.rows] == [len(table.heads)]


def test_the_table_says_why_there_is_no_fit_where_another_way_has_one(tmp_path: Path) -> None:
    book = Book()
    for endpoint, rates in (("onnx-http", RISING), ("onnx-grpc", FEW_LEVELS)):
        for users, rate in rates.items():
            one_level(book, users, rate, endpoint=endpoint)
    table = table_of(load_study(book.write(tmp_path)))
    assert texts(table)[0][:9] == ["onnx-grpc", "1", "not reached", *"––––", "30.0", "no law"]
    assert notes_at(table, 0, 2)[0].startswith("not reached: still rising at 8 users; one run at a level")
    assert notes_at(table, 0, 8) == ["no law: 3 of the 4 levels that it takes"]


def test_where_no_way_has_a_fit_the_law_has_no_columns(tmp_path: Path) -> None:
    table = table_of(study(tmp_path, FEW_LEVELS))
    assert texts(table) == [["onnx-http", "1", "not reached", *"––––", "30.0 (29.3–30.8)"]]
    assert table.heads[-1] == "highest images/s"
    assert "AICc" not in table.caption


def test_two_levels_are_a_slope_and_explore_no_load(tmp_path: Path) -> None:
    two = study(tmp_path, {1: 10.0, 8: 30.0})
    assert [len(curve.points) for curve in curves(two)] == [2]
    assert saturation_table(two) is None
    assert (explores_load(two), saturation(two)) == (False, None)


def levels_of(folder: Path, ways: dict[str, dict[int, float]], repeats: int = 1) -> Study:
    """Each way with some rates by users."""
    book = Book()
    for endpoint, rates in ways.items():
        for users, rate in rates.items():
            for repeat in range(1, repeats + 1):
                one_level(book, users, rate, repeat, endpoint=endpoint)
    return load_study(book.write(folder))


def test_the_row_says_where_the_fastest_saturates_and_then_the_others(tmp_path: Path) -> None:
    found = row_of(levels_of(tmp_path, {"onnx-grpc": {1: 5, 4: 20, 8: 30}, "onnx-http": RISING}))
    assert found.said == (
        "onnx-http: knee at 4 users (30.0 images/s, mean latency 133 ms); 40.0 at 16 users costs 400 ms."
    )
    assert found.detail == "onnx-grpc is not saturated at 8 users: 30.0 images/s and rising."


def test_the_row_says_why_no_saturation_is_known(tmp_path: Path) -> None:
    book = Book()
    for users, rate in FEW_LEVELS.items():
        one_level(book, users, rate, status="aborted" if users > 1 else "done")
    found = row_of(load_study(book.write(tmp_path)))
    assert found.said == "onnx-http: unknown: 1 of 3 levels valid, 3 needed."


def test_the_row_names_three_ways_and_counts_the_others(tmp_path: Path) -> None:
    ways = {f"w{at}-http": {1: 9.0, 4: 20.0 - at, 8: 20.0 - at} for at in range(5)}
    found = row_of(levels_of(tmp_path, ways))
    assert found.said == "w0-http: knee at 4 users (20.0 images/s, mean latency 200 ms)."
    assert found.detail == (
        "w1-http: knee at 4 users (19.0 images/s, mean latency 210 ms). "
        "w2-http: knee at 1 user (9.00 images/s, mean latency 111 ms); 18.0 at 4 users costs 222 ms. "
        "2 others in the table under Load and cost."
    )


def test_flat_throughput_is_constant_in_a_study(tmp_path: Path) -> None:
    found = study(tmp_path, {users: 20.0 + 0.1 * (users % 3) for users in RISING})
    law = only(curves(found)).law
    assert isinstance(law, BestLaw)
    assert (law.name, knee_of(found).at.users) == ("constant", 1)
