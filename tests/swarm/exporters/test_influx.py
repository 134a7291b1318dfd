"""InfluxDB: what is written, and what becomes of it where the receiver is slow, refuses it, or is gone."""

import locust  # noqa: F401  (first: it patches sockets and threads)

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from gevent.pywsgi import WSGIServer

from swarm.errors import UsageError
from swarm.exporters import influx
from swarm.exporters.influx import Influx, open_influx
from tests.reports.lines import FIRST_SECOND
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import Followed
from tests.swarm.output.test_dispatch import BOOK, a_run
from users.errors import RequestError
from users.transport.admin_connection import Told

TAKEN = Told(204, "")
TAGS = "cell=onnx-grpc/b1/c2,endpoint=onnx-grpc"
AFTER = f"phase=measure,repeat=1,study={BOOK.header['study']}"


class Receiver:
    """Answers in turn, the last answer for good; `bodies` are those that it took."""

    def __init__(self, clock: FakeClock, *answers: Told | RequestError) -> None:
        self.answers, self.bodies = [*answers], list[list[str]]()
        self.asked = list[float]()
        self._clock = clock

    def __call__(self, body: bytes) -> Told:
        self.asked.append(self._clock())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, RequestError):
            raise answer
        if answer.status == 204:
            self.bodies.append(body.decode().splitlines())
        return answer

    @property
    def lines(self) -> list[str]:
        return [line for body in self.bodies for line in body]


def followed(*answers: Told | RequestError, seconds: int = 5) -> tuple[Receiver, Followed]:
    """What a receiver is asked in a run of so many seconds, of which each takes one."""
    clock = FakeClock()
    receiver = Receiver(clock, *answers)
    study = Followed(BOOK.header, Influx(receiver, clock), clock=clock)
    for record in a_run(seconds):
        study.tell(record, step_s=record["kind"] == "sample")
    return receiver, study


def test_a_second_is_a_point_of_clients_server_each_gpu_and_each_worker() -> None:
    receiver, study = followed(TAKEN, seconds=1)
    at_ns = f"{FIRST_SECOND}000000000"
    found = {line.partition(" ")[0]: line for line in receiver.lines}
    client = found[f"inferswarm_client,{TAGS},{AFTER}"]
    assert client.endswith(f" {at_ns}")
    values = dict(pair.split("=") for pair in client.split(" ")[1].split(","))
    latency = values.pop("latency_p50_ns")
    assert float(latency) == pytest.approx(40e6, rel=1e-3)
    told = {name: float(value) for name, value in values.items()}
    assert told.pop("loop_lag_ns") == pytest.approx(900_000, rel=1e-3)
    assert told == {
        **{"requests_per_s": 20, "images_per_s": 20, "failures_per_s": 2, "in_flight": 8, "users": 10},
        **{"worker_cpu_pct": 50, "ok": 20, "failures": 2, "images": 20},
    }
    assert "i" not in client.split(" ")[1].rpartition("=")[2], "a field is never whole once, and then not"
    assert f"inferswarm_worker,{TAGS},{AFTER},worker=w1" in found
    gpu = found[f"inferswarm_gpu,{TAGS},gpu=b,{AFTER}"]
    assert gpu.split(" ")[1] == "memory_bytes=1073741824,power_w=100,util_pct=50"
    server = found[f"inferswarm_server,{TAGS},{AFTER}"]
    assert "replicas_ready=3" in server
    assert "pending_requests=2" in server
    assert study.dispatcher.finish() == []


def test_a_second_makes_one_request_and_the_end_of_a_run_the_last() -> None:
    receiver, _ = followed(TAKEN, seconds=6)
    assert len(receiver.bodies) <= 7
    assert all(after >= before + 1 for before, after in pairwise(receiver.asked[:-1]))
    assert len([line for line in receiver.lines if line.startswith("inferswarm_client")]) == 6


def test_a_receiver_that_comes_back_gets_all_of_it_and_is_asked_less_and_less_until_then() -> None:
    down = RequestError("connection", "connection refused")
    receiver, study = followed(down, down, Told(503, "starting"), TAKEN, seconds=20)
    assert receiver.asked[1] - receiver.asked[0] >= 2
    assert receiver.asked[2] - receiver.asked[1] >= 4
    clients = [line for line in receiver.lines if line.startswith("inferswarm_client")]
    assert [int(line.rpartition(" ")[2]) // 10**9 for line in clients] == [
        FIRST_SECOND + second for second in range(20)
    ]
    assert study.dispatcher.finish() == []
    (said,) = study.said
    assert said.startswith("inferswarm: --influx-url: ")
    assert said.endswith("not written (connection: connection refused).")


def test_a_receiver_that_is_gone_costs_bounded_memory_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx, "MOST_WAITING", 30)
    down = RequestError("connection", "connection refused")
    receiver, study = followed(down, seconds=10)
    assert receiver.bodies == []
    points = 10 * (1 + 2 + 1 + 2)
    lost = f"--influx-url: {points} of {points} points not written (connection: connection refused)."
    assert study.dispatcher.finish() == [lost]
    assert len(study.said) == 1


def test_what_a_receiver_refuses_for_good_is_not_sent_again() -> None:
    refused = Told(400, '{"error":"field type conflict"}')
    receiver, study = followed(refused, TAKEN, seconds=3)
    (lost,) = study.dispatcher.finish()
    first = 18 - len(receiver.lines)
    assert 0 < first < 18
    assert lost == (
        f"--influx-url: {first} of 18 points not written "
        '(HTTP 400: {"error":"field type conflict"}).'
    )  # fmt: skip


def test_the_cause_that_is_told_is_that_of_the_loss() -> None:
    down = RequestError("timeout", "3.0 seconds")
    _, study = followed(down, Told(413, "too large"), TAKEN, seconds=10)
    (lost,) = study.dispatcher.finish()
    assert lost.endswith(" points not written (HTTP 413: too large).")
    exporter = Influx(receiver := Receiver(FakeClock(), TAKEN), FakeClock())
    for why in ("no", "later"):
        receiver.answers = [Told(400, why)]
        study = Followed(BOOK.header, exporter)
        study.tell(*a_run(2))
        assert study.dispatcher.finish()[0].endswith(f"(HTTP 400: {why}).")


@pytest.fixture
def serve() -> Iterator[Callable[[str], tuple[str, list[dict[str, Any]]]]]:
    """Start a receiver that gives one status; its address, and the requests it gets."""
    started = []

    def start(status: str) -> tuple[str, list[dict[str, Any]]]:
        got: list[dict[str, Any]] = []

        def answer(environ: dict[str, Any], begin: Callable[..., Any]) -> list[bytes]:
            got.append({**environ, "body": environ["wsgi.input"].read()})
            begin(status, [])
            return [] if status.startswith("204") else [b'{"error":"no such database"}']

        server = WSGIServer(("127.0.0.1", 0), answer, log=None)
        server.start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_port}", got

    yield start
    for server in started:
        server.stop()


def test_it_is_tried_first_with_its_own_token_alone(
    serve: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERSWARM_TOKEN", "that-of-the-targets")
    url, got = serve("204 No Content")
    open_influx(f"{url}/api/v2/write?org=o&bucket=b")
    monkeypatch.setenv("INFERSWARM_INFLUX_TOKEN", "its-own")
    open_influx(f"{url}/api/v2/write?org=o&bucket=b")
    assert [one.get("HTTP_AUTHORIZATION") for one in got] == [None, "Token its-own"]
    assert {(one["PATH_INFO"], one["QUERY_STRING"], one["body"]) for one in got} == {
        ("/api/v2/write", "org=o&bucket=b", b"inferswarm_check ok=1")
    }


def test_one_that_does_not_take_points_is_refused(serve: Callable[[str], Any]) -> None:
    url = f"{serve('404 Not Found')[0]}/write?db=x"
    fix = "check the address, the database or bucket, and the token in INFERSWARM_INFLUX_TOKEN"
    with pytest.raises(UsageError) as caught:
        open_influx(url)
    assert str(caught.value) == (
        f'--influx-url {url}: does not take points (HTTP 404: {{"error":"no such database"}}); {fix}'
    )
    with pytest.raises(UsageError, match=r"does not take points \(.*refused.*\); check the address"):
        open_influx("http://127.0.0.1:1/write?db=x")
