"""Records that no study can have written: refused, and in no sum."""

from itertools import product
from typing import Any

import pytest

from reports.ledger.records import DURATIONS, check_planned, check_record
from tests.reports.lines import Record

COUNTED = {
    "window": "second ok abandoned late images request_bytes response_bytes server_count first_start_ns "
    "last_end_ns spread_milli_images connects retry_after retry_after_s",
    "drained": "users users_ns other_phases finished abandoned sent due dropped overslept phase_ns",
    "health": "second span_ns in_flight users lock_looks lock_wait_ns throttled_ns used_up_ns wanted_ns "
    "stolen_ns pressure_ns",
    "path": "second span_ns asked connections",
    "sample": "second",
    "trace": "requests joined",
    "run": "hosts",
}
BY_NAME = {"window": "failures failure_codes refused_for server_ns out_of_range", "path": "http2"}
OF_GPU = (
    "memory_total_bytes memory_free_bytes throttle_reasons other_processes pcie_gen pcie_width max_pcie_gen "
    "max_pcie_width"
)
TEXTS = "worker phase event when status code text identity"
NO_COUNTS = (-1, 0.5, 7.0, True, "7", [7], 2**63)


def refused(record: Record) -> str:
    with pytest.raises(ValueError) as refusal:
        check_record(record)
    return str(refusal.value)


def judged(record: Record, holds: bool, sentence: str) -> None:
    if holds:
        check_record(record)
    else:
        assert refused(record).startswith(sentence)


@pytest.mark.parametrize("kind", COUNTED)
def test_counts_are_whole_numbers_from_0(kind: str) -> None:
    names = COUNTED[kind].split()
    for good in (0, 2**63 - 1, None):
        check_record({"kind": kind, **dict.fromkeys(names, good)})
    for name, bad in product(names, NO_COUNTS):
        assert refused({"kind": kind, name: bad}) == f"{name} is {bad!r}, and must be a whole number from 0"


def test_counts_of_each_gpu_are_whole_numbers_from_0() -> None:
    gpu = dict.fromkeys(OF_GPU.split(), 2**63 - 1)
    check_record({"kind": "sample", "gpus": [gpu, dict.fromkeys(gpu)]})
    for name, bad in product(gpu, NO_COUNTS):
        assert refused({"kind": "sample", "gpus": [gpu, {name: bad}]}).startswith(
            f"{name} of a GPU is {bad!r},"
        )


@pytest.mark.parametrize("kind", BY_NAME)
def test_counts_by_name_are_whole_numbers_from_0(kind: str) -> None:
    for name in BY_NAME[kind].split():
        check_record({"kind": kind, name: {"timeout": 2**63 - 1, "refused": 0}})
        for bad in (None, 7, [], *({"x": one} for one in (0.5, True, "7", None, 2**63))):
            assert refused({"kind": kind, name: bad}).endswith("and must be whole numbers from 0 by name")
        assert (
            refused({"kind": kind, name: {"x": -1}}) == f"{name} is {{'x': -1}}, and must be nowhere negative"
        )


def test_texts_are_texts_in_every_kind() -> None:
    for name in TEXTS.split():
        check_record({"kind": "caveat", name: ""})
        for bad in (None, 7, ["w0"]):
            assert refused({"kind": "caveat", name: bad}) == f"{name} is {bad!r}, and must be a text"


@pytest.mark.parametrize(
    ("kind", "told", "sentence"),
    [
        (7, {}, "kind is 7, and must be a text"),
        ("run", {"workers": "w0"}, "workers is 'w0', and must be a list of texts"),
        ("run", {"workers": ["w0", 1]}, "workers is ['w0', 1], and must be a list of texts"),
        ("run", {"workers": ["x" * 99, 7]}, f"workers is ['{'x' * 58}, and must be a list of texts"),
        ("sample", {"gpus": {"a": 1}}, "gpus is {'a': 1}, and must be a list of what each GPU told"),
        ("sample", {"gpus": ["a"]}, "gpus is ['a'], and must be a list of what each GPU told"),
        ("sample", {"samples": 3}, "samples is 3, and must be left out: how many samples are in one"),
        ("health", {"cpu_pct": -0.5}, "cpu_pct is -0.5, and must be nowhere negative"),
        ("later", {"a": 1, "b": [1, {"c": [-1]}]}, "b is [1, {'c': [-1]}], and must be nowhere negative"),
        ("window", {"first_start_ns": 5}, "a window goes from first_start_ns 5 to last_end_ns None"),
        ("window", {"last_end_ns": 5}, "a window goes from first_start_ns None to last_end_ns 5"),
        *(
            ("window", {"ok": 7, "histograms": dict.fromkeys(DURATIONS[:at])}, f"7 successes has no {name}")
            for at, name in enumerate(DURATIONS)
        ),
    ],
)
def test_what_is_nothing_or_contradicts_itself_is_refused(kind: str, told: Record, sentence: str) -> None:
    assert sentence in refused({"kind": kind, **told})
    check_record({"kind": "window", "ok": 0, "histograms": {}})


@pytest.mark.parametrize(("ok", "last_ns", "holds"), [(1, 5, False), (1, 6, True), (0, 5, True)])
def test_successes_end_after_they_begin(ok: int, last_ns: int, holds: bool) -> None:
    judged(
        {"kind": "window", "ok": ok, "first_start_ns": 6, "last_end_ns": last_ns}, holds, "a window goes from"
    )


@pytest.mark.parametrize("users", [None, 0, 2])
def test_what_was_due_was_sent_or_dropped_but_for_one_request_a_user(users: int | None) -> None:
    for due in range(5, 14):
        record = {"kind": "drained", "due": due, "sent": 6, "dropped": 3, "users": users}
        said = f"{due} requests were due, 6 were sent and 3 were not"
        judged(record, abs(due - 9) <= (users or 0), said)
        for unknown in ("due", "sent", "dropped"):
            check_record(record | {unknown: None})


PLANNED: Record = {
    **{"cell": "onnx-http/b2/c4", "repeat": 1, "endpoint": "onnx-http", "backend": "onnx"},
    **{"protocol": "http", "payload": "fp32", "batch": 2, "load": "closed", "level": 4},
}
AXES_OF_TEXT = "arrivals channels client link congestion variant profile model codec server space"
AXES_OF_NUMBERS = "max_in_flight workers hosts queue_delay_us instances"


def wrongly_planned(**changes: Any) -> str:
    with pytest.raises(ValueError) as refusal:
        check_planned(PLANNED | changes)
    return str(refusal.value).replace(" of a planned run is", "")


def test_a_plan_tells_what_it_must_and_what_it_may_as_it_must_be() -> None:
    check_planned(PLANNED)
    check_planned(PLANNED | dict.fromkeys((*AXES_OF_TEXT.split(), *AXES_OF_NUMBERS.split())))
    check_planned(PLANNED | {"load": "open", "level": 0.5, "cell": "onnx-http/b2/r0.5/shared", "later": []})
    for name in PLANNED:
        with pytest.raises(KeyError, match=name):
            check_planned({known: value for known, value in PLANNED.items() if known != name})
    for name in ("cell endpoint backend protocol payload " + AXES_OF_TEXT).split():
        assert wrongly_planned(**{name: 7}) == f"{name} 7, and must be a text"
    for name in ("batch", "repeat"):
        for bad in (0, -1, 1.0, True, "2", None, 2**63):
            assert wrongly_planned(**{name: bad}) == f"{name} {bad!r}, and must be a whole number from 1"
    for bad in (0, -8, True, "4", None, 2**63):
        wanted = "a number of users or of requests a second"
        assert wrongly_planned(level=bad) == f"level {bad!r}, and must be {wanted}"
    for name in AXES_OF_NUMBERS.split():
        check_planned(PLANNED | {name: 0})
        for bad in (-1, True, "4", 2**63):
            assert wrongly_planned(**{name: bad}) == f"{name} {bad!r}, and must be a number from 0"
    assert wrongly_planned(load="ajar") == "load 'ajar', and must be closed or open"
    for bad in ({"batch": 3}, {"load": "open"}, {"level": 8}, {"endpoint": "onnx-grpc"}):
        said = "cell 'onnx-http/b2/c4', and must be a name that begins with "
        assert wrongly_planned(**bad).startswith(said)
