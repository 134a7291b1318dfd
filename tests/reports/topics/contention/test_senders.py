"""Our own wire beside grpcio on the same connections: is it the library, or the connection?"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.limit import Limit
from reports.published_figures.figures import as_published, by_own_wire
from reports.study.study import load_study
from reports.topics.contention.conclusion import (
    Conclusion,
    cause_said,
    contention_answer,
    record,
    verdict_said,
    verdicts,
)
from reports.topics.contention.experiments import ExperimentAnswer, by_sender
from tests.reports.builder import Book
from tests.reports.contention_book import (
    BY_CONNECTIONS,
    BY_CPU,
    BY_LIBRARY,
    a_study,
    an_arm,
    arms,
    axes_of,
    studied,
    the_verdict,
    without,
)


def asked(verdict: Conclusion) -> ExperimentAnswer:
    return by_sender(verdict.arms)


def test_arms_are_named_by_what_sent_them(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CONNECTIONS, 1), tmp_path)
    assert {code: arm.words for code, arm in verdict.arms.items()} == {
        **{"R0": "own connections", "R1": "one connection"},
        **{"R2": "own wire, one channel", "R4": "own wire, own connections", "R5": "own wire, 4 channels"},
        **{"R6": "own wire, 4 processes", "R12": "own wire, with BBR"},
        **{"R8": "grpcio, one channel", "R9": "grpcio, own channels", "R3": "grpcio, equal channels"},
    }
    assert [arm.sender for arm in verdict.arms.values()] == ["", "", *["own wire"] * 5, *["grpcio"] * 3]


def test_where_both_get_the_same_everywhere_it_is_the_connection_and_not_the_library(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CONNECTIONS), tmp_path)
    assert verdict.cause == "connections"
    assert verdict.why.endswith(
        "; own wire and grpcio: 7.40 and 7.20 images/s on one channel, 41.8 and 41.9 on own channels: "
        "the connection, not the library"
    )
    assert record(verdict)["senders"] == [
        {
            **{"channels": "one channel", "arms": ["R2", "R8"], "alike": True},
            **{"own_wire_images_per_s": pytest.approx(7.4), "grpcio_images_per_s": pytest.approx(7.2)},
            **{"ratio": pytest.approx(7.2 / 7.4), "ratio_low": pytest.approx(0.971, abs=1e-3)},
            **{"ratio_high": pytest.approx(0.975, abs=1e-3)},
        },
        {
            **{"channels": "own channels", "arms": ["R4", "R9"], "alike": True},
            **{"own_wire_images_per_s": pytest.approx(41.8), "grpcio_images_per_s": pytest.approx(41.9)},
            **{"ratio": pytest.approx(41.9 / 41.8), "ratio_low": pytest.approx(1.0004, abs=1e-4)},
            **{"ratio_high": pytest.approx(1.0044, abs=1e-4)},
        },
    ]
    json.dumps(record(verdict))


def test_where_grpcio_alone_is_slower_it_is_the_library(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_LIBRARY), tmp_path)
    assert (verdict.cause, cause_said(verdict)) == ("client-library", "the client's gRPC library")
    assert verdict_said(verdict).startswith(
        "gRPC on one connection gets 0.995 (0.937–1.06) of HTTP's images/s"
    )
    assert verdict.why.endswith(
        "; own wire and grpcio: 41.8 and 20.0 images/s on one channel, 42.0 and 20.5 on own channels: "
        "the library matters"
    )
    assert verdict.advice.startswith("Measure servers with prepared requests")
    assert {cause for line in verdict.evidence for cause, word in line.says.items() if word == "for"} == {
        "client-library"
    }
    assert asked(verdict).verdict == "for client-library"
    answer = contention_answer(load_study(tmp_path))
    assert answer is not None
    assert answer.said == "The client's gRPC library."


def test_where_nothing_is_slow_the_library_does_not_matter(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_LIBRARY | {"R8": 41.0, "R9": 41.2}), tmp_path)
    assert verdict.cause == "none"
    assert verdict.why.endswith("41.8 and 41.0 images/s on one channel, 42.0 and 41.2 on own channels: "
                                "the library does not matter")  # fmt: skip


def test_a_library_that_is_slower_too_fits_a_client_without_cpu(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_CPU, cpu_pct=97.0), tmp_path)
    assert (verdict.cause, verdict.contradictions) == ("client-cpu", ())
    assert asked(verdict).says == {"client-library": "for"}
    assert verdict.why.endswith("7.60 and 4.10 on own channels: the library matters")


def uneven(first: float, second: float, third: float) -> Book:
    """grpcio's repeats on one channel, where our own wire gets 7.4 in each."""
    book = a_study()
    for repeat, rate in enumerate((first, second, third), 1):
        for code, of_arm in (BY_CONNECTIONS | {"R8": rate}).items():
            an_arm(book, code, of_arm, repeat)
    return book


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        # Within a quarter of each other: alike, though repeats of a lossy path vary.
        ((6.0, 8.8, 7.0), "for connections, against client-library, against client-cpu"),
        # Further off, and the repeats agree on it.
        ((5.0, 5.2, 5.1), "for client-library"),
        # As far off, and they do not: it may be chance.
        ((3.0, 9.0, 4.0), "tells nothing either way"),
        # The own wire is the slower one: that is no word against the library.
        ((12.0, 12.5, 11.9), "tells nothing either way"),
    ],
)
def test_how_surely_must_they_differ(tmp_path: Path, rates: tuple[float, float, float], verdict: str) -> None:
    assert asked(the_verdict(uneven(*rates), tmp_path)).verdict == verdict


def test_a_single_run_has_no_interval_and_is_taken_as_it_is(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), BY_LIBRARY, 1), tmp_path)
    assert asked(verdict).figures == (
        "own wire 41.8, grpcio 20.0 images/s on one channel: 0.48×; own wire 42.0, grpcio 20.5 images/s on "
        "own channels: 0.49×"
    )
    assert verdict.cause == "client-library"


def test_one_pair_alone_rules_nothing_out(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), without(BY_CONNECTIONS, "R9")), tmp_path)
    assert (verdict.cause, asked(verdict).says) == ("connections", {})
    assert verdict.why.endswith("; own wire and grpcio: 7.40 and 7.20 images/s on one channel")
    neither = the_verdict(arms(a_study(), without(BY_CONNECTIONS, "R8", "R9")), tmp_path / "neither")
    assert (neither.cause, asked(neither).verdict) == ("connections", "not tested")
    assert "own wire and grpcio" not in neither.why


def test_channels_that_grpcio_joined_are_no_test_of_it(tmp_path: Path) -> None:
    book = arms(a_study(), BY_CONNECTIONS | {"R9": 7.3})
    for line in book.records:
        if line["kind"] == "path" and line["cell"].endswith("per-user/1w/library"):
            line["connections"] = 1
    verdict = the_verdict(book, tmp_path)
    assert asked(verdict).verdict == "no test of it"
    assert asked(verdict).figures.endswith(
        "on own channels: 0.175× (0.174–0.175), not on as many connections"
    )
    assert verdict.cause == "connections"
    assert "own wire and grpcio" not in verdict.why


def test_equal_channels_stand_beside_grpcios_one_channel(tmp_path: Path) -> None:
    """On which grpcio gets less than our own wire here: equal channels say nothing of that."""
    book = arms(a_study(), BY_CONNECTIONS | {"R3": 3.6, "R8": 3.5})
    (line,) = [it for it in the_verdict(book, tmp_path).evidence if it.question.startswith("Do equal")]
    assert line.figures == "3.60 (3.49–3.71) images/s on 1 TCP connection, 1.03 of one channel"
    assert line.verdict == "for connections"


def test_before_there_was_an_own_wire_none_is_named(tmp_path: Path) -> None:
    verdict = the_verdict(arms(a_study(), without(BY_CONNECTIONS, "R9"), before=True), tmp_path)
    assert {code: arm.words for code, arm in verdict.arms.items()} == {
        **{"R0": "own connections", "R1": "one connection", "R2": "one channel", "R4": "own connections"},
        **{"R5": "4 channels", "R6": "4 processes", "R12": "with BBR"},
        **{"R8": "one channel, by tritonclient", "R3": "equal channels"},
    }
    assert verdict.arms["R3"].axes.client == "prepared"
    assert {arm.sender for arm in verdict.arms.values()} == {"", "grpcio"}
    assert verdict.cause == "connections"
    assert "own wire" not in verdict_said(verdict)
    assert (asked(verdict).verdict, record(verdict)["senders"]) == ("no test of it", [])
    assert asked(verdict).figures == (
        "7.20 (6.98–7.42) images/s on 1 TCP connection; grpcio sent one channel's requests, too"
    )
    (equal,) = [line for line in verdict.evidence if line.question.startswith("Do equal")]
    assert equal.figures.endswith("1.01 of one channel")
    assert equal.verdict == "for connections"


def test_an_arm_that_failed_is_sent_as_the_others_of_its_study(tmp_path: Path) -> None:
    book = arms(a_study(), without(BY_CONNECTIONS, "R4"))
    book.plan("emulated-grpc", 1, 16, axes=axes_of("R4", "wan-a100"))
    verdict = the_verdict(book, tmp_path)
    assert verdict.arms["R4"].name == "gRPC, own wire, own connections"
    assert verdict.missing == ("gRPC, own connections (--channels per-user): not run",)


def test_a_study_of_grpcio_alone_has_it_as_its_base(tmp_path: Path) -> None:
    book = a_study()
    for code, of in (("R0", "R0"), ("R8", "R2"), ("R9", "R4")):
        about = axes_of(code, "wan-a100") | {"client": "library"}
        tag = an_arm(book, code, BY_CONNECTIONS[of])
        (plan,) = [entry for entry in book.header["plan"] if entry["cell"] == tag["cell"]]
        plan |= about
    verdict = the_verdict(book, tmp_path)
    assert list(verdict.arms) == ["R0", "R2", "R4"]
    assert verdict.arms["R2"].words == "one channel, by tritonclient"
    assert verdict.cause == "connections"


def test_equal_channels_by_the_own_wire_are_connections_of_their_own(tmp_path: Path) -> None:
    """Nothing joins them: they are no arm, and no figure that was published stands beside them."""
    book = arms(a_study(), BY_CONNECTIONS, 1)
    tag = an_arm(book, "R4", 41.7, repeat=2)
    (plan,) = [it for it in book.header["plan"] if (it["cell"], it["repeat"]) == (tag["cell"], 2)]
    plan |= {"channels": "same-args"}
    study = studied(book, tmp_path)
    (verdict,) = verdicts(study)
    assert verdict.arms["R3"].axes.client == "library"
    assert {(it.channels, it.client) for it in study.runs if it.protocol == "grpc" and as_published(it)} == {
        *(("shared", "prepared"), ("shared", "library"), ("same-args", "library"))
    }
    (own,) = [run for run in study.runs if (run.channels, run.client) == ("same-args", "prepared")]
    assert (by_own_wire(own), as_published(own), own.tcp_connections) == (True, False, 16)


def test_equal_channels_of_old_were_joined(tmp_path: Path) -> None:
    study = studied(arms(a_study(), BY_CONNECTIONS, 1, before=True), tmp_path)
    (equal,) = [run for run in study.runs if run.channels == "same-args"]
    assert (by_own_wire(equal), as_published(equal)) == (False, True)


def test_what_the_servers_flow_control_holds_is_advised_by_its_limit(tmp_path: Path) -> None:
    study = studied(arms(a_study(), BY_CONNECTIONS), tmp_path)
    held = Limit("http2-window", "seen", "Let the server grant larger windows.")
    runs = [
        replace(run, limit=held) if (run.protocol, run.channels) == ("grpc", "shared") else run
        for run in study.runs
    ]
    (verdict,) = verdicts(replace(study, runs=tuple(runs)))
    assert verdict.cause == "connections"
    assert verdict.advice.endswith("Its limit is http2-window: Let the server grant larger windows.")
    assert "BBR" not in verdict.advice
