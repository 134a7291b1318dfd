"""What slows gRPC: the verdict from arms whose figures are chosen, and where it is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.limit import Limit
from reports.study.study import load_study
from reports.topics.contention.advice import ADVICE
from reports.topics.contention.arms import ArmAxes, arms_of, cases
from reports.topics.contention.conclusion import cause_said, contention_answer, verdict_said, verdicts
from reports.topics.contention.experiments import ExperimentAnswer
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.contention_book import (
    ARMS,
    BY_CONNECTIONS,
    BY_CPU,
    a_study,
    an_arm,
    arms,
    axes_of,
    studied,
    the_verdict,
    without,
)
from tests.reports.example import example

MS = 1_000_000
CASE = "emulated fp32, batch 1, 16 users over wan-a100"


def line(found: tuple[ExperimentAnswer, ...], begin: str) -> ExperimentAnswer:
    return next(evidence for evidence in found if evidence.question.startswith(begin))


def test_connections_are_the_cause_where_as_many_as_http_has_recover(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CONNECTIONS), tmp_path)
    assert (verdict.cause, verdict.doubts, verdict.missing) == ("connections", (), ())
    assert verdict_said(verdict) == (
        "gRPC gets 7.40 (7.18–7.62) images/s on one connection, 41.8 (40.5–43.1) with one for each user, and "
        "HTTP 42.0 (40.7–43.3); HTTP on one connection gets 6.90 (6.69–7.11); own wire and grpcio: 7.40 and "
        "7.20 images/s on one channel, 41.8 and 41.9 on own channels: the connection, not the library. "
        f"{verdict.advice}"
    )
    assert (str(verdict.case), cause_said(verdict)) == (CASE, "too few TCP connections")
    assert verdict.advice.startswith("Give gRPC a connection for each user (--channels per-user)")
    assert "grpc.use_local_subchannel_pool" in verdict.advice


@pytest.mark.parametrize(
    ("begin", "figures", "verdict"),
    [
        (
            "Does gRPC recover",
            "41.8 (40.5–43.1) images/s on 16 TCP connections, 0.995 of HTTP",
            "for connections, against client-cpu",
        ),
        (
            "Does HTTP fall",
            "6.90 (6.69–7.11) images/s on 1 TCP connection, 0.932 of gRPC on one; without the server's "
            "5.1 ms and a round trip of 14.0 ms, 126 of 145 ms a request, where gRPC takes 135 ms",
            "for connections",
        ),
        (
            "Do equal channels",
            "7.50 (7.27–7.73) images/s on 1 TCP connection, 1.04 of one channel",
            "for connections",
        ),
        (
            "Do several channels",
            "27.0 (26.2–27.8) images/s on 4 TCP connections, 3.65 times one channel",
            "for connections, against client-cpu",
        ),
        (
            "Do as many processes",
            "28.9 (28.0–29.8) images/s on 4 TCP connections from 4 processes; "
            "27.0 (26.2–27.8) images/s on 4 TCP connections from 1",
            "for connections, against client-cpu",
        ),
        (
            "Does the library",
            "own wire 7.40 (7.18–7.62), grpcio 7.20 (6.98–7.42) images/s on one channel: 0.973× (0.971–0.975)"
            "; own wire 41.8 (40.5–43.1), grpcio 41.9 (40.6–43.2) images/s on own channels: "
            "1.002× (1.000–1.004)",
            "for connections, against client-library, against client-cpu",
        ),
        (
            "Does BBR",
            "40.0 (38.8–41.2) images/s on 1 TCP connection, 5.41 times the link's own congestion control",
            "for connections",
        ),
        (
            "What limits",
            "its congestion window 100 % of the busy time; 138 segments (0.0691 %) were retransmitted",
            "for connections",
        ),
        (
            "Does the client",
            "the busiest used 6.00 % of a core; its loop lagged 0.3 ms at p99",
            "against client-cpu, against client-loop",
        ),
        (
            "Which limits",
            "gRPC, own wire, one channel: connections; gRPC, own wire, own connections: link; "
            "HTTP, own connections: link",
            "for connections",
        ),
    ],
)
def test_each_question_is_answered_by_figures(tmp_path: Path, begin: str, figures: str, verdict: str) -> None:
    found = line(the_verdict(arms(a_study(), BY_CONNECTIONS), tmp_path).evidence, begin)
    assert (found.figures, found.verdict) == (figures, verdict)


def test_the_client_is_the_cause_where_processes_help_and_connections_do_not(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CPU, cpu_pct=97.0), tmp_path)
    assert (verdict.cause, verdict.doubts) == ("client-cpu", ())
    assert line(verdict.evidence, "Do as many processes").says == {
        "client-cpu": "for",
        "connections": "against",
    }
    assert line(verdict.evidence, "Does gRPC recover").says == {"connections": "against"}
    # channels that share a connection tell nothing where channels that do not are as slow
    assert line(verdict.evidence, "Do equal channels").says == {}
    assert verdict.advice.startswith("Add workers (--processes) or hosts")


def test_a_verdict_on_the_client_is_doubted_where_its_cpu_was_idle(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CPU), tmp_path)
    assert verdict.cause == "client-cpu"
    assert verdict.doubts == ("yet the busiest used 6.00 % of a core; its loop lagged 0.3 ms at p99",)


def test_a_server_that_is_slower_over_grpc_is_named_by_its_limit(tmp_path: Path) -> None:
    book = arms(a_study(), {"R0": 42.0, "R1": 42.0, "R2": 20.0, "R4": 20.0, "R5": 20.0}, before=True)
    for record_ in book.records:
        if record_["kind"] == "server" and "grpc" in record_["cell"] and record_["when"] == "after":
            record_["counters"]["compute_ns"] += 160 * 760 * MS
        if record_["kind"] == "path" and "grpc" in record_["cell"]:
            record_["busy_ns"] //= 50
    verdict = the_verdict(book, tmp_path)
    assert (verdict.cause, verdict.arms["R4"].limit) == ("server-compute", "server-compute")


@pytest.mark.parametrize("limit", ["server-compute", "server-queue", "server-preprocess"])
def test_a_server_that_takes_both_as_long_explains_no_difference(tmp_path: Path, limit: str) -> None:
    """300 ms of compute in each request: 16 users get 42 images/s over HTTP and 20 over gRPC."""
    rates = {"R0": 42.0, "R2": 20.0, "R4": 20.0}
    study = studied(arms(a_study(), rates, compute_ns=300 * MS, before=True), tmp_path)
    of_grpc = [
        replace(run, limit=Limit(limit, "seen", "Use a faster device.")) if run.protocol == "grpc" else run
        for run in study.runs
    ]
    (verdict,) = verdicts(replace(study, runs=tuple(of_grpc)))
    assert verdict.cause == "inconclusive"
    assert verdict.why == (
        f"a connection for each user changes nothing, and {limit}, gRPC's limit, explains no difference: "
        "requests were at the server for 300 of 800 ms over gRPC, and for 300 of 381 ms over HTTP"
    )
    assert verdict.advice == ADVICE["inconclusive"]
    untold = [replace(run, server=replace(run.server, parts={})) for run in of_grpc]
    (verdict,) = verdicts(replace(study, runs=tuple(untold)))
    assert verdict.why.endswith("how long the requests of both were at the server is not known")


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        *((code, code) for code in ("throttled", "downlink", "rate-limited")),
        *((code, "inconclusive") for code in ("batches-not-full", "offered-load", "server-cold")),
    ],
)
def test_a_limit_that_only_says_there_was_room_is_no_cause(tmp_path: Path, code: str, cause: str) -> None:
    study = studied(arms(a_study(), {"R0": 42.0, "R2": 20.0, "R4": 20.0}), tmp_path)
    of_grpc = [
        replace(run, limit=Limit(code, "seen", "Do this.")) if run.protocol == "grpc" else run
        for run in study.runs
    ]
    (verdict,) = verdicts(replace(study, runs=tuple(of_grpc)))
    assert verdict.cause == cause
    assert verdict.advice == ("Do this." if cause == code else ADVICE["inconclusive"])


def test_without_a_difference_the_true_limit_is_named(tmp_path: Path) -> None:
    even = {"R0": 42.0, "R1": 41.5, "R2": 41.8, "R3": 41.9, "R4": 42.0}
    verdict = the_verdict(arms(a_study(), even), tmp_path)
    assert verdict.cause == "none"
    assert verdict_said(verdict) == (
        "gRPC on one connection gets 0.995 (0.937–1.06) of HTTP's images/s; the limit of both is link."
    )
    assert cause_said(verdict) == "nothing slows it"
    assert all("for" not in found.says.values() for found in verdict.evidence)


@pytest.mark.parametrize(("lacking", "protocol"), [("R4", "gRPC"), ("R0", "HTTP")])
def test_missing_arms_are_named(tmp_path: Path, lacking: str, protocol: str) -> None:
    verdict = the_verdict(arms(a_study(), without(BY_CONNECTIONS, lacking)), tmp_path)
    missing = f"{protocol}, own connections (--channels per-user)"
    assert (verdict.cause, verdict.missing) == ("inconclusive", (missing,))
    assert verdict.why == f"not tested: {missing}"


def test_the_arms_that_decide_suffice_and_the_rest_is_said_to_be_untested(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), {"R0": 42.0, "R2": 7.4, "R4": 41.8}), tmp_path)
    assert verdict.cause == "connections"
    assert line(verdict.evidence, "Does HTTP fall").verdict == "not tested"


@pytest.mark.parametrize(
    ("changes", "contradicting"),
    [
        ({"R1": 41.0}, "Does HTTP fall on one connection? 41.0 (39.8–42.2) images/s on 1 TCP connection"),
        ({"R5": 12.0, "R6": 30.0}, "Do as many processes help? 30.0 (29.1–30.9) images/s"),
        ({"R9": 20.0}, "Does the library matter, or the connection? own wire 7.40 (7.18–7.62), grpcio 7.20 "),
    ],
)
def test_contradicted_is_inconclusive(tmp_path: Path, changes: dict[str, float], contradicting: str) -> None:
    verdict = the_verdict(arms(a_study(), BY_CONNECTIONS | changes), tmp_path)
    assert verdict.cause == "inconclusive"
    assert verdict.contradictions[0].startswith(contradicting)
    assert verdict.why.startswith(f"connections would explain it, but: {contradicting}")


def test_half_a_recovery_is_no_verdict(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), without(BY_CONNECTIONS | {"R4": 20.0}, "R5", "R6")), tmp_path)
    assert verdict.cause == "inconclusive"
    assert verdict.why.startswith(
        "a connection for each user brings gRPC to 0.476 (0.448–0.506) of HTTP's images/s only"
    )


def test_where_the_repeats_overlap_there_is_no_difference_to_explain(tmp_path: Path) -> None:
    book = a_study()
    for repeat, (http, grpc) in enumerate(((42.0, 20.0), (24.0, 18.0), (40.0, 39.0)), 1):
        an_arm(book, "R0", http, repeat)
        an_arm(book, "R2", grpc, repeat)
        an_arm(book, "R4", http, repeat)
    verdict = the_verdict(book, tmp_path)
    assert verdict.cause == "inconclusive"
    assert verdict.why == "the repeats overlap: gRPC's images/s are 0.429 to 1.63 of HTTP's"


def test_channels_that_got_no_connections_of_their_own_are_no_test(tmp_path: Path) -> None:
    book = arms(a_study(), {"R0": 42.0, "R2": 7.4, "R4": 7.4})
    for record_ in book.records:
        if record_["kind"] == "path" and record_["cell"].endswith("grpc/b1/c16/wan-a100/per-user/1w"):
            record_["connections"] = 1
    verdict = the_verdict(book, tmp_path)
    assert verdict.cause == "inconclusive"
    assert "no more connections than on one channel" in verdict.why


@pytest.mark.parametrize(
    ("repeats", "doubts"),
    [
        (1, ("with one run behind a figure, this may be chance; rerun with --repeats 5 to confirm",)),
        (2, ("with fewer than 3 runs per cell, differences may be chance",)),
        (3, ()),
    ],
)
def test_a_verdict_says_how_few_runs_it_has(tmp_path: Path, repeats: int, doubts: tuple[str, ...]) -> None:
    verdict = the_verdict(arms(a_study(), BY_CONNECTIONS, repeats), tmp_path)
    assert (verdict.cause, verdict.doubts) == ("connections", doubts)
    assert verdict_said(verdict) == f"{'; '.join([verdict.why, *doubts])}. {verdict.advice}"


def test_disqualified_runs_are_no_evidence_save_where_the_client_is_bound(tmp_path: Path) -> None:
    book = a_study()
    for code, rate in BY_CONNECTIONS.items():
        book.caveat(an_arm(book, code, rate), "client-bound" if code != "R4" else "worker-lost", "seen")
    verdict = the_verdict(book, tmp_path)
    assert verdict.missing == ("gRPC, own connections (--channels per-user): invalidated by worker-lost",)
    assert verdict.arms["R2"].rate is not None


def test_unseen_connections_are_a_doubt(tmp_path: Path) -> None:
    book = arms(a_study(), {"R0": 42.0, "R2": 7.4, "R4": 41.8})
    book.records = [found for found in book.records if found["kind"] != "path"]
    verdict = the_verdict(book, tmp_path)
    assert verdict.cause == "connections"
    assert verdict.doubts == (
        "the kernel's count of TCP connections is missing for: HTTP, own connections; "
        "gRPC, own wire, one channel; gRPC, own wire, own connections",
    )


def test_a_pool_is_compared_with_as_many_processes(tmp_path: Path) -> None:
    ((_, found),) = cases(studied(arms(a_study(), BY_CONNECTIONS, 1), tmp_path))
    assert list(found) == ["R0", "R1", "R2", "R4", "R5", "R6", "R12", "R8", "R9", "R3"]
    assert found["R6"].axes == ArmAxes("grpc", "shared", 4, 1, "prepared", "")
    assert [found[code].connections for code in ("R2", "R4", "R5", "R6")] == [1, 16, 4, 4]


def test_runs_that_were_not_begun_leave_the_arms_as_they_are(tmp_path: Path) -> None:
    book = a_study()
    for code, rate in {"R0": 42.0, "R2": 7.4, "R4": 41.8}.items():
        an_arm(book, code, rate, workers_asked=0)
        about = axes_of(code, "wan-a100") | {"workers": 0, "hosts": 0}
        book.plan(f"emulated-{ARMS[code][0]}", 1, 16, repeat=2, axes=about)
    verdict = the_verdict(book, tmp_path)
    assert verdict.cause == "connections"
    assert [len(arm.planned) for arm in verdict.arms.values()] == [2, 2, 2]
    assert [arm.axes.workers for arm in verdict.arms.values()] == [1, 1, 1]


def test_no_case_without_both_protocols_and_two_kinds_of_channels(tmp_path: Path) -> None:
    assert verdicts(load_study(example().write(tmp_path / "old"))) == ()
    assert verdicts(studied(arms(a_study(), {"R0": 42.0, "R4": 42.0}, 1), tmp_path / "same")) == ()
    assert verdicts(studied(arms(a_study(), {"R2": 7.4, "R4": 42.0}, 1), tmp_path / "grpc")) == ()
    assert arms_of([]) == {}


def test_each_link_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    book = arms(a_study(), BY_CONNECTIONS)
    arms(book, {"R0": 400.0, "R2": 395.0, "R4": 398.0}, link="lan")
    found = verdicts(studied(book, tmp_path))
    assert [(verdict.case.link, verdict.cause) for verdict in found] == [
        ("wan-a100", "connections"),
        ("lan", "none"),
    ]
    answer = contention_answer(load_study(tmp_path))
    assert answer is not None
    assert answer.said == (
        "Too few TCP connections (emulated fp32, batch 1, 16 users over wan-a100); "
        "nothing slows it (emulated fp32, batch 1, 16 users over lan)."
    )


def test_older_ledgers_have_ratios_and_no_arms(tmp_path: Path) -> None:
    book = Book()
    for name in ("onnx-http", "onnx-grpc"):
        book.add(name, 1, 16, {"w0": [10 * MS] * 160})
    study = load_study(book.write(tmp_path))
    (found,) = [it for it in build_page(study, "x").sections if it.heading == "HTTP against gRPC"]
    assert [table.title for table in found.tables] == ["gRPC over HTTP"]
