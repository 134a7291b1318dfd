"""The parts of benchmarks/generator.py that decide: figures, table, bounds, command line, peers' words."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.generating.arm import Told, read_told
from benchmarks.generating.arms import arms_of
from benchmarks.generating.figures import Over, over, paired, table
from benchmarks.generating.judging import RATIOS, judge
from benchmarks.generating.kinds import KINDS
from benchmarks.generating.page import BEGIN, END, between
from benchmarks.generating.peers import PEERS, PERF_ANALYZER, Asked, own_figures, perf_analyzer
from benchmarks.generator import cells_of, read_options

TOLD = Told(requests=1_000, wall_s=2.0, cpu_s=1.9, p50_ms=0.5, failures=0)
CELL = ("fp32-http", 16)


def cpu(seconds: float) -> Told:
    """As TOLD, with another processor time."""
    return replace(TOLD, cpu_s=seconds)


def test_the_median_is_of_the_ratios_of_the_same_repeat_and_not_of_the_medians() -> None:
    ours, others = [cpu(1.0), cpu(4.0), cpu(9.0)], [cpu(2.0), cpu(2.0), cpu(3.0)]
    assert paired(ours, others, lambda one, other: one.cpu_s / other.cpu_s) == Over(2.0, 0.5, 3.0)


def test_a_repeat_in_which_an_arm_gave_nothing_is_left_out() -> None:
    found = paired([cpu(1.0), None, cpu(3.0)], [cpu(1.0), cpu(1.0), None], lambda one, _: one.cpu_s)
    assert found == Over(1.0, 1.0, 1.0)
    assert paired([None], [cpu(1.0)], lambda one, _: one.cpu_s) is None
    assert over([]) is None


def test_the_table_marks_an_idle_client_and_a_peer_without_figures() -> None:
    socket = replace(cpu(0.5), own_per_s=480.0)
    arms = {"inferswarm": [TOLD], "socket": [socket], "perf_analyzer": [None]}
    shown = table({CELL: arms}, "inferswarm").splitlines()
    assert shown[2] == "| fp32-http | 16 | inferswarm | 500 | 95% | 1.90 | 526 | 0.500 | 0 | – |"
    assert shown[3] == (
        "| fp32-http | 16 | socket | 480 | 25% * | 0.500 | 2,000 | 0.500 | 0 | 0.263 (0.263 to 0.263) |"
    )
    assert shown[4] == "| fp32-http | 16 | perf_analyzer | no stable measurement |" + " – |" * 6


def test_bounds_hold_at_their_very_value_and_break_beyond(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {"inferswarm": [cpu(1.5)], "socket": [cpu(1.0)], "stock": [cpu(3.0)]}
    assert judge({CELL: arms}, ["perf_analyzer"]) == 0
    assert (
        "fp32-http 16: CPU / perf_analyzer: skipped, perf_analyzer was not found" in capsys.readouterr().out
    )
    assert judge({CELL: {**arms, "inferswarm": [cpu(1.51)]}}, ["perf_analyzer"]) == 1
    assert "broken: fp32-http 16: CPU / socket\n" in capsys.readouterr().out


def test_a_peer_that_gave_nothing_holds_nobody_to_anything(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {"inferswarm": [TOLD], "socket": [TOLD], "stock": [cpu(3.0)], "perf_analyzer": [None]}
    assert judge({CELL: arms}, []) == 0
    assert "skipped, perf_analyzer gave no stable measurement" in capsys.readouterr().out


def test_an_own_arm_that_gave_nothing_breaks_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge({CELL: {"inferswarm": [TOLD], "socket": [None], "stock": [cpu(3.0)]}}, []) == 1
    assert judge({("jpeg-http", 128): {"inferswarm": [replace(TOLD, failures=1)]}}, []) == 1
    assert "not read" in capsys.readouterr().out


@pytest.mark.parametrize(("added_ms", "code"), [(0.14, 0), (0.16, 1)])
def test_the_p50_that_is_added_is_bound(added_ms: float, code: int) -> None:
    ours = replace(TOLD, p50_ms=0.5 + added_ms)
    assert judge({("jpeg-http", 1): {"inferswarm": [ours], "socket": [TOLD]}}, []) == code


def test_what_grpcio_alone_adds_stands_beside(capsys: pytest.CaptureFixture[str]) -> None:
    ours, grpcio = replace(TOLD, p50_ms=0.9), replace(TOLD, p50_ms=0.7)
    arms = {"inferswarm": [ours], "grpcio": [grpcio], "socket": [TOLD]}
    assert judge({("fp32-grpc", 1): arms}, []) == 1
    said = capsys.readouterr().out
    assert "of that by grpcio alone" in said
    assert "0.200 ms" in said
    assert "broken: fp32-grpc 1: p50 added\n" in said


def test_at_least_is_read_the_other_way_round() -> None:
    fast, slow = replace(TOLD, requests=1_200), TOLD
    assert judge({("jpeg-http", 16): {"inferswarm": [fast], "stock": [slow]}}, []) == 0
    assert judge({("jpeg-http", 16): {"inferswarm": [slow], "stock": [fast]}}, []) == 1


def test_quick_has_what_a_bound_needs() -> None:
    assert cells_of(True, list(KINDS), [1, 16, 128])[:2] == [("jpeg-http", 1), ("jpeg-http", 16)]
    assert arms_of(CELL, True, ["perf_analyzer", "wrk"]) == ["socket", "inferswarm", "stock", "perf_analyzer"]
    assert arms_of(("fp32-http", 1), True, ["perf_analyzer"]) == ["socket", "inferswarm"]
    both = ["inferswarm", "inferswarm-http2", "inferswarm-http", "perf_analyzer"]
    assert arms_of(("fp32-grpc", 16), True, ["perf_analyzer", "ghz"]) == ["socket", "grpcio-gevent", *both]
    assert arms_of(("fp32-grpc", 1), True, []) == ["socket", "grpcio", "inferswarm"]
    for ratio in RATIOS:
        assert {ratio.other, ratio.mine} <= set(arms_of(ratio.cell, True, [PERF_ANALYZER]))


def test_all_has_every_peer_that_can_send_the_kind() -> None:
    own = ["socket", "inferswarm", "stock"]
    grpc = ["socket", "grpcio", "grpcio-gevent", "inferswarm"]
    found = arms_of(("fp32-grpc", 16), False, ["wrk", "h2load", "ghz"])
    assert found == [*grpc, "inferswarm-http2", "inferswarm-http", "stock", "library", "h2load", "ghz"]
    assert arms_of(("jpeg-grpc", 16), False, ["wrk", "ghz"]) == [*grpc, "stock", "library", "ghz"]
    assert arms_of(("jpeg-http", 128), False, ["wrk"]) == own


def test_grpc_is_bound_by_grpcio_by_perf_analyzer_and_by_our_own_http(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = {"grpcio-gevent": 2.0, "perf_analyzer": 1 / 0.45, "inferswarm-http": 0.8, "socket": 1 / 1.5}
    arms = {name: [cpu(seconds)] for name, seconds in others.items()}
    ours = {"inferswarm": [cpu(1.0)], "inferswarm-http2": [cpu(1.0)]}
    assert judge({("fp32-grpc", 16): {**arms, **ours}}, []) == 0
    slower = {name: [cpu(1.01)] for name in ours}
    assert judge({("fp32-grpc", 16): {**arms, **slower}}, []) == 1
    ratios = ("/ socket", "/ grpcio-gevent", "/ perf_analyzer", "of inferswarm-http2 / inferswarm-http")
    broken = "; ".join(f"fp32-grpc 16: CPU {ratio}" for ratio in ratios)
    assert capsys.readouterr().out.splitlines()[-1] == f"broken: {broken}"


def test_the_figures_of_an_arm_are_found_among_what_else_it_prints() -> None:
    line = '{"requests": 1000, "wall_s": 2.0, "cpu_s": 1.9, "p50_ms": 0.5, "failures": 0, "own_per_s": null}'
    assert read_told(f"a warning\n{line}\n") == TOLD
    with pytest.raises(ValueError, match="it told no figures"):
        read_told("Traceback")


@pytest.mark.parametrize(
    ("name", "said", "figures"),
    [
        ("perf_analyzer", "    Throughput: 1132.42 infer/sec\n    p50 latency: 8199 usec", (1132.42, 8.199)),
        ("wrk", "     50%  950.00us\nRequests/sec:   4805.91", (4805.91, 0.95)),
        ("hey", "  Requests/sec:\t5462.1090\n  50% in 0.0013 secs", (5462.109, 1.3)),
        ("h2load", "finished in 3.03s, 7182.00 req/s, 75.45MB/s", (7182.0, None)),
        ("hey", "flag provided but not defined", (None, None)),
    ],
)
def test_what_peers_print(name: str, said: str, figures: tuple[float | None, float | None]) -> None:
    (peer,) = (peer for peer in PEERS if peer.name == name)
    assert own_figures(peer, said) == pytest.approx(figures)


def test_perf_analyzer_sends_as_many_bytes_as_the_others(tmp_path: Path) -> None:
    (tmp_path / "jpeg-grpc").mkdir()
    (tmp_path / "jpeg-grpc" / "000.body").write_bytes(bytes(9_876))
    asked = Asked(KINDS["jpeg-grpc"], 16, 1, 2.0, tmp_path)
    said = " ".join(perf_analyzer("perf_analyzer", asked))
    assert "-m null_jpeg" in said
    assert "--shape input:1 --string-length 9876" in said
    tensors = perf_analyzer("perf_analyzer", replace(asked, kind=KINDS["fp32-grpc"]))
    assert "--shape input:3,224,224 -b 1" in " ".join(tensors)
    # It counts pictures, and the table requests.
    assert own_figures(PEERS[0], "Throughput: 3410.4 infer/sec", batch=32)[0] == pytest.approx(106.575)


def test_the_page_keeps_what_stands_around_the_markers() -> None:
    assert between(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n"
    with pytest.raises(ValueError, match="lacks the line"):
        between(f"{BEGIN} only", "new")


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--users", "0", "must be a whole number of at least 1"),
        ("--seconds", "soon", "give seconds above 0"),
        ("--kinds", "x", "--kinds"),
    ],
)
def test_bad_options_end_with_a_sentence(
    option: str, value: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read_options([option, value])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
