"""The row that says which endpoint is best, and the charts that show it."""

from pathlib import Path

import pytest

from reports.study.study import load_study
from reports.topics.answer.best import BY_MEAN, HOLLOW, MOST_ROWS, REPEATED, SINGLE, best, dots, tradeoff
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.topics.answer.measured import MS, add_way, invalidated, over_links, serial


def test_one_run_each_is_unconfirmed(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[20], onnx_grpc=[10])
    assert row(study, "Best") == (
        "onnx-grpc (unconfirmed: 1 run): 100 images/s, p50 10.0 ms, p95 10.0 ms at batch 1, 1 user. "
        "Next: onnx-http 0.50× of its images/s."
    )


def test_an_endpoint_alone_is_compared_with_none(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[20])
    assert row(study, "Best") == "onnx-http: 50.0 images/s, p50 20.0 ms, p95 20.0 ms at batch 1, 1 user."
    assert dots(study) is None


def test_repeats_have_an_interval_on_both_figures(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[20, 20, 20], onnx_grpc=[10, 10.5, 11])
    assert row(study, "Best") == (
        "onnx-grpc: 95 images/s (95 % CI 85–110), p50 10 ms (9.3–12), p95 11 ms (9.8–12) at batch 1, 1 user. "
        "Next: onnx-http 0.52× (0.47–0.59) of its images/s."
    )


def test_what_repeats_do_not_tell_apart_has_no_winner(tmp_path: Path) -> None:
    study = serial(
        tmp_path, onnx_http=[10, 11, 10.5], onnx_grpc=[10.5, 10.4, 10.3], trt_http=[30, 30.1, 30.2]
    )
    answer = best(study)
    assert answer is not None
    assert answer.said == (
        "No clear winner between onnx-grpc and onnx-http. onnx-grpc measured highest: 96.2 images/s "
        "(95 % CI 93.9–98.5), p50 10.4 ms (10.2–10.7), p95 10.5 ms (10.3–10.8) at batch 1, 1 user; "
        "none is significantly slower."
    )
    next_ones = "onnx-http 0.99× (0.87–1.13), trt-http 0.35× (0.33–0.36)"
    assert answer.detail == f"Next: {next_ones} of its images/s."


@pytest.mark.parametrize(
    ("other_ms", "said"),
    [
        (None, "onnx-http: 25.0, 100 and 50.0 images/s (its repeats differ) at batch 1, 1 user."),
        (
            [18, 18, 18],
            "No clear winner between onnx-grpc and onnx-http. onnx-grpc measured highest: 55.6 images/s "
            "(95 % CI 55.4–55.7), p50 18.0 ms (18.0–18.0), p95 18.0 ms (18.0–18.0) at batch 1, 1 user; "
            "none is significantly slower.",
        ),
        (
            [25, 25, 25],
            "No clear winner between onnx-http and onnx-grpc. onnx-http measured highest: 25.0, 100 and "
            "50.0 images/s (its repeats differ) at batch 1, 1 user; none is significantly slower.",
        ),
    ],
)
def test_repeats_that_differ_are_not_averaged(
    tmp_path: Path, other_ms: list[float] | None, said: str
) -> None:
    book = Book()
    add_way(book, "onnx-http", [40, 10, 20])
    if other_ms:
        add_way(book, "onnx-grpc", other_ms)
    for repeat in (1, 2, 3):
        book.caveat({"cell": "onnx-http/b1/c1", "repeat": repeat}, "repeats-differ", "")
    book.footer()
    study = load_study(book.write(tmp_path))
    assert row(study, "Best") == said
    assert ("Look for what changed" in row(study, "Next step")) == (other_ms != [18, 18, 18])


def test_two_repeats_do_not_settle_which_is_best(tmp_path: Path) -> None:
    said = row(serial(tmp_path, onnx_http=[10, 10.1], onnx_grpc=[10.4, 10.5]), "Best")
    few = "unconfirmed: 2 repeats in common, 3 are needed"
    assert said.startswith(f"onnx-http ({few}): 99.5 images/s")
    mixed = serial(
        tmp_path / "mixed", onnx_http=[10, 10.6, 10.3], trt_http=[10.5, 10.2, 10.6], onnx_grpc=[10.4, 10.5]
    )
    assert row(mixed, "Best").startswith(
        "No clear winner between onnx-http and trt-http. onnx-http measured "
    )


@pytest.mark.parametrize(
    ("alike", "slower", "winners"),
    [
        (3, 0, "among w0-http, w1-http and w2-http"),
        (6, 0, "among 6"),
        (5, 2, "among the 5 fastest"),
    ],
)
def test_of_many_that_repeats_do_not_tell_apart_the_number_is_told(
    tmp_path: Path, alike: int, slower: int, winners: str
) -> None:
    ways = {f"w{at}_http": [10 + at / 10, 11 - at / 10, 10.5] for at in range(alike)}
    ways |= {f"s{at}_http": [30.0, 30.1, 30.2] for at in range(slower)}
    said = row(serial(tmp_path, **ways), "Best")
    assert said.startswith(f"No clear winner {winners}. w0-http measured highest: 95 images/s")


def test_one_run_each_names_three_that_come_next(tmp_path: Path) -> None:
    said = row(serial(tmp_path, **{f"w{at}_http": [10 + at / 10] for at in range(6)}), "Best")
    assert said.startswith("w0-http (unconfirmed: 1 run): ")
    assert "Next: w1-http 0.99×, w2-http 0.98×, w3-http 0.97× of its images/s." in said


def test_a_rival_with_one_run_leaves_the_first_unconfirmed_however_many_repeats_that_has(
    tmp_path: Path,
) -> None:
    near = serial(tmp_path / "near", onnx_http=[10, 10.5, 11], onnx_grpc=[10.2])
    assert row(near, "Best") == (
        "onnx-grpc (unconfirmed: 1 run): 98.0 images/s, p50 10.2 ms, p95 10.2 ms "
        "at batch 1, 1 user. Next: onnx-http 0.97× of its images/s."
    )
    far = serial(tmp_path / "far", onnx_http=[10, 10.5, 11], onnx_grpc=[20])
    assert row(far, "Best") == (
        "onnx-http (unconfirmed: 1 run): 95 images/s (95 % CI 85–110), p50 10 ms (9.3–12), "
        "p95 11 ms (9.8–12) at batch 1, 1 user. Next: onnx-grpc 0.52× of its images/s."
    )


def test_a_far_rival_with_one_run_does_not_take_the_repeats_of_the_others(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[10, 11, 10.5], onnx_grpc=[10.5, 10.4, 10.3], trt_http=[30])
    answer = best(study)
    assert answer is not None
    assert answer.said.startswith("No clear winner between onnx-grpc and onnx-http. onnx-grpc measured ")
    assert answer.detail == "Next: onnx-http 0.99× (0.87–1.13), trt-http 0.35× of its images/s."


def test_repeats_that_overlap_settle_no_winner_where_the_rates_are_apart(tmp_path: Path) -> None:
    ways = {"onnx_http": [1000 / 30, 1000 / 20, 1000 / 25], "onnx_grpc": [1000 / 21, 1000 / 22, 1000 / 21.5]}
    study = serial(tmp_path, **ways)
    assert row(study, "Best") == (
        "No clear winner between onnx-http and onnx-grpc. onnx-http measured highest: 25 images/s "
        "(95 % CI 15–41), p50 40 ms (24–66), p95 50 ms (30–83) at batch 1, 1 user; "
        "none is significantly slower. "
        "Next: onnx-grpc 0.87× (0.50–1.53) of its images/s."
    )
    chart = dots(study)
    assert chart is not None
    assert [(found["name"], found["best"]) for found in chart.data["rows"]] == [
        ("onnx-http", True),
        ("onnx-grpc", True),
    ]


def test_each_of_two_links_has_a_best_of_its_own(tmp_path: Path) -> None:
    answer = best(over_links(tmp_path, ("lan", "wan-a100")))
    assert answer is not None
    assert answer.said == (
        "onnx-http lan over lan: 100 images/s (95 % CI 99.8–100), p50 10.0 ms (10.0–10.0), "
        "p95 10.0 ms (10.0–10.0) at batch 1, 1 user. "
        "onnx-grpc wan-a100 over wan-a100: 33.3 images/s (95 % CI 33.3–33.4), p50 30.0 ms (29.9–30.1), "
        "p95 30.0 ms (29.9–30.1) at batch 1, 1 user."
    )
    assert answer.detail == (
        "Next: onnx-grpc lan 0.500× (0.499–0.501) of its images/s. "
        "Next: onnx-http wan-a100 0.750× (0.749–0.752) of its images/s."
    )


def test_a_link_is_named_where_the_other_is_the_path_as_it_is_or_has_no_valid_run(tmp_path: Path) -> None:
    plain = row(over_links(tmp_path / "plain", ("", "wan-a100")), "Best")
    assert plain.startswith("onnx-http none without an emulated link: 100 images/s ")
    assert ". onnx-grpc wan-a100 over wan-a100: 33.3 images/s " in plain
    cells = [f"onnx-{protocol}/b1/c1/wan-a100" for protocol in ("http", "grpc")]
    spoilt = row(over_links(tmp_path / "spoilt", ("lan", "wan-a100"), *cells), "Best")
    assert spoilt == (
        "onnx-http lan over lan: 100 images/s (95 % CI 99.8–100), p50 10.0 ms (10.0–10.0), "
        "p95 10.0 ms (10.0–10.0) at batch 1, 1 user. "
        "Next: onnx-grpc lan 0.500× (0.499–0.501) of its images/s."
    )


def test_a_percentile_of_few_requests_has_a_mark_and_of_too_few_is_not_told(tmp_path: Path) -> None:
    book = Book()
    add_way(book, "onnx-http", [20], count=199)
    assert "p50 20.0 ms, p95 20.0* ms" in row(load_study(book.write(tmp_path / "199")), "Best")
    book = Book()
    add_way(book, "onnx-http", [20], count=19)
    assert (
        row(load_study(book.write(tmp_path / "19")), "Best") == "onnx-http: 50.0 images/s at batch 1, 1 user."
    )


def test_an_invalidated_endpoint_is_never_best(tmp_path: Path) -> None:
    study = invalidated(tmp_path, {"onnx-http": [20], "onnx-grpc": [10]}, ("onnx-grpc", 1))
    assert row(study, "Best") == "onnx-http: 50.0 images/s, p50 20.0 ms, p95 20.0 ms at batch 1, 1 user."
    chart = dots(study)
    assert chart is not None
    marks = [(found["name"], found["best"], found["doubted"]) for found in chart.data["rows"]]
    assert marks == [("onnx-http", True, False), ("onnx-grpc", False, True)]
    assert chart.notes == (HOLLOW,)


def test_where_nothing_is_sound_none_is_called_best(tmp_path: Path) -> None:
    ways = {"onnx-http": [20], "onnx-grpc": [10]}
    study = invalidated(tmp_path, ways, ("onnx-http", 1), ("onnx-grpc", 1))
    assert row(study, "Best") == (
        "No endpoint can be called best: every run under closed-loop load is invalidated."
    )
    chart = dots(study)
    assert chart is not None
    assert [found["best"] for found in chart.data["rows"]] == [False, False]


def test_without_a_success_nothing_is_said_of_speed(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": []}, failures={"timeout": 9})
    study = load_study(book.write(tmp_path))
    assert row(study, "Best") == "No request succeeded, so nothing can be said about speed."


def test_a_study_that_failed_before_it_measured_does_not_blame_the_requests(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": []}, status="aborted")
    study = load_study(book.write(tmp_path))
    assert row(study, "Best") == "Nothing was measured, so nothing can be said about speed."


def test_a_rate_that_was_asked_for_is_nobodys_speed(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 100, {"w0": [10 * MS] * 400})
    study = load_study(book.write(tmp_path))
    assert best(study) is None
    assert dots(study) is None


def test_the_best_cell_is_of_any_batch_and_users_and_single_images_have_a_best_of_their_own(
    tmp_path: Path,
) -> None:
    book = Book()
    add_way(book, "onnx-http", [12])
    add_way(book, "onnx-grpc", [14])
    add_way(book, "onnx-grpc", [40], batch=8)
    add_way(book, "onnx-http", [80], users=8)
    assert row(load_study(book.write(tmp_path)), "Best") == (
        "onnx-grpc (unconfirmed: 1 run): 200 images/s, p50 40.0 ms, p95 40.0 ms at batch 8, 1 user. "
        "Next: onnx-http 0.50× of its images/s. "
        "Lowest p50 of single images: onnx-http (unconfirmed), 12.0 ms."
    )


def test_the_lowest_latency_of_single_images_is_of_all_that_repeats_do_not_show_to_be_higher(
    tmp_path: Path,
) -> None:
    book = Book()
    each_ms = {"onnx-http": [11, 10, 11.5], "onnx-grpc": [10.6, 10.8, 10.7], "trt-http": [13, 13.1, 13]}
    for name, latencies_ms in each_ms.items():
        add_way(book, name, latencies_ms)
    add_way(book, "trt-grpc", [10])
    book.caveat({"cell": "trt-grpc/b1/c1", "repeat": 1}, "client-bound", "worker w0 at 98 % CPU")
    add_way(book, "onnx-grpc", [40], batch=8)
    add_way(book, "pytorch-http", [30])
    assert row(load_study(book.write(tmp_path)), "Best").endswith(
        "Lowest p50 of single images: onnx-grpc, 10.7 ms; not significantly higher: onnx-http."
    )


def test_the_dots_are_the_fastest_cells_with_their_intervals(tmp_path: Path) -> None:
    chart = dots(serial(tmp_path, onnx_http=[10, 11], onnx_grpc=[10.5, 10.4], trt_http=[30, 30.1]))
    assert chart is not None
    assert (chart.kind, chart.caption, chart.data["unit"], chart.notes) == ("dots", REPEATED, "images/s", ())
    rows = [[found[key] for key in ("name", "value", "low", "high", "best")] for found in chart.data["rows"]]
    assert rows == [
        ["onnx-grpc", 95.69, 90.05, 101.7, True],
        ["onnx-http", 95.35, 52.04, 174.7, False],
        ["trt-http", 33.28, 32.58, 33.99, False],
    ]
    assert {found["note"] for found in chart.data["rows"]} == {"batch 1, 1 user"}


def test_dots_of_single_runs_have_no_interval_and_say_so(tmp_path: Path) -> None:
    study = serial(tmp_path / "settled", onnx_http=[10] * 3, onnx_grpc=[10.5] * 3)
    assert row(study, "Best").startswith("onnx-http: 100 images/s")
    settled = dots(study)
    assert settled is not None
    assert [found["best"] for found in settled.data["rows"]] == [True, False]
    chart = dots(serial(tmp_path, onnx_http=[20], onnx_grpc=[10]))
    assert chart is not None
    assert chart.caption == SINGLE
    assert [(found["low"], found["high"]) for found in chart.data["rows"]] == [(None, None)] * 2


def test_only_the_fastest_of_many_are_drawn(tmp_path: Path) -> None:
    chart = dots(serial(tmp_path, **{f"w{at:02}_http": [10 + at] for at in range(MOST_ROWS + 2)}))
    assert chart is not None
    assert [len(chart.data["rows"]), chart.data["rows"][-1]["name"]] == [16, "w15-http"]
    assert chart.notes == ("2 others are in the tables only.",)


def test_throughput_against_p95_is_by_users_with_the_knee_where_there_are_three_levels(
    tmp_path: Path,
) -> None:
    book = Book()
    for users, latency_ms in ((1, 12), (4, 20), (16, 80)):
        add_way(book, "onnx-http", [latency_ms] * 2, 2, users)
    for users in (1, 4):
        add_way(book, "onnx-http", [10], users=users)
    chart = tradeoff(load_study(book.write(tmp_path)))
    assert chart is not None
    (line,) = chart.data["series"]
    points = [[point[key] for key in ("label", "rate", "latency", "knee")] for point in line["points"]]
    assert line["name"] == "onnx-http, batch 2"
    assert points == [
        ["1 user", 166.7, pytest.approx(12, rel=1e-3), False],
        ["4 users", 400.0, pytest.approx(20, rel=1e-3), True],
        ["16 users", 400.0, pytest.approx(80, rel=1e-3), False],
    ]


def test_throughput_against_p95_is_by_rate_under_open_loop_load(tmp_path: Path) -> None:
    book = Book()
    for rate in (20, 40, 80):
        book.add_open("onnx-http", rate, {"w0": [10 * MS] * 400})
    course = {"profile": "steps", "stages": [["hold", 10, 5, 5]]}
    book.add_open("onnx-http", 5, {"w0": [10 * MS] * 400}, axes=course)
    chart = tradeoff(load_study(book.write(tmp_path)))
    assert chart is not None
    assert [line["name"] for line in chart.data["series"]] == ["onnx-http, batch 1"]
    assert [point["label"] for point in chart.data["series"][0]["points"]] == ["20/s", "40/s", "80/s"]
    assert [point["rate"] for point in chart.data["series"][0]["points"]] == [20.0, 40.0, 80.0]


def test_throughput_against_p95_is_by_batch_where_one_user_sent_several(tmp_path: Path) -> None:
    book = Book()
    for batch, latency_ms in ((1, 10), (4, 20), (8, 32)):
        add_way(book, "onnx-http", [latency_ms], batch=batch)
        add_way(book, "onnx-http-floor", [1], batch=batch)
        for at in range(8):
            add_way(book, f"w{at}-http", [latency_ms + 1 + at], batch=batch)
    chart = tradeoff(load_study(book.write(tmp_path)))
    assert chart is not None
    names = ["onnx-http", *(f"w{at}-http" for at in range(7))]
    assert ([line["name"] for line in chart.data["series"]], chart.notes) == (
        names,
        ("1 others are not drawn.",),
    )
    points = [(point["label"], point["rate"]) for point in chart.data["series"][0]["points"]]
    assert points == [("batch 1", 100.0), ("batch 4", 200.0), ("batch 8", 250.0)]


def test_where_a_cell_has_too_few_results_for_p95_the_mean_is_drawn_of_all(tmp_path: Path) -> None:
    book = Book()
    for batch, count in ((1, 99), (4, 100), (8, 100)):
        book.add("onnx-http", batch, 1, {"w0": [10 * MS] * (count - 10) + [30 * MS] * 10})
    chart = tradeoff(load_study(book.write(tmp_path)))
    assert chart is not None
    assert (chart.data["y"], chart.caption) == ("mean ms", BY_MEAN)
    assert [point["latency"] for point in chart.data["series"][0]["points"]] == [12.02, 12.0, 12.0]


def test_one_cell_of_each_has_no_curve(tmp_path: Path) -> None:
    assert tradeoff(serial(tmp_path, onnx_http=[20], onnx_grpc=[10])) is None
