"""A worker sends what it was given to send, whatever its master names."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from swarm.distributed.worker_cell import check_secured
from swarm.errors import StudyError
from tests.pictures import image_set
from tests.swarm.wsgi import serving
from users import redact
from users.codecs.embed import Embed
from users.endpoint import Endpoint
from users.errors import RequestError
from users.tls import Security, SecurityError, check_here
from users.transport.headers import Sender
from users.transport.transports import client

OTHERS = ("AWS_SECRET_ACCESS_KEY", "HOME", "INFERSWARM_MODEL_CONTROL")
NAMES = (*OTHERS, "INFERSWARM_token", "XINFERSWARM_TOKEN", "INFERSWARM_TOKEN\n")
SECRET = "of-nobodys-business"


def sent_to(asked: list[str]) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        asked.append(environ.get("HTTP_AUTHORIZATION", ""))
        start("500 No", [("Content-Type", "application/json")])
        return [b"{}"]

    return answer


def told(address: str, **more: Any) -> Endpoint:
    """As a worker makes it of its master's message."""
    made = Endpoint("pytorch-http", "pytorch", "http", "jpeg", address, **more)
    return Endpoint.from_dict(json.loads(json.dumps(made.to_dict())))


def with_header(address: str, value: str) -> Endpoint:
    return told(address, headers=(("Authorization", value),))


def send(endpoint: Endpoint) -> None:
    codec = Embed(endpoint)
    with client(codec, 5.0) as user, pytest.raises(RequestError):
        user.send(codec.prepare(image_set(1), (0,)))


@pytest.mark.parametrize("name", NAMES)
def test_no_other_variable_leaves_a_worker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SECRET)
    security = Security(token=name)
    with pytest.raises(SecurityError, match="not a variable with a token"):
        check_here(security)
    asked: list[str] = []
    with serving(sent_to(asked)) as address:
        send(told(address, security=security))
    assert SECRET not in "".join(asked)


def test_those_meant_for_it_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("INFERSWARM_TOKEN", "INFERSWARM_ONNX_TOKEN"):
        monkeypatch.setenv(name, SECRET)
        with serving(sent_to(asked)) as address:
            send(told(address, security=Security(token=name)))
    assert asked == [f"Bearer {SECRET}"] * 2


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is a worker whose master is another, and forgets its secrets with the test."""
    monkeypatch.setattr(Sender, "is_worker", True)
    monkeypatch.setattr(redact, "_others", set())
    yield
    redact.spellings.cache_clear()


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("name", OTHERS)
def test_no_other_variable_leaves_a_worker_in_a_header(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SECRET)
    asked: list[str] = []
    with serving(sent_to(asked)) as address:
        endpoint = with_header(address, f"Bearer ${{{name}}}")
        with pytest.raises(StudyError, match=f"has {name} in it, which workers do not send by default"):
            check_secured(endpoint)
        send(endpoint)
    assert SECRET not in "".join(asked)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("name", ["INFERSWARM_KEY_TOKEN", "CLIP_KEY"])
def test_those_that_its_owner_names_leave_it_in_a_header(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("INFERSWARM_HEADERS", "OTHER, CLIP_KEY")
    asked: list[str] = []
    with serving(sent_to(asked)) as address:
        endpoint = with_header(address, f"Key ${{{name}}}")
        check_secured(endpoint)
        send(endpoint)
    assert asked == [f"Key {SECRET}"]
