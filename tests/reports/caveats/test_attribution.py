"""What a ledger with paths, set-ups and executions by size comes to, and what is doubted for it."""

from dataclasses import replace
from pathlib import Path as Folder
from typing import Any

import pytest

from reports.caveats.attribution import attribution_caveats, axis_caveats, path_gap
from reports.fold.path import Path
from reports.fold.server_facts import Serving
from reports.ledger.axes import Topology
from reports.study.study import load_study
from reports.study.summarise import given
from reports.summary.summary import Summary
from reports.topics.load.rate_search import find_bound
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, sample_line, triton
from tests.reports.study.test_fold import codes, folded, text_of
from tests.reports.summary.test_network import summary

MS = 1_000_000
SILENT = dict.fromkeys(("server_queue_ns", "server_compute_ns", "server_other_ns"))
LOADS = {"w0": [10 * MS] * 100}


def one_run(folder: Folder, counters: Record | None = None, *lines: Record) -> Summary:
    book = Book()
    tag = book.add("onnx-http", 1, 1, LOADS, counters=counters or triton(100, 1, 8 * MS))
    book.records += [line | tag for line in lines]
    return folded(book, folder)


def test_a_run_has_its_path_and_the_network(tmp_path: Folder) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, LOADS, counters=triton(100, 1, 8 * MS))
    book.phases(tag, send=200_000, receive=100_000, decode=50_000)
    book.request_bytes(tag, 600)
    book.path(tag, busy_ns=100 * MS, bytes_sent=60_000, bytes_received=2_000, segments_out=50, segments_in=30)
    book.path(tag, second=FIRST_SECOND - 1, phase="warm-up", busy_ns=900 * MS, connections=9)
    run = folded(book, tmp_path)
    assert run.path is not None
    assert (run.path.asked, run.tcp_connections) == (1, 1)
    assert run.path.wire_bytes_per_image == pytest.approx((62_000 + 66 * 80) / 100)
    assert run.latency.mean_ns == pytest.approx(10 * MS, rel=1e-3)
    # busy for 1 ms of each request, of which send is 0.2 ms; that bytes were under way is not proven
    assert run.network_most_ns == pytest.approx(0.8 * MS, rel=1e-3)
    assert run.network_ns == 0
    parts = (*vars(run.phases).values(), run.network_ns, run.server.total_ns, run.unexplained_ns)
    assert sum(part or 0 for part in parts) == pytest.approx(run.latency.mean_ns)
    assert run.server.other_ns == 50_000
    assert codes(run) == ["few-samples"]


def path_run(folder: Folder, failures: int = 0, **stated: int) -> Summary:
    """100 requests of 1,000 bytes on a connection that was busy for 1 ms of each, and some that failed."""
    book = Book()
    counters = triton(100, 1, 8 * MS)
    tag = book.add("onnx-http", 1, 1, LOADS, counters=counters, failures={"timeout": failures})
    book.request_bytes(tag, 1_000)
    times = {"busy_ns": 100 * MS, "rwnd_limited_ns": 0, "sndbuf_limited_ns": 0}
    looks = {"asked": 1, "rtt_ns": 900_000, "min_rtt_ns": MS, "cwnd_bytes": 14_480, "segments_out": 100}
    book.path(tag, **times, **looks, **stated)
    return folded(book, folder)


def test_a_path_that_was_seen_in_part_has_no_totals(tmp_path: Folder) -> None:
    run = path_run(tmp_path, bytes_sent=89_999, bytes_received=7, bytes_retransmitted=0, retransmits=0)
    assert run.path is not None
    assert {name: value for name, value in vars(run.path).items() if value not in (None, {})} == {
        **{"asked": 1, "connections": 1, "rtt_ns": 900_000, "min_rtt_ns": MS, "cwnd_bytes": 14_480}
    }
    assert run.network_ns is None
    assert run.unexplained_ns == pytest.approx(10 * MS - 8.1 * MS, rel=0.01)
    assert text_of(run, "path-gap") == "89,999 of at least 100,000 bytes sent were seen on the connections"
    assert not run.tainted


@pytest.mark.parametrize(
    ("stated", "failures"),
    [
        ({"bytes_sent": 90_000}, 0),
        ({"bytes_sent": 131_000}, 0),
        # what failed was sent, too, and is not expected
        ({"bytes_sent": 100_000}, 40),
        ({"bytes_sent": 140_000}, 40),
        # a kernel that does not count them
        ({}, 0),
    ],
)
def test_a_path_on_which_all_was_seen_keeps_its_totals(
    tmp_path: Folder, stated: dict[str, int], failures: int
) -> None:
    run = path_run(tmp_path, failures, **stated)
    assert run.path is not None
    assert (run.path.bytes_sent, run.path.busy_ns) == (stated.get("bytes_sent"), 100 * MS)
    assert run.network_ns == pytest.approx(MS, rel=1e-3)
    assert "path-gap" not in codes(run)


def test_without_a_success_no_bytes_are_missed(tmp_path: Folder) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": []}, failures={"timeout": 5})
    book.path(tag, bytes_sent=10)
    assert "path-gap" not in codes(folded(book, tmp_path))


def test_without_a_path_nothing_is_missed() -> None:
    assert path_gap(summary(path=None, request_bytes=1_000.0)) is None
    assert path_gap(summary(request_bytes=1_000.0)) is None


def test_the_set_up_of_the_server_is_the_last_told(tmp_path: Folder) -> None:
    first = {"kind": "serving", "instances": 9, "max_batch": None, "batching_delay_ns": 1, "batching": False}
    last = {"kind": "serving", "instances": 2, "max_batch": 8, "batching_delay_ns": 5 * MS, "batching": True}
    run = one_run(tmp_path, None, first, last)
    assert run.serving == Serving(instances=2, max_batch=8, batching=True, batching_delay_ns=5 * MS)
    # 100 executions of 8 ms in a second of two instances
    assert run.server.busy == pytest.approx(0.4)


def test_a_set_up_that_was_not_told_is_a_gap(tmp_path: Folder) -> None:
    run = one_run(tmp_path, None, {"kind": "serving", "error": "the model's configuration: HTTP 404"})
    assert (run.serving, run.server.busy) == (None, None)
    assert text_of(run, "probe-gap") == (
        "how the server is set up is not known: the model's configuration: HTTP 404"
    )


def test_executions_by_size_say_how_busy_and_how_cold_the_server_was(tmp_path: Folder) -> None:
    batches = {"1": [40, 200 * MS, 10, 50 * MS], "4": [1, 320 * MS]}
    counters = triton(100, 1, 8 * MS) | {"executions": 41, "batches": batches}
    run = one_run(tmp_path, counters, {"kind": "serving", "instances": 1})
    assert run.server.busy == pytest.approx(0.52)
    # four at once take at most 20 ms by the 5 ms of one
    assert (run.server.cold.share, run.server.cold.batches) == (pytest.approx(300 / 520), (4,))
    assert text_of(run, "cold-shape") == (
        "57.7 % of the server's execution time went into its first executions of batch 4"
    )
    assert run.tainted


def test_of_executions_that_are_shared_and_not_told_by_size_nothing_is_said(tmp_path: Folder) -> None:
    run = one_run(tmp_path, triton(100, 1, 8 * MS) | {"executions": 50}, {"kind": "serving", "instances": 1})
    assert (run.server.busy, run.server.cold.share, run.server.cold.batches) == (None, None, ())


def test_of_a_size_that_was_executed_less_often_the_counters_began_again(tmp_path: Folder) -> None:
    run = one_run(
        tmp_path, triton(100, 1, 8 * MS) | {"requests": -900, "batches": {"1": [-3, MS, 10, 5 * MS]}}
    )
    assert text_of(run, "counters-reset")
    assert run.server.total_ns is None


def test_a_size_that_another_server_executed_less_often(tmp_path: Folder) -> None:
    """One that has just started cannot have counted 1,100 requests of 100 that were sent."""
    run = one_run(tmp_path, triton(100, 1, 8 * MS) | {"batches": {"1": [-3, MS, 10, 5 * MS]}})
    assert "server-lost" not in codes(run)
    assert text_of(run, "several-servers").startswith("the counters went up and down")
    assert run.server.total_ns is None


def test_what_answers_state_goes_before_the_counters(tmp_path: Folder) -> None:
    parts = {"decode_ns": 100 * MS, "queue_ns": 100 * MS, "compute_ns": 900 * MS}
    book = Book()
    counted = {"requests": 102, "successes": 102, "executions": 102, "images": 102} | parts
    tag = book.add("pytorch-http", 1, 1, LOADS, counters=counted)
    book.server_timing(tag, decode=MS, preprocess=MS // 2, queue=0, compute=7 * MS, total=9 * MS)
    book.serving(tag)
    run = folded(book, tmp_path)
    assert run.server.parts == {"decode": MS, "preprocess": MS / 2, "queue": 0, "compute": 7 * MS}
    assert (run.server.queue_ns, run.server.compute_ns, run.server.other_ns) == (0, 7 * MS, 1.5 * MS)
    assert run.server.total_ns == 8.5 * MS
    # the counters still say how long the one thread computed, and that others were sent
    assert (run.server.busy, run.server.executed_batch) == (pytest.approx(0.9), 1)
    assert "counts-mismatch" in codes(run)


def test_what_answers_state_needs_no_counters(tmp_path: Folder) -> None:
    book = Book()
    tag = book.add("pytorch-http", 1, 1, LOADS)
    book.server_timing(tag, compute=7 * MS)
    book.serving(tag)
    run = folded(book, tmp_path)
    assert (run.server.total_ns, run.server.busy) == (7 * MS, pytest.approx(0.7))
    assert "probe-gap" in codes(run)


def test_the_masters_host_is_a_mean_over_the_measure_phase(tmp_path: Folder) -> None:
    busy, idle, unknown = {"cpu_pct": 90.0}, {"cpu_pct": 30.0}, {"tx_bytes": 1}
    run = one_run(
        tmp_path,
        None,
        sample_line({}, FIRST_SECOND - 1, phase="warm-up", host={"cpu_pct": 1.0}),
        *(sample_line({}, FIRST_SECOND + at, host=host) for at, host in enumerate((busy, idle, unknown))),
    )
    assert run.host_cpu_pct == 60.0


def test_options_of_the_header_reach_the_summary(tmp_path: Folder) -> None:
    book = Book(options={"link_mbit": 80, "channels": "shared", "client": "library"})
    book.add("onnx-grpc", 1, 1, LOADS, counters=triton(100, 1, MS))
    run = folded(book, tmp_path)
    assert (run.channels, run.client, run.link_bytes_per_s) == ("shared", "library", 10e6)


def test_http_has_no_channels_and_an_unknown_link_no_rate() -> None:
    options = {"link_mbit": 0, "channels": "per-user", "client": "prepared"}
    nothing = {"channels": "", "client": "", "link_bytes_per_s": None}
    assert given({"protocol": "http"}, options) == nothing | {"client": "prepared"}
    assert given({"protocol": "grpc"}, {}) == nothing


@pytest.mark.parametrize(
    ("known", "code", "text"),
    [
        (
            {"cold_share": 0.05, "cold_batches": (2, 8)},
            "cold-shape",
            "5.00 % of the server's execution time went into its first executions of batch 2, 8",
        ),
        (
            {"path": Path(asked=16, connections=1)},
            "connections-differ",
            "connections asked for: 16, seen by the kernel: 1",
        ),
        (
            {"path": Path(asked=1, connections=2)},
            "connections-differ",
            "connections asked for: 1, seen by the kernel: 2",
        ),
        (
            {"network_ns": 0.0, "unexplained_ns": 201.0},
            "unexplained",
            "0.000201 ms of 0.00100 ms (20.1 %) belong to no part that was measured",
        ),
        (
            {"network_ns": 0.0, "network_most_ns": 50.0, "unexplained_ns": 300.0},
            "unexplained",
            "0.000300 ms of 0.00100 ms (30.0 %) belong to no part that was measured, 0.0000500 ms of which "
            "may be the network's",
        ),
        (
            {"network_ns": 0.0, "unexplained_ns": -250.0},
            "unexplained",
            "the parts come to 0.000250 ms more than the 0.00100 ms measured",
        ),
    ],
)
def test_what_is_doubted(known: dict[str, Any], code: str, text: str) -> None:
    (doubt,) = attribution_caveats(summary(**known))
    assert (doubt.code, doubt.text, doubt.tainted) == (code, text, code == "cold-shape")


@pytest.mark.parametrize(
    "known",
    [
        {"cold_share": 0.0499, "cold_batches": (8,)},
        {"cold_share": None, "cold_batches": (8,)},
        {"path": Path(asked=16, connections=16)},
        {"path": Path(connections=16)},
        {"path": Path(asked=16, connections=1), "channels": "per-request"},
        {"network_ns": 0.0, "unexplained_ns": 200.0},
        {"network_ns": 0.0, "unexplained_ns": -200.0},
        # what was not read may be all of it
        {"network_ns": None, "unexplained_ns": 900.0},
        {"network_ns": 0.0, "unexplained_ns": 900.0, **SILENT},
    ],
)
def test_what_is_not_doubted(known: dict[str, Any]) -> None:
    assert list(attribution_caveats(summary(**known))) == []


def test_a_cold_shape_is_no_evidence_in_a_search(tmp_path: Folder) -> None:
    book = Book(options={"find_rate": "p99<=5"})
    batches = {"1": [1, 5 * MS, 10, 50 * MS], "4": [1, 320 * MS]}
    book.add_open("onnx-http", 100, LOADS, counters=triton(100, 1, MS) | {"batches": batches})
    study = load_study(book.write(tmp_path))
    bound = find_bound(study)
    assert bound is not None
    assert bound.met_by(study.runs[0]) is None


def test_a_rate_that_is_exceeded_is_not_the_links() -> None:
    path = Path(connections=1, busy_ns=14_000, wire_bytes_per_s=1.06e6)
    run = summary(link_bytes_per_s=1e6, path=path, hosts=1)
    assert {one.code: one.text for one in attribution_caveats(run)}["link-rate"] == (
        "8.48 Mbit/s were sent over a link of 8.00 (106 %): the rate is not the link's"
    )
    assert "link-rate" not in {one.code for one in attribution_caveats(replace(run, hosts=2))}
    path = Path(connections=1, busy_ns=14_000, wire_bytes_per_s=0.9e6, bytes_received=110, segments_in=0)
    (back,) = attribution_caveats(replace(run, path=path))
    assert back.text == "8.80 Mbit/s were received over a link of 8.00 (110 %): the rate is not the link's"


ASKED: dict[str, Any] = {"link": "wan", "topology": Topology(4, 2), "workers": 4, "hosts": 2}
ASKED |= {"instances": 2, "queue_delay_us": 100}
TOLD = Serving(instances=2, batching=True, batching_delay_ns=100_000)
MORE, SAYS = "asked for: 4, used: 5", "according to the server"
BOTH = f"instances asked for: 1, {SAYS}: 2; queue delay asked for: 0 us, {SAYS}: 100 us"


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({}, "", ""),
        ({"link": "lan"}, "link-differs", "lan: 9 of 10 Mbit/s; 3 ms more"),
        ({"workers": 3}, "topology-differs", "workers asked for: 4, used: 3"),
        ({"hosts": 3}, "topology-differs", "hosts asked for: 2, used: 3"),
        ({"workers": 5, "hosts": 1}, "topology-differs", f"workers {MORE}; hosts asked for: 2, used: 1"),
        ({"workers": None, "hosts": None}, "", ""),
        ({"topology": Topology(0, 0)}, "", ""),
        ({"serving": replace(TOLD, instances=1)}, "settings-differ", f"instances asked for: 2, {SAYS}: 1"),
        ({"instances": 1}, "settings-differ", f"instances asked for: 1, {SAYS}: 2"),
        ({"queue_delay_us": 0}, "settings-differ", f"queue delay asked for: 0 us, {SAYS}: 100 us"),
        ({"instances": 1, "queue_delay_us": 0}, "settings-differ", BOTH),
        ({"instances": 0, "queue_delay_us": None}, "", ""),
        ({"serving": replace(TOLD, instances=None, batching_delay_ns=None)}, "", ""),
        ({"queue_delay_us": 0, "serving": replace(TOLD, batching=False)}, "", ""),
        ({"serving": None}, "", ""),
    ],
)
def test_what_was_not_as_the_cell_asks_for(changes: dict[str, Any], code: str, text: str) -> None:
    links = [{"name": "lan", "differences": ["9 of 10 Mbit/s.", "3 ms more"]}, {"name": "wan"}]
    found = list(axis_caveats(summary(**{"serving": TOLD} | ASKED | changes), links))
    assert [(one.code, one.text) for one in found] == ([(code, text)] if code else [])
