"""A question that is refused before any load: whether it is asked again, and what the answer is shown as."""

from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from itertools import count
from typing import Any

import pytest

from tests.swarm.wsgi import serving
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError, StatusError, TargetError, request_error, status_error
from users.redact import quoted
from users.refusals import (
    MOST_WAIT_S,
    ask_again,
    explain_refusal,
    limits_size,
    patient,
    seconds_asked,
)
from users.tls import Security
from users.transport.admin_connection import get

V2 = Endpoint("e", "v2", "http", "fp32", "127.0.0.1:1", "m", settings={"asked": {}})
NOW_S = 1_700_000_000


def refused(status: int, body: str = "", again: str | None = None) -> RequestError:
    return status_error(status, body.encode(), {} if again is None else {"retry-after": again})


def in_turn(*errors: Exception) -> Callable[[], int]:
    """A question that is answered so first, and then with the number of times it was asked."""
    left, asked = list(errors), count(1)

    def ask() -> int:
        number = next(asked)
        if left:
            raise left.pop(0)
        return number

    return ask


@pytest.mark.parametrize(
    ("errors", "slept"),
    [
        ([refused(429, again="2")], [2]),
        ([refused(503, again="2"), refused(503)], [2, 0.1]),
        ([refused(503)] * 3, [0.05, 0.1, 0.2]),
        ([refused(429, again="0")], [0.05]),
        ([request_error(StatusError("RESOURCE_EXHAUSTED", "quota", "1500"))], [2]),
        ([request_error(StatusError("UNAVAILABLE", "not yet"))], [0.05]),
    ],
)
def test_who_is_refused_for_the_moment_asks_again(errors: list[Exception], slept: list[float]) -> None:
    waits: list[float] = []
    said: list[str] = []
    with patient(said.append, waits.append):
        assert ask_again("gpu:1", in_turn(*errors)) == len(errors) + 1
    assert waits == pytest.approx(slept)
    assert len(said) == 1


@pytest.mark.parametrize(
    "error",
    [
        refused(500),
        refused(404),
        refused(502),
        refused(429, again="31"),
        refused(503, "message larger than max"),
        request_error(ConnectionRefusedError()),
        request_error(StatusError("INTERNAL", "no")),
    ],
)
def test_other_refusals_hold_at_once(error: RequestError) -> None:
    waits: list[float] = []
    with patient(print, waits.append), pytest.raises(RequestError) as caught:
        ask_again("gpu:1", in_turn(error))
    assert (caught.value, waits) == (error, [])


def test_the_time_to_wait_is_for_all_questions_together() -> None:
    waits: list[float] = []
    with patient(print, waits.append):
        for server in ("a:1", "b:1"):
            with patient(print), pytest.raises(RequestError):
                ask_again(server, in_turn(*[refused(503)] * 99))
    assert MOST_WAIT_S - 2 < sum(waits) <= MOST_WAIT_S


def test_nobody_waits_during_load() -> None:
    with pytest.raises(RequestError):
        ask_again("gpu:1", in_turn(refused(429, again="1")))


@pytest.mark.parametrize(
    ("again", "seconds"),
    [
        ("7", 7),
        (formatdate(NOW_S + 9, usegmt=True), 9),
        (formatdate(NOW_S - 9, usegmt=True), 0),
        ("soon", 0),
        ("", 0),
        ("-1", 0),
        ("1e3", 0),
        ("9" * 400, 0),
        (None, 0),
    ],
)
def test_when_to_ask_again(again: str | None, seconds: float) -> None:
    assert seconds_asked(refused(429, again=again), NOW_S) == seconds


def rated(refusals: int, again: str) -> Callable[..., list[bytes]]:
    """A service behind a limiter that refuses the first requests."""
    asked = count()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        over = next(asked) < refusals
        start("429 Too Many Requests" if over else "200 OK", [("Retry-After", again)] if over else [])
        return [b"slow down" if over else b"here"]

    return answer


def test_a_limiter_over_http_is_waited_for() -> None:
    waits: list[float] = []
    said: list[str] = []
    with serving(rated(2, "3")) as address, patient(said.append, waits.append):
        assert get(replace(V2, address=address), "/v2").text == "here"
    assert waits == [3, 3]
    assert "HTTP 429 slow down" in said[0]


@pytest.mark.parametrize(
    ("error", "limits"),
    [
        (refused(413), True),
        (refused(400, "[request id: 1] inference request batch-size must be <= 1 for 'm'"), True),
        (refused(422, "batch size 64 > maximum allowed batch size 32"), True),
        (refused(422, "List should have at most 1 item after validation, not 2"), True),
        (request_error(StatusError("INVALID_ARGUMENT", "batch-size must be <= 1")), True),
        (request_error(StatusError("RESOURCE_EXHAUSTED", "Received message larger than max")), True),
        (refused(422, "Input should be a valid string"), False),
        (refused(400), False),
        (refused(429, "rate limit exceeded"), False),
        (refused(503, "<html>503 Service Temporarily Unavailable</html>"), False),
        (refused(503, "Exceeds maximum queue size"), False),
        (refused(500, "CUDA out of memory"), False),
        (request_error(StatusError("RESOURCE_EXHAUSTED", "quota exceeded")), False),
        (request_error(StatusError("RESOURCE_EXHAUSTED", "too many requests, at most 9 a second")), False),
        (request_error(StatusError("UNAVAILABLE", "Exceeds maximum queue size")), False),
        (request_error(TimeoutError()), False),
    ],
)
def test_only_what_speaks_of_size_limits_a_batch(error: RequestError, limits: bool) -> None:
    assert limits_size(error) is limits


FIX = "give another port"
PROXY, LIMITS, NOT_NOW, TOKEN = (
    "a proxy answers",
    "limits requests",
    "takes no requests now",
    "requires a token",
)
PAGE = "<html>\x1b[31m no upstream " + "long " * 80 + "end</html>"


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (refused(502, PAGE), PROXY),
        (refused(504, PAGE), PROXY),
        (refused(503, PAGE), NOT_NOW),
        (refused(429, PAGE), LIMITS),
        (refused(401, PAGE), TOKEN),
        (refused(403, PAGE), TOKEN),
        (refused(404, PAGE), FIX),
        (refused(405, PAGE), FIX),
        (refused(400, PAGE), FIX),
        (refused(301, PAGE), "redirects requests"),
        (refused(500, PAGE), "look at its log"),
        (RequestError(ErrorKind.BAD_REPLY, quoted(f"HTTP 200 {PAGE}"), "200"), FIX),
        (request_error(StatusError("UNIMPLEMENTED", PAGE)), FIX),
        (request_error(StatusError("UNAVAILABLE", PAGE)), NOT_NOW),
        (request_error(StatusError("UNAVAILABLE", f"HTTP 502 {PAGE}")), PROXY),
        (request_error(StatusError("UNKNOWN", f"Received http2 header with status: 504 {PAGE}")), PROXY),
        (request_error(StatusError("UNAUTHENTICATED", PAGE)), TOKEN),
    ],
)
def test_a_refusal_is_shown_whole_with_what_it_means(error: RequestError, meaning: str) -> None:
    told = explain_refusal(V2, "GET /v2", error, FIX)
    meanings = (PROXY, LIMITS, NOT_NOW, TOKEN, FIX, "look at its log", "redirects requests")
    assert meaning in told
    assert next(one for one in meanings if one in told) == meaning
    assert "no upstream" in told
    assert "end</html>" in told
    assert "\x1b" not in told
    assert error.code in told


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "INFERSWARM_TOKEN"),
        ({"security": Security(token="INFERSWARM_GPU_TOKEN")}, "the token in INFERSWARM_GPU_TOKEN"),
        ({"headers": (("X-Api-Key", "${KEY}"), ("Accept", "*/*"))}, "X-Api-Key"),
        ({"path": "/embed?v=1&api-key=abcdefgh"}, "api-key"),
    ],
)
def test_what_was_sent_as_a_secret_is_named(status: int, given: dict[str, Any], named: str) -> None:
    told = explain_refusal(replace(V2, **given), "GET /v2", refused(status), FIX)
    assert named in told
    assert ("INFERSWARM" in told) is ("INFERSWARM" in named)
    assert ("refuses this client" in told) is (status == 403)


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.RESET, ErrorKind.BAD_REPLY])
def test_what_was_no_answer_is_not_called_one(kind: ErrorKind) -> None:
    told = explain_refusal(V2, "GET /v2", RequestError(kind, "why"), FIX)
    assert "HTTP" not in told
    assert ("look at its log, or" in told) is (kind is not ErrorKind.BAD_REPLY)


@pytest.fixture(params=["triton", "v2", "service", "pytorch"])
def asked(request: pytest.FixtureRequest) -> Endpoint:
    settings = {"ready": {"path": "/ready"}} if request.param == "service" else {"asked": {}}
    return replace(V2, backend=request.param, settings=settings)


@pytest.mark.parametrize(
    ("status", "meaning"), [("502 Bad Gateway", PROXY), ("503 No", NOT_NOW), ("403 No", TOKEN)]
)
def test_every_kind_of_server_is_told_of_by_its_answer(asked: Endpoint, status: str, meaning: str) -> None:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start(status, [])
        return [b"no healthy upstream"]

    with serving(answer) as address, pytest.raises(TargetError) as caught:
        backend_of(asked).check(replace(asked, address=address))
    assert f"HTTP {status[:3]} no healthy upstream" in str(caught.value)
    assert meaning in str(caught.value)


def test_a_model_that_is_loading_is_waited_for() -> None:
    answers = iter(["LOADING", "LOADING", "READY"])
    state = ["LOADING"]

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        ready = path.endswith("/ready")
        state[0] = next(answers) if ready else state[0]
        start("200 OK" if not ready or state[0] == "READY" else "400 Bad Request", [])
        if path == "/v2":
            return [b'{"name": "triton", "extensions": ["binary_tensor_data"]}']
        return [b'[{"name": "m", "version": "1", "state": "%s"}]' % state[0].encode()]

    waits: list[float] = []
    with serving(answer) as address, patient(print, waits.append):
        backend_of(replace(V2, backend="triton")).check(replace(V2, backend="triton", address=address))
    assert len(waits) == 2
