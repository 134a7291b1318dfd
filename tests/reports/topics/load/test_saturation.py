"""Where more users bring no more throughput, and the table that says so."""

from pathlib import Path

from reports.stats.repeats import Spread
from reports.stats.usl import Fit, NoFit
from reports.study.study import Study, load_study
from reports.summary.summary import Way
from reports.topics.load.saturation import Curve, Knee, NoKnee, Point, curves, explores_load, knee, saturation
from reports.topics.load.scaling import usl_table
from tests.reports.builder import Book
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
RISING = {1: 10.0, 2: 18.0, 4: 30.0, 8: 39.0, 16: 40.0, 32: 38.0}
FEW_LEVELS = {1: 10.0, 4: 20.0, 8: 30.0}


def point(users: float, rate: float, tainted: bool = False, repeats: int = 3) -> Point:
    return Point(users, Spread(rate, rate, rate, repeats), None, tainted, [None] * repeats)  # type: ignore[list-item]


def found_at(rates: dict[int, float]) -> Knee | NoKnee:
    return knee([point(users, rate) for users, rate in rates.items()])


def one_level(book: Book, users: int, rate: float, repeat: int = 1, **more: object) -> None:
    """A run with some images a second, by requests that all take the same time."""
    endpoint = str(more.pop("endpoint", "onnx-http"))
    each_ns = round(users / rate * 1e9)
    book.add(endpoint, 1, users, {"w0": [each_ns] * (10 * users)}, repeat=repeat, **more)  # type: ignore[arg-type]


def study(folder: Path, rates: dict[int, float], repeats: int = 3) -> Study:
    book = Book()
    for users, rate in rates.items():
        for repeat in range(1, repeats + 1):
            one_level(book, users, rate * (0.98 + 0.01 * repeat), repeat)
    return load_study(book.write(folder))


def only(found: tuple[Curve, ...]) -> Curve:
    assert len(found) == 1
    return found[0]


def test_the_knee_is_the_first_level_with_95_percent_of_the_highest_median() -> None:
    found = found_at(RISING)
    assert isinstance(found, Knee)
    assert (found.at.users, found.before, found.after.users, found.doubts) == (8, 4, 16, ())
    just_below = found_at(RISING | {8: 37.9})
    assert isinstance(just_below, Knee)
    assert (just_below.at.users, just_below.before) == (16, 8)


def test_a_last_step_that_gains_more_than_5_percent_has_not_reached_it() -> None:
    assert found_at({1: 10, 8: 38, 16: 40.1}) == NoKnee("not reached: still rising at 16 users", rising=True)
    flat_at_last = found_at({1: 10, 8: 38.1, 16: 40})
    assert isinstance(flat_at_last, Knee)
    assert flat_at_last.at.users == 8


def test_a_knee_at_the_lowest_level_may_lie_below() -> None:
    found = found_at({8: 40, 16: 40, 32: 40})
    assert isinstance(found, Knee)
    assert (found.at.users, found.before) == (8, None)
    assert found.doubts == ("there is no lower level than 8 users: it may lie below",)


def test_no_knee_rests_on_disqualified_levels() -> None:
    points = [point(1, 10), point(4, 15), point(8, 20), point(16, 60, tainted=True)]
    found = knee(points, lost=[32])
    assert found == NoKnee(
        "not reached: still rising at 8 users; invalidated, and so left out: 16 users; "
        "no request succeeded at 32 users",
        rising=True,
    )
    assert knee(points[1:]) == NoKnee("unknown: 2 of 3 levels valid, 3 needed")
    assert knee([]) == NoKnee("unknown: 0 of 0 levels valid, 3 needed")


def test_two_levels_are_a_slope_and_have_no_knee() -> None:
    assert found_at({1: 20, 8: 20.5}) == NoKnee("unknown: 2 of 2 levels valid, 3 needed")


def test_one_run_at_a_level_is_said() -> None:
    found = knee([point(1, 10), point(8, 20, repeats=1), point(16, 20)])
    assert isinstance(found, Knee)
    assert found.doubts == (
        "one run at a level: a few percent may be chance; rerun with --repeats 5 to confirm",
    )


def test_a_curve_has_its_points_its_knee_and_its_fit(tmp_path: Path) -> None:
    found = only(curves(study(tmp_path, RISING)))
    assert (found.name, found.way, found.batch, found.lost) == ("onnx-http", Way("onnx-http"), 1, ())
    assert [round(each.rate.median, 3) for each in found.points] == list(RISING.values())
    assert [len(each.runs) for each in found.points] == [3] * 6
    assert found.points[0].rate.runs == 3
    assert found.points[3].p95_ms is not None
    assert round(found.points[3].p95_ms.median) == 205
    assert isinstance(found.knee, Knee)
    assert found.knee.at.users == 8
    assert isinstance(found.fit, Fit)
    assert found.highest.users == 16


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
    assert usl_table(found) is None
    assert curves(load_study(Book().write(tmp_path / "empty"))) == ()


def test_levels_without_a_success_and_disqualified_ones_are_out_of_knee_and_fit(tmp_path: Path) -> None:
    book = Book()
    for users, rate in RISING.items():
        one_level(book, users, rate, status="aborted" if users == 32 else "done")
    book.add("onnx-http", 1, 64, {"w0": []}, failures={"timeout": 5})
    found = only(curves(load_study(book.write(tmp_path))))
    assert [each.tainted for each in found.points] == [False] * 5 + [True]
    assert found.lost == (64,)
    assert isinstance(found.fit, Fit)
    assert found.fit.levels == (1, 16)
    assert isinstance(found.knee, Knee)
    assert found.knee.doubts[1:] == (
        "invalidated, and so left out: 32 users",
        "no request succeeded at 64 users",
    )


def test_the_table_has_the_knee_and_the_law(tmp_path: Path) -> None:
    table = usl_table(study(tmp_path, RISING))
    assert table is not None
    (row,) = texts(table)
    assert row[:6] == ["onnx-http", "1", "8 (above 4)", "205 (203–207)", "400 (396–404)", "40.0 (39.6–40.4)"]
    assert row[6].startswith("0.1")
    assert row[8].startswith("15.0 (14.")
    assert [len(cells) for cells in table.rows] == [len(table.heads)]


def test_the_table_says_why_there_is_no_fit_where_another_way_has_one(tmp_path: Path) -> None:
    book = Book()
    for endpoint, rates in (("onnx-http", RISING), ("onnx-grpc", FEW_LEVELS)):
        for users, rate in rates.items():
            one_level(book, users, rate, endpoint=endpoint)
    table = usl_table(load_study(book.write(tmp_path)))
    assert table is not None
    assert texts(table)[0][:7] == ["onnx-grpc", "1", "not reached", "–", "–", "30.0", "no fit"]
    assert notes_at(table, 0, 2)[0].startswith("not reached: still rising at 8 users; one run at a level")
    assert notes_at(table, 0, 6) == ["no fit: 3 of the 4 levels that it takes"]


def test_where_no_way_has_a_fit_the_law_has_no_columns(tmp_path: Path) -> None:
    table = usl_table(study(tmp_path, FEW_LEVELS))
    assert table is not None
    assert texts(table) == [["onnx-http", "1", "not reached", "–", "–", "30.0 (29.7–30.3)"]]
    assert table.heads[-1] == "highest images/s"
    assert "Scalability" not in table.caption


def test_two_levels_are_a_slope_and_explore_no_load(tmp_path: Path) -> None:
    two = study(tmp_path, {1: 10.0, 8: 30.0})
    assert [len(curve.points) for curve in curves(two)] == [2]
    assert usl_table(two) is None
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
    found = saturation(levels_of(tmp_path, {"onnx-grpc": {1: 5, 4: 20, 8: 30}, "onnx-http": RISING}))
    assert found is not None
    assert found.said == "onnx-http saturates between 4 and 8 users: 39.0 images/s, p95 205* ms at 8."
    assert found.detail == "onnx-grpc is not saturated at 8 users: 30.0 images/s and rising."


def test_the_row_says_why_no_saturation_is_known(tmp_path: Path) -> None:
    book = Book()
    for users, rate in FEW_LEVELS.items():
        one_level(book, users, rate, status="aborted" if users > 1 else "done")
    found = saturation(load_study(book.write(tmp_path)))
    assert found is not None
    assert found.said == "onnx-http: unknown: 1 of 3 levels valid, 3 needed."


def test_the_row_names_three_ways_and_counts_the_others(tmp_path: Path) -> None:
    ways = {f"w{at}-http": {1: 10, 4: 20 - at, 8: 20 - at} for at in range(5)}
    found = saturation(levels_of(tmp_path, ways))
    assert found is not None
    assert found.said == "w0-http saturates between 1 and 4 users: 20.0 images/s, p95 200* ms at 4."
    assert found.detail == (
        "w1-http saturates between 1 and 4 users: 19.0 images/s, p95 210* ms at 4. "
        "w2-http saturates between 1 and 4 users: 18.0 images/s, p95 222* ms at 4. "
        "2 others in the table under Load and cost."
    )


def test_flat_throughput_has_no_fit_in_a_study(tmp_path: Path) -> None:
    found = only(curves(study(tmp_path, {users: 20.0 + 0.1 * (users % 3) for users in RISING})))
    assert isinstance(found.fit, NoFit)
    assert isinstance(found.knee, Knee)
    assert found.knee.at.users == 1
