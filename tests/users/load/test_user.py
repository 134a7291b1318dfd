"""The one path of a request, with a scripted transport: success, failure, kill."""

from locust.env import Environment

import itertools
import time
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import gevent
import numpy as np
import pytest

from tests.pictures import image_set
from tests.users.ways import codec_at
from users import JpegHttpUser, TritonGrpcUser, TritonHttpUser
from users.backends.registry import backends
from users.codecs.base import PreparedRequest
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import V2Http
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.inputs.images import ImageSet, load_images
from users.load import user as user_module
from users.load.assignment import Assignment
from users.load.mix import mix_of
from users.load.pacing import NS_PER_S, ClosedPacer, OpenPacer
from users.load.think import ThinkTime
from users.load.user import InferenceUser
from users.result import Result
from users.transport.base import Reply, Transport

CODEC = codec_at(V2Http)
photographs = cache(load_images)
Fired = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in photographs, of a user without a study, take a third of a second."""
    monkeypatch.setattr(user_module, "load_images", photographs)


def unit(index: int) -> np.ndarray[Any, Any]:
    row = np.zeros((1, 512), dtype=np.float32)
    row[0, index] = 1
    return row


class Scripted(Transport):
    """Does what the test scripted, call by call."""

    script: ClassVar[list[Any]] = []
    log: ClassVar[list[str]] = []

    def open(self) -> None:
        self.log.append("open")

    def exchange(self, prepared: PreparedRequest) -> Reply:
        step = self.script.pop(0)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, str):
            gevent.sleep(30)
        reply = step() if callable(step) else step
        return Reply(reply, 2048, {"decode": 3}, {"compute": 7})

    def close(self) -> None:
        self.log.append("close")


class ScriptedUser(InferenceUser):
    """Of the tests."""

    def ask(self, *script: Any) -> Result:
        Scripted.script = list(script)
        return self.request(self.mine.pool[0], intended_ns=100)


@pytest.fixture
def fired() -> Fired:
    return []


@pytest.fixture
def user(fired: Fired, monkeypatch: pytest.MonkeyPatch) -> ScriptedUser:
    environment = Environment(user_classes=[ScriptedUser])
    environment.events.request.add_listener(lambda **event: fired.append(event))
    assignment = Assignment(CODEC, [PreparedRequest(b"12345", (3,))], 1.0, cell="fake-http/b1/c1", repeat=2)
    assignment.golden = np.eye(512, dtype=np.float32)
    assignment.enter("measure")
    monkeypatch.setattr(ScriptedUser, "assignment", assignment)
    monkeypatch.setattr(Scripted, "log", [])
    monkeypatch.setattr(Scripted, "script", [])
    monkeypatch.setattr(user_module, "client", Scripted)
    made = ScriptedUser(environment)
    made.on_start()
    return made


def test_success(user: ScriptedUser, fired: Fired) -> None:
    result = user.ask(unit(3))
    assert result.ok
    assert (result.cell, result.repeat, result.phase) == ("fake-http/b1/c1", 2, "measure")
    assert (result.images, result.request_bytes, result.response_bytes) == (1, 5, 2048)
    assert (result.server_ns, result.intended_ns) == ({"compute": 7}, 100)
    assert result.latency_ns == result.send_delay_ns + result.service_ns
    (event,) = fired
    assert event["result"] is result
    told = {name: event[name] for name in ("exception", "name", "response_length", "response_time")}
    assert told == {
        **{"exception": None, "name": "fake-http/b1/c1"},
        **{"response_length": 2048, "response_time": result.service_ns / 1e6},
    }


def test_failure_is_timed_and_fired_once(user: ScriptedUser, fired: Fired) -> None:
    def late() -> None:
        gevent.sleep(0.02)
        raise ConnectionResetError(104, "gone")

    result = user.ask(late)
    assert result.error is not None
    assert result.error.kind is ErrorKind.RESET
    assert result.service_ns >= 20_000_000
    assert (result.request_bytes, result.response_bytes) == (5, 0)
    assert [event["exception"] for event in fired] == [result.error]


def test_a_request_belongs_to_the_phase_in_which_it_began(user: ScriptedUser, fired: Fired) -> None:
    seen = []

    def meanwhile() -> Any:
        user.mine.enter("measure")
        seen.append((user.mine.sent, user.mine.in_flight, dict(user.mine.under_way)))
        return unit(3)

    user.mine.enter("warm-up")
    user.mine.under_way["warm-up"] += 1  # another user's
    assert [user.ask(step).phase for step in (meanwhile, unit(3))] == ["warm-up", "measure"]
    assert seen == [(0, 2, {"warm-up": 2})]
    assert (user.mine.sent, user.mine.in_flight) == (1, 1)
    assert user.mine.under_way == {"warm-up": 1, "measure": 0}
    assert [event["name"] for event in fired] == [f"{user.mine.cell} (warm-up)", user.mine.cell]


def test_checks_are_in_no_requests_time(user: ScriptedUser, monkeypatch: pytest.MonkeyPatch) -> None:
    checked_ns = []
    for name in ("check_form", "check_embeddings"):
        monkeypatch.setattr(user_module, name, lambda *_: checked_ns.append(time.perf_counter_ns()))
    assert user.ask(unit(3)).end_ns <= checked_ns[0] <= checked_ns[1]


class Recording(ScriptedUser):
    """Notes which request it would send, and of which class."""

    sent: ClassVar[list[tuple[int, str]]] = []

    def request(
        self, prepared: PreparedRequest, intended_ns: int, request_class: str = "", *given: Any, **named: Any
    ) -> Result:
        self.sent.append((prepared.indices[0], request_class))
        return super().request(prepared, intended_ns, request_class, *given, **named)


def sent_by(
    user: ScriptedUser, monkeypatch: pytest.MonkeyPatch, index: int, of: int, count: int
) -> list[Any]:
    """What two users of a worker send in turn, in a phase that just began."""
    monkeypatch.setattr(Recording, "sent", [])
    user.mine.enter("measure", ClosedPacer(index, of), "seed")
    for one in (Recording(user.environment), Recording(user.environment)):
        one.on_start()
        Scripted.script = [unit(3)] * count
        for _ in range(count):
            one.infer()
        one.on_stop()
    return Recording.sent


def test_users_begin_with_different_requests_and_go_on_in_turn(user: ScriptedUser) -> None:
    user.mine.pool[:] = [PreparedRequest(b"", (number,)) for number in range(3)]
    sent = []
    for _ in range(4):
        other = ScriptedUser(user.environment)
        other.on_start()
        sent.append((other.seat, [next(other.requests).indices[0] for _ in range(4)]))
    assert sent == [(1, [1, 2, 0, 1]), (2, [2, 0, 1, 2]), (3, [0, 1, 2, 0]), (4, [1, 2, 0, 1])]


def test_each_class_of_a_mix_goes_through_its_own_requests(
    user: ScriptedUser, monkeypatch: pytest.MonkeyPatch, fired: Fired
) -> None:
    user.mine.pool[:] = [PreparedRequest(b"", (number,)) for number in range(5)]
    user.mine.traffic, user.mine.classes = mix_of("1:0.5,2:0.5", "", 2), {"b1": range(2), "b2": range(2, 5)}
    monkeypatch.setattr(Recording, "assignment", user.mine)
    whole = list(sent_by(user, monkeypatch, 0, 1, 10))
    assert [event["result"].request_class for event in fired] == [label for _, label in whole]
    assert {label for _, label in whole} == {"b1", "b2"}
    own = user.mine.classes
    assert whole == [(own[label][n % len(own[label])], label) for n, (_, label) in enumerate(whole)]
    assert [list(sent_by(user, monkeypatch, index, 2, 5)) for index in range(2)] == [whole[::2], whole[1::2]]
    user.mine.enter("warm-up", ClosedPacer(), "another seed")
    assert [user.mine.request(n)[1] for n in range(20)] != [label for _, label in whole]


def test_a_share_of_the_requests_carries_a_traceparent_and_others_go_as_they_are(
    user: ScriptedUser, monkeypatch: pytest.MonkeyPatch, fired: Fired
) -> None:
    sent: list[PreparedRequest] = []
    monkeypatch.setattr(Scripted, "exchange", lambda _, one: sent.append(one) or Reply(unit(3), 1))
    user.mine.traceparent = 0.5
    user.mine.enter("measure", seed="seed")
    for _ in range(1_000):
        user._take_turn()
    carried = [one.headers.get("traceparent", "") for one in sent]
    ids = [event["result"].trace_id for event in fired]
    assert carried == [f"00-{one}-{one[16:]}-01" if one else "" for one in ids]
    assert len(set(filter(None, ids))) == len(list(filter(None, ids))) == 500
    plain = user.mine.pool[0]
    assert all(one is plain for one, header in zip(sent, carried, strict=True) if not header)
    assert {one.body for one in sent} == {plain.body}
    assert {event["result"].phases_ns == {} or event["result"].phases_ns["encode"] == 0
            for event in fired if not event["result"].trace_id} == {True}  # fmt: skip


def test_an_assignment_knows_how_many_users_it_has(user: ScriptedUser) -> None:
    other = ScriptedUser(user.environment)
    assert user.mine.users == 1
    other.on_start()
    assert user.mine.users == 2
    other.on_stop()
    assert user.mine.users == 1


def test_of_a_batch_its_items_and_each_row_count(user: ScriptedUser) -> None:
    user.mine.pool[0] = PreparedRequest(b"12345678", (3, 1))
    other = ScriptedUser(user.environment)
    other.on_start()
    results = [other.ask(np.vstack([unit(3), unit(second)])) for second in (1, 2)]
    assert [(made.images, made.request_bytes, made.user) for made in results] == [(2, 8, 1)] * 2
    other.mine.enter("measure")
    other.mine.enter("warm-up")  # whose first answer is compared
    wrong = other.ask(np.vstack([unit(3), unit(2)])).error
    assert wrong is not None
    assert wrong.kind is ErrorKind.WRONG_EMBEDDING


@pytest.mark.parametrize("paced", [False, True])
def test_who_pauses_after_a_failure(user: ScriptedUser, monkeypatch: pytest.MonkeyPatch, paced: bool) -> None:
    monkeypatch.setattr(user_module, "PAUSE_AFTER_FAILURE_S", 0.3)
    offsets = itertools.count()
    user.mine.enter("measure", OpenPacer(offsets, time.perf_counter_ns(), 0, 1, NS_PER_S) if paced else None)
    took_s = []
    for step in (ConnectionResetError(104, "gone"), unit(3)):
        Scripted.script = [step]
        began = time.perf_counter()
        user.infer()
        took_s.append(time.perf_counter() - began)
    assert [took >= 0.3 for took in took_s] == [not paced, False]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (unit(4), ErrorKind.WRONG_EMBEDDING),
        (unit(3) * 2, ErrorKind.BAD_REPLY),
        (unit(3) * np.float32("nan"), ErrorKind.BAD_REPLY),
        (np.vstack([unit(3), unit(3)]), ErrorKind.BAD_REPLY),
    ],
)
def test_a_wrong_answer_fails(user: ScriptedUser, reply: Any, kind: ErrorKind) -> None:
    result = user.ask(reply)
    assert isinstance(result.error, RequestError)
    assert result.error.kind is kind


def test_embeddings_are_compared_on_the_first_and_every_eighth_answer(user: ScriptedUser) -> None:
    outcomes = [user.ask(unit(3 if number == 0 else 4)).ok for number in range(17)]
    assert [number for number, ok in enumerate(outcomes) if not ok] == [8, 16]


def test_the_sample_begins_anew_with_each_phase(user: ScriptedUser) -> None:
    assert user.ask(unit(3)).ok
    assert user.ask(unit(4)).ok
    user.mine.enter("warm-up")
    assert not user.ask(unit(4)).ok


def test_a_killed_request_is_abandoned_and_not_a_success(user: ScriptedUser, fired: Fired) -> None:
    Scripted.script = ["hang"]
    greenlet = gevent.spawn(user.request, user.mine.pool[0], 100)
    gevent.sleep(0)
    assert user.mine.in_flight == 1
    greenlet.kill()
    assert user.mine.in_flight == 0
    (event,) = fired
    assert (event["result"].abandoned, event["result"].ok) == (True, False)
    assert "abandoned" in str(event["exception"])


def test_answers_at_once_let_others_run(user: ScriptedUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedUser, "assigned", True)
    Scripted.script = [unit(3)] * 50
    sending = gevent.spawn(user.infer)
    other = gevent.spawn(lambda: user.mine.sent)
    assert other.get(timeout=5) == 1
    sending.kill()


def test_those_who_wait_for_a_turn_are_let_go_with_the_phase(user: ScriptedUser) -> None:
    user.mine.enter("warm-up", OpenPacer(iter([]), time.perf_counter_ns(), 0, 1, NS_PER_S))
    waiting = gevent.spawn(user.infer)
    gevent.sleep(0)
    assert not waiting.ready()
    user.mine.enter("drain")
    waiting.join(timeout=5)
    assert waiting.ready()
    assert not user.mine.start_event.is_set()


def test_ids_are_of_16_characters_and_no_two_alike() -> None:
    made = Assignment(CODEC, [], 1.0)
    ids = [one.new_id() for _ in range(50) for one in (made, Assignment(CODEC, [], 1.0))]
    assert len(set(ids)) == 100
    assert {len(one) for one in ids} == {16}


def test_the_gate_holds_users_until_the_phase_sends(user: ScriptedUser, fired: Fired) -> None:
    Scripted.script = [unit(3)]
    user.mine.enter("drain")
    greenlet = gevent.spawn(user.infer)
    gevent.sleep(0)
    assert fired == []
    user.mine.enter("warm-up")
    greenlet.join(timeout=5)
    assert [event["name"] for event in fired] == [f"{user.mine.cell} (warm-up)"]


def test_connections_are_asked_for_by_users_who_have_sent(user: ScriptedUser) -> None:
    other = ScriptedUser(user.environment)
    other.on_start()
    assert user.mine.connections == 0, "under open-loop load, some users may never get a turn"
    user.ask(unit(3))
    user.ask(ConnectionResetError(104, "gone"))
    assert user.mine.connections == 1
    other.ask(unit(3))
    assert user.mine.connections == 2


@pytest.mark.parametrize(
    ("channels", "expected"),
    [("per-user", [1, 2, 3]), ("shared", [1, 1, 1]), ("pool:2", [1, 2, 2]), ("same-args", [1, 2, 3])],
)
def test_shared_connections_are_asked_once(user: ScriptedUser, channels: str, expected: list[int]) -> None:
    user.mine.channels = channels
    asked = []
    for sender in (user, ScriptedUser(user.environment), ScriptedUser(user.environment)):
        sender.on_start()
        for _ in range(2):
            sender.ask(unit(3))
        asked.append(user.mine.connections)
    assert asked == expected


@pytest.mark.parametrize(
    ("images", "tls", "expected"),
    [(None, False, 3), (image_set(1), False, 1), (image_set(1), True, 3)],
    ids=["own", "grpcio", "grpcio over TLS"],
)
def test_what_grpcio_joins_is_asked_for_once(images: ImageSet | None, tls: bool, expected: int) -> None:
    codec = V2Grpc(replace(codec_at(V2Grpc).endpoint, tls=tls))
    made = Assignment(codec, [], 1.0, channels="same-args", images=images)
    for _ in range(3):
        made.count_connection()
    assert (made.by_library, made.connections) == (images is not None, expected)


def test_a_users_client_is_as_its_assignment_says(user: ScriptedUser) -> None:
    user.mine.channels, user.mine.scheduling, user.mine.images = "pool:2", "fair", image_set(1)
    other = ScriptedUser(user.environment)
    other.on_start()
    found = [(made.by_library, made.scheduling, str(made.channels)) for made in (user.client, other.client)]
    assert found == [(False, "fifo", "per-user"), (True, "fair", "pool:2")]


def test_a_prepared_request_costs_no_encoding(user: ScriptedUser) -> None:
    assert user.ask(unit(3)).phases_ns == {"encode": 0, "decode": 3}
    assert user.ask(ConnectionResetError(104, "gone")).phases_ns == {}


def test_without_golden_embeddings_only_the_form_is_checked(user: ScriptedUser) -> None:
    user.mine.golden = None
    assert user.ask(unit(9)).ok
    assert not user.ask(unit(9) * 2).ok


def test_the_connection_is_opened_and_closed_once(user: ScriptedUser) -> None:
    user.on_stop()
    assert Scripted.log == ["open", "close"]


def test_users_of_a_plain_locustfile_share_one_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(InferenceUser):
        endpoint = Endpoint("mine", "pytorch", "http", "jpeg", "127.0.0.1:1")
        batch = 2
        channels = "pool:2"

    environment = Environment(user_classes=[Plain])
    one, other = Plain(environment), Plain(environment)
    for user in (one, other):
        user.on_start()
        user.on_stop()
    assert one.mine is other.mine
    assert (one.seat, other.seat) == (0, 1)
    assert len(one.mine.pool) == 32
    assert one.mine.start_event.is_set()
    assert one.mine.channels == "pool:2"
    one.on_start()
    assert one.request(next(one.requests), 0).error is not None
    one.on_stop()


def test_a_user_of_a_study_waits_for_its_stage(user: ScriptedUser, monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = user.mine
    monkeypatch.setattr(ScriptedUser, "assignment", None)
    monkeypatch.setattr(ScriptedUser, "assigned", True)
    early = ScriptedUser(Environment(user_classes=[ScriptedUser]))
    greenlet = gevent.spawn(early.on_start)
    gevent.sleep(0)
    assert not hasattr(early, "mine")
    ScriptedUser.assignment = assignment
    greenlet.join(timeout=5)
    assert early.mine is assignment


def test_without_stage_or_endpoint_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedUser, "assignment", None)
    with pytest.raises(ValueError, match="ScriptedUser needs a `host` with its port"):
        ScriptedUser(Environment(user_classes=[ScriptedUser])).on_start()


def preset(payload: Any, protocol: Any, address: str, model: str = "", tls: bool = False) -> Endpoint:
    made = backends()["onnx" if model else "pytorch"].preset(payload, protocol)
    return replace(made, address=address, model=model, tls=tls)


@pytest.mark.parametrize(
    ("of", "host", "found"),
    [
        (JpegHttpUser, "http://gpu-host:8002/", preset("jpeg", "http", "gpu-host:8002")),
        (TritonHttpUser, "gpu-host:8000", preset("fp32", "http", "gpu-host:8000", "mine")),
        (TritonGrpcUser, "grpcs://[::1]:8001", preset("fp32", "grpc", "[::1]:8001", "mine", tls=True)),
    ],
)
def test_a_plain_locustfile_needs_a_host_alone(of: type[InferenceUser], host: str, found: Endpoint) -> None:
    plain = type("Plain", (of,), {"host": host, "model": found.model, "batch": 3})
    user = plain(Environment(user_classes=[plain]))
    user.on_start()
    user.on_stop()
    assert user.mine.endpoint == found
    assert user.mine.codec.name == found.codec
    assert {len(request.indices) for request in user.mine.pool} == {3}


@pytest.mark.parametrize("host", ["", "gpu-host", "http://", "gpu host:1"])
def test_a_host_without_its_port_is_refused(host: str) -> None:
    plain = type("Plain", (TritonGrpcUser,), {"host": host})
    with pytest.raises(ValueError, match="Plain needs a `host` with its port"):
        plain(Environment(user_classes=[plain])).on_start()


def test_a_user_thinks_after_each_answer_of_closed_load(
    user: ScriptedUser, fired: Fired, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(user_module.gevent, "sleep", slept.append)
    monkeypatch.setattr(user_module, "PAUSE_AFTER_FAILURE_S", 9)
    user.mine.think, user.mine.user_seed = "exponential:0.5", "7/0"
    Scripted.script = [unit(3), ConnectionResetError(104, "gone"), unit(3), unit(3)]
    for _ in range(3):
        user.infer()
    first, second, third = itertools.islice(ThinkTime(0.5, True).times_ns(f"7/0/{user.seat}"), 3)
    assert slept == [first / 1e9, 9, second / 1e9, third / 1e9]
    offsets = iter([0])
    user.mine.enter("measure", OpenPacer(offsets, time.perf_counter_ns(), 0, 1, NS_PER_S))
    user.infer()
    assert len(slept) == 4, "arrivals do not wait for it"
    assert [event["result"].think_ns for event in fired] == [first, second, third, 0]
