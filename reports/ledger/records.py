"""The shape of a run's records: a count that is none would be summed, and the sum would look right."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reports.ledger.axes import Axes, recorded

MOST = 2**63
DURATIONS = ("latency", "service_time", "send_delay")
"""Histograms that a window has of all its successes."""
DURATIONS_OF_CLASS = ("latency", "service_time")
"""Those that it has of the successes of each class of requests."""
LONGEST_LABEL = 200
"""Characters of a class's name."""
WHOLE = {
    "window": (
        *("second", "ok", "abandoned", "late", "images", "request_bytes", "response_bytes"),
        *("server_count", "first_start_ns", "last_end_ns", "spread_milli_images"),
        *("connects", "resent", "retry_after", "retry_after_s", "good", "cache_hits", "cache_queries"),
    ),
    "drained": (
        *("users", "users_ns", "other_phases", "finished", "abandoned"),
        *("sent", "due", "dropped", "overslept", "phase_ns"),
    ),
    "health": (
        *("second", "span_ns", "in_flight", "users", "cells", "lock_looks", "lock_wait_ns"),
        *("throttled_ns", "used_up_ns", "wanted_ns", "stolen_ns", "pressure_ns"),
    ),
    "path": ("second", "span_ns", "asked", "connections"),
    "sample": ("second",),
    "trace": ("requests", "joined"),
    "run": ("hosts",),
}
"""Fields of each kind that are whole numbers, where they are there."""
COUNTS = {
    "window": ("failures", "failure_codes", "refused_for", "server_ns", "out_of_range"),
    "path": ("http2", "starts", "peers"),
    "sample": ("others_ns",),
}
"""Fields that hold a whole number for each of some names."""
WHOLE_OF_GPU = (
    *("memory_total_bytes", "memory_free_bytes", "throttle_reasons", "other_processes"),
    *("pcie_gen", "pcie_width", "max_pcie_gen", "max_pcie_width"),
)
"""Fields of each GPU in a sample that are whole numbers, where they are there."""
TEXTS = ("worker", "phase", "event", "when", "status", "code", "text", "identity", "version")
"""Fields that are texts, where they are there, whatever the kind."""
MOST_RUNS, MOST_WORKERS = 5_000, 2_000
"""Of one study: each has its lines in a report."""
OF_RUNS = frozenset(
    ("run", "phase", "window", "drained", "health", "path", "sample", "server", "serving", "memory", "trace")
) | {"caveat"}
OF_STUDIES = frozenset(("header", "plan", "cold", "operators", "footer"))
"""Kinds of records; one that is in neither was written by a later program, and is left out."""


def check_record(record: Mapping[str, Any]) -> None:
    """ValueError, with what stands there and what it is to be, where a record of a run cannot be true."""
    kind = record["kind"]
    if not isinstance(kind, str):
        raise _wrong("kind", kind, "a text")
    for name in TEXTS:
        if name in record and not isinstance(record[name], str):
            raise _wrong(name, record[name], "a text")
    for name in WHOLE.get(kind, ()):
        if not is_whole(record.get(name)):
            raise _wrong(name, record[name], "a whole number from 0")
    for name in COUNTS.get(kind, ()):
        if name in record and not _are_counts(record[name]):
            raise _wrong(name, record[name], "whole numbers from 0 by name")
    if kind == "window":
        _check_window(record)
    if kind == "drained":
        _check_drained(record)
    if kind == "sample":
        _check_gpus(record.get("gpus") or ())
    if kind == "sample" and "samples" in record:
        raise _wrong("samples", record["samples"], "left out: how many samples are in one, only a fold says")
    for name in ("workers", "places"):
        if not _are_texts(record.get(name, ())):
            raise _wrong(name, record[name], "a list of texts")
    if not _least_0(record.values()):
        name = next(name for name, value in record.items() if not _least_0((value,)))
        raise _wrong(name, record[name], "nowhere negative")


def _check_window(window: Mapping[str, Any]) -> None:
    """ValueError where one thing in it contradicts another."""
    ok, first_ns, last_ns = (window.get(name) for name in ("ok", "first_start_ns", "last_end_ns"))
    lacking = [name for name in DURATIONS if ok and name not in window.get("histograms", DURATIONS)]
    silence = window.get("silence", [0, 0])
    if (
        not isinstance(silence, list | tuple)
        or len(silence) != 2
        or None in silence
        or not all(map(is_whole, silence))
    ):
        raise _wrong("silence", silence, "two whole numbers from 0")
    if lacking:
        raise ValueError(f"a window of {ok} successes has no {lacking[0]}")
    if (window.get("good") or 0) > (ok or 0):
        raise ValueError(f"a window of {ok} successes has {window['good']} good ones")
    if "classes" in window:
        _check_classes(window)
    if (first_ns is None) != (last_ns is None) or (ok and last_ns is not None and first_ns > last_ns):
        raise ValueError(f"a window goes from first_start_ns {first_ns} to last_end_ns {last_ns}")


def _check_classes(window: Mapping[str, Any]) -> None:
    """ValueError where what a window has of classes is not what it has of all requests."""
    classes = window["classes"]
    if not isinstance(classes, dict) or not classes:
        raise _wrong("classes", classes, "what came back of each class of requests, by its label")
    for label, one in classes.items():
        _check_class(label, one)
    failures = sum((window.get("failures") or {}).values())
    whole = {"ok": window.get("ok"), "images": window.get("images"), "failures": failures}
    if window.get("good") is not None:
        whole["good"] = window["good"]
    for name, count in whole.items():
        found = sum(one.get(name) or 0 for one in classes.values())
        if found != count:
            raise ValueError(f"a window has {count} {name}, and its classes have {found}")


def _check_class(label: Any, one: Any) -> None:
    if not isinstance(label, str) or not 0 < len(label) <= LONGEST_LABEL:
        raise _wrong("a class of requests", label, f"a text of 1 to {LONGEST_LABEL} characters")
    if not isinstance(one, dict) or not isinstance(one.get("histograms"), dict):
        raise _wrong(f"class {label:.40}", one, "counts and histograms")
    for name in ("ok", "failures", "images"):
        if one.get(name) is None or not is_whole(one[name]):
            raise _wrong(f"{name} of class {label:.40}", one.get(name), "a whole number from 0")
    if not is_whole(one.get("good")) or (one.get("good") or 0) > one["ok"]:
        raise _wrong(f"good of class {label:.40}", one["good"], "a whole number up to its ok")
    if lacking := [name for name in DURATIONS_OF_CLASS if one["ok"] and name not in one["histograms"]]:
        raise ValueError(f"class {label:.40} has {one['ok']} successes and no {lacking[0]}")


def _check_drained(line: Mapping[str, Any]) -> None:
    """ValueError where the arrivals that were due are not those that were sent and those that were not.

    Off by one a user at most: rather that than a report which is refused for so little.
    """
    due, sent, dropped = (line.get(name) for name in ("due", "sent", "dropped"))
    if due is None or sent is None or dropped is None:
        return
    if abs(due - sent - dropped) > (line.get("users") or 0):
        raise ValueError(f"{due} requests were due, {sent} were sent and {dropped} were not")


def _check_gpus(gpus: Any) -> None:
    if not isinstance(gpus, (list, tuple)) or not all(isinstance(gpu, dict) for gpu in gpus):
        raise _wrong("gpus", gpus, "a list of what each GPU told")
    for gpu in gpus:
        for name in WHOLE_OF_GPU:
            if not is_whole(gpu.get(name)):
                raise _wrong(f"{name} of a GPU", gpu[name], "a whole number from 0")


def is_whole(value: Any) -> bool:
    """Whether it is a count of something, or is not known."""
    return value is None or (type(value) is int and 0 <= value < MOST)


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(type(one) is int and one < MOST for one in value.values())


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)


def _least_0(values: Iterable[Any]) -> bool:
    """Whether no number among them or within is negative: none that a ledger has of a run is."""
    for value in values:
        kind = type(value)
        if kind is int or kind is float:
            if value < 0:
                return False
        elif kind is dict:
            if not _least_0(value.values()):
                return False
        elif kind is list and not _least_0(value):
            return False
    return True


def _wrong(name: str, value: Any, wanted: str) -> ValueError:
    return ValueError(f"{name} is {value!r:.60}, and must be {wanted}")


Rule = tuple[Callable[[Any], bool], str]
_TEXT: Rule = (lambda value: isinstance(value, str), "a text")
_COUNT: Rule = (lambda value: type(value) is int and 1 <= value < MOST, "a whole number from 1")
PLANNED: Mapping[str, Rule] = {
    **dict.fromkeys(("cell", "endpoint", "backend", "protocol", "payload"), _TEXT),
    **dict.fromkeys(("repeat", "batch"), _COUNT),
    "load": (lambda value: value in ("closed", "open"), "closed or open"),
    "level": (
        lambda value: type(value) in (int, float) and 0 < value < MOST,
        "a number of users or of requests a second",
    ),
}
"""What an entry of a plan must tell."""
MOST_WIDTH_S = 86_400
LATER = ("model", "codec", "server", "space")
"""Texts that it tells, too, and that older ones do not."""
_NUMBER: Rule = (lambda value: type(value) in (int, float) and 0 <= value < MOST, "a number from 0")
_MAY = {
    **{name: _TEXT if isinstance(unset, str) else _NUMBER for name, unset in recorded(Axes()).items()},
    **dict.fromkeys(LATER, _TEXT),
    "asked": (lambda value: _is_course(value), "requests of a trace that are due in each width_s seconds"),
}
"""What it may tell."""


def _is_course(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("requests"), list):
        return False
    width_s, counts = value.get("width_s"), value["requests"]
    known = None not in counts and all(map(is_whole, counts))
    timed = type(value.get("seconds", 0)) in (int, float) and value.get("seconds", 0) >= 0
    return known and timed and type(width_s) is int and 1 <= width_s <= MOST_WIDTH_S


def check_planned(entry: Mapping[str, Any]) -> None:
    """KeyError where an entry of a plan lacks something; ValueError where something is not as it must be."""
    told = {name: rule for name, rule in _MAY.items() if entry.get(name) is not None}
    for name, (holds, wanted) in {**PLANNED, **told}.items():
        if not holds(entry[name]):
            raise _wrong(f"{name} of a planned run", entry[name], wanted)
    letter = "r" if entry["load"] == "open" else "c"
    size = "mix" if entry.get("batch_mix") else f"b{entry['batch']}"
    begin = f"{entry['endpoint']}/{size}/{letter}{entry['level']:g}"
    if not entry["cell"].startswith(begin):
        raise _wrong("cell of a planned run", entry["cell"], f"a name that begins with {begin:.60}")
