"""A record each second: when, of what, and what becomes of sources that fail, hang or are slow."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gevent
import pytest
from gevent import socket
from gevent.event import Event

from swarm.sampling import sampler as module
from swarm.sampling.sampler import (
    Sampler,
    open_sources,
    record,
    second_ended,
    until_next_second,
    without_parts,
)
from tests.swarm.wsgi import serving
from users.endpoint import Endpoint
from users.transport.admin_connection import Read

pytestmark = pytest.mark.system

HTTP = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "127.0.0.1:1")
HEAD = {"kind": "sample", "cell": "a/b1/c1", "repeat": 2}


class WallClock:
    """Stands at 100.3 s; sleeping moves it, up to `ticks` times, and then lasts for ever."""

    def __init__(self, ticks: int) -> None:
        self.now, self.left = 100.3, ticks
        self.done = Event()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if not self.left:
            self.done.set()
            Event().wait()
        self.left -= 1
        self.now += seconds
        gevent.sleep(0)


class Stand:
    """A sampler on fake sources; `written` is what it wrote."""

    def __init__(self, reads: Mapping[str, Read], ticks: int = 1, write: Any = None) -> None:
        self.wall, self.reads = WallClock(ticks), reads
        self.written: list[dict[str, Any]] = []
        self.events: list[str] = []
        writes = write or self.written.append
        self.sampler = Sampler(writes, self.sources, self.wall, self.wall.sleep, late_s=0.05)

    @contextmanager
    def sources(self, endpoint: Endpoint) -> Iterator[Mapping[str, Read]]:
        self.events.append(f"open {endpoint.name}")
        try:
            yield self.reads
        finally:
            self.events.append("closed")

    def run(self) -> list[dict[str, Any]]:
        self.sampler.begin("a/b1/c1", 2, HTTP)
        self.sampler.enter("measure")
        assert self.wall.done.wait(timeout=5)
        self.sampler.end()
        return self.written


def fixed(**values: Any) -> Read:
    return lambda: values


def test_a_record_for_every_second_that_ended() -> None:
    counters = iter([{"requests": 1}, {"requests": 5}])
    stand = Stand({"server": lambda: {"server": next(counters)}, "host": fixed(host={"cpu_pct": 3.5})}, 2)
    both = {**HEAD, "phase": "measure", "host": {"cpu_pct": 3.5}}
    told = [{"second": 100, "server": {"requests": 1}}, {"second": 101, "server": {"requests": 5}}]
    assert stand.run() == [both | one for one in told]
    assert stand.events == ["open pytorch-http", "closed"]


def test_the_phase_is_the_one_in_which_it_was_asked() -> None:
    """Counters read before the measure phase are lower than those that are read as it begins."""
    stand = Stand({}, 3)
    phases = iter(["warm-up", "measure", "drain"])
    stand.reads = {"server": lambda: stand.sampler.enter(next(phases)) or {}}
    assert [r["phase"] for r in stand.run()] == ["measure", "warm-up", "measure"]


def test_what_fails_is_missing_with_its_reason() -> None:
    def refused() -> dict[str, Any]:
        raise ConnectionRefusedError("nobody listens")

    def broken() -> dict[str, Any]:
        raise ValueError("no counters here")

    (made,) = Stand({"server": refused, "metrics": broken, "host": fixed(host={"tx_bytes": 1})}).run()
    missing = ["server: refused: nobody listens", "metrics: bad-reply: no counters here"]
    assert made["missing"] == missing
    assert made["host"] == {"tx_bytes": 1}
    assert not {"server", "metrics"} & made.keys()


def test_a_source_that_hangs_delays_nothing_and_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GIVE_UP_S", 0.05)
    asked: list[int] = []
    answer = Event()

    def hanging() -> dict[str, Any]:
        asked.append(1)
        answer.wait()
        return {"server": {"requests": 9}}

    stand = Stand({"server": hanging, "host": fixed(host={"tx_bytes": 1})}, 3)
    began = time.monotonic()
    records = stand.run()
    assert time.monotonic() - began < 1
    assert [(r["second"], r["host"]) for r in records] == [(at, {"tx_bytes": 1}) for at in (100, 101, 102)]
    assert all(r["missing"] == ["server: took longer than 0.05 s"] and "server" not in r for r in records)
    assert len(asked) == 1
    answer.set()


def test_an_answer_that_came_too_late_is_dropped_and_the_source_asked_again() -> None:
    values, ticks, answer = iter([1, 2]), iter([1, 2, 3]), Event()

    def slow() -> dict[str, Any]:
        value = next(values)
        answer.wait()
        return {"pending_requests": value}

    def host() -> dict[str, Any]:
        if next(ticks) == 2:
            answer.set()
        return {}

    first, second, third = Stand({"metrics": slow, "host": host}, 3).run()
    assert (first["missing"], second["missing"]) == (["metrics: took longer than 0.05 s"],) * 2
    assert (third["pending_requests"], "missing" in third) == (2, False)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("closed file")])
def test_a_ledger_that_takes_no_more_ends_it(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def write(_: dict[str, Any]) -> None:
        raise error

    stand = Stand({"host": fixed(host={})}, 5, write)
    stand.sampler.begin("a", 1, HTTP)
    for _ in range(20):
        gevent.sleep(0)
    assert stand.events == ["open pytorch-http", "closed"]
    stand.sampler.end()
    stand.sampler.end()
    assert capsys.readouterr() == ("", "")


def test_runs_at_the_same_time_are_each_sampled_until_the_end_of_all() -> None:
    stand = Stand({"host": fixed(host={})}, 4)
    for cell, endpoint in (("a", HTTP), ("b", replace(HTTP, name="another"))):
        stand.sampler.begin(cell, 1, endpoint)
    stand.sampler.enter("measure")
    assert stand.wall.done.wait(timeout=5)
    stand.sampler.end()
    assert stand.events == ["open pytorch-http", "open another", "closed", "closed"]
    told = sorted((r["cell"], r["phase"]) for r in stand.written)
    assert told == [("a", "measure")] * 2 + [("b", "measure")] * 2


def test_a_run_after_another_begins_in_no_phase() -> None:
    stand = Stand({}, 0)
    stand.sampler.begin("a", 1, HTTP)
    gevent.sleep(0)
    stand.sampler.enter("drain")
    stand.sampler.end()
    stand.wall.left, stand.wall.done = 1, Event()
    stand.sampler.begin("b", 1, HTTP)
    assert stand.wall.done.wait(timeout=5)
    stand.sampler.end()
    assert stand.events == ["open pytorch-http", "closed"] * 2
    assert [(r["cell"], r["phase"]) for r in stand.written] == [("b", "")]


def test_the_end_waits_for_what_is_being_read() -> None:
    events: list[str] = []

    def slow() -> dict[str, Any]:
        gevent.sleep(0.03)
        events.append("read")
        return {}

    stand = Stand({"server": slow})
    stand.sampler.begin("a", 1, HTTP)
    gevent.sleep(0.01)
    stand.sampler.end()
    assert (events, stand.events[-1]) == (["read"], "closed")
    assert stand.written == []


def test_where_two_tell_the_same_the_first_counts() -> None:
    """Of a GPU that the first knows, what only the second tells is kept; its others are not the server's."""
    first, other = {"id": "a", "util_pct": 7.0}, {"id": "b", "util_pct": 99.0}
    dcgm = [{"id": "a", "util_pct": 6.0, "sm_active_pct": 3.5}, other]
    answers = {"gpus": {"gpus": [first]}, "dcgm": {"gpus": dcgm}, "metrics": {"pending_requests": 0}}
    found = record({"second": 1}, answers)
    assert (found["gpus"], found["pending_requests"]) == ([first | {"sm_active_pct": 3.5}], 0)


@pytest.mark.parametrize(
    ("wall_s", "sleep_s", "ended"), [(100.0, 1.0, 99), (100.97, 1.03, 100), (100.9, 0.1, 99)]
)
def test_seconds_of_the_wall_clock(wall_s: float, sleep_s: float, ended: int) -> None:
    """A sleep that ended 30 ms early must not be followed by a second one to the same second."""
    assert until_next_second(wall_s) == pytest.approx(sleep_s)
    assert second_ended(wall_s) == ended


PAGES = {
    "/v2/models/clip/stats": '{"model_stats": [{"inference_count": 4}]}',
    "/metrics": 'nv_inference_pending_request_count{model="clip"} 3\nnv_gpu_utilization{gpu_uuid="A"} 1\n',
}


@pytest.fixture
def triton() -> Iterator[str]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start("200 OK", [])
        return [PAGES[environ["PATH_INFO"]].encode()]

    with serving(answer) as address:
        yield address


def sampled(address: str, metrics: Mapping[str, str], seconds: float) -> list[dict[str, Any]]:
    """What a sampler on the real clock writes about a Triton over HTTP."""
    written: list[dict[str, Any]] = []
    sampler = Sampler(written.append, lambda endpoint: open_sources(endpoint, metrics))
    sampler.begin("onnx-http/b1/c1", 1, Endpoint("onnx-http", "onnx", "http", "fp32", address, "clip"))
    gevent.sleep(seconds)
    sampler.end()
    return written


def test_everything_over_http(triton: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_nvml", lambda: None)
    before = int(time.time())
    first, *_ = sampled(triton, {"onnx": f"http://{triton}/metrics", "trt": "http://127.0.0.1:1/"}, 1.5)
    assert before - 1 <= first["second"] <= before + 1
    assert first["server"]["images"] == 4
    assert first["pending_requests"] == 3
    assert first["gpus"] == [{"id": "A", "util_pct": 100.0, "visible": True}]
    assert set(first["host"]) >= {"tx_bytes", "rx_bytes"}
    assert "missing" not in first
    with open_sources(HTTP, {}, namespace="198.18.0.1") as reads:
        assert not {"tx_bytes", "rx_bytes"} & set(reads["host"]().get("host", {}))
        assert "metrics" not in reads
    own = replace(HTTP, address=triton, backend="service", settings={"metrics": f"http://{triton}/metrics"})
    with open_sources(own, {}) as reads:
        assert "metrics" in reads


def test_each_second_has_numbers_and_who_answered() -> None:
    told = {"requests": 3, "batches": {"1": [3, 9]}, "steps": {"decode": {"queue_ns": 5}}}
    read = without_parts(lambda: {"server": told, "identity": "a/1"})
    assert read == {"server": {"requests": 3}, "identity": "a/1"}
    assert record(HEAD, {"server": read}) == {**HEAD, "server": {"requests": 3}, "identity": "a/1"}


def test_a_metrics_port_that_never_answers(triton: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        began = time.monotonic()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        records = sampled(triton, {"onnx": url}, 3.1)
        assert time.monotonic() - began < 4.2
    assert len(records) >= 2
    for made in records:
        assert made["server"]["images"] == 4
        assert made["missing"] == ["metrics: took longer than 0.8 s"]
