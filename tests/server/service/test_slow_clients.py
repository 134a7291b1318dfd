"""Clients that send a byte now and then, or do not read their answer, hold nothing for long."""

import contextlib
import http.client
import json
import re
import resource
import socket
import time

import pytest

from server.service import http_server
from server.settings import Settings

pytestmark = pytest.mark.system

PATIENT_S = 1.5
HEAD = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"


@pytest.fixture
def client(embedder, serving):
    # Answers that no socket's buffers hold.
    embedder.dim = 1_000_000
    with serving(embedder, Settings(max_receive_s=PATIENT_S, max_queue=0)) as client:
        yield client


def connect(client):
    return socket.create_connection(("127.0.0.1", client.port), timeout=20)


def trickle(held, data=b"x"):
    """Send on and on, slowly, until the other side closes; what it has answered."""
    answer = b""
    with pytest.raises(OSError):  # noqa: PT012
        while True:
            held.sendall(data)
            held.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                if not (more := held.recv(10_000)):
                    raise ConnectionResetError
                answer += more
    return answer


def test_a_body_that_trickles_is_refused_and_gives_its_place_back(client, until):
    with connect(client) as held:
        held.sendall(HEAD)
        until(lambda: client.metric("inferswarm_in_flight") == 1)
        assert client.embed([(1, 2, 3)])[0] == 429
        head, _, detail = trickle(held).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head
    said = "the body did not arrive within 1.5 s: send fewer images per request"
    assert json.loads(detail) == {"detail": said}
    assert client.embed([(1, 2, 3)])[0] == 200


def test_a_refused_body_that_trickles_is_not_read_for_ever(client, until):
    with connect(client) as held, connect(client) as refused:
        held.sendall(HEAD)
        until(lambda: client.metric("inferswarm_in_flight") == 1)
        refused.sendall(HEAD)
        answer = trickle(refused)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"connection: close" in answer


@pytest.mark.parametrize(
    "sent", [b"", b"POST /emb", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /h"]
)
def test_a_head_that_trickles_or_never_comes_is_not_waited_for(client, sent):
    with connect(client) as held:
        held.sendall(sent)
        answer = trickle(held) if sent else held.recv(10)
    assert answer.startswith(b"HTTP/1.1 200 " if b"\r\n" in sent else b"")
    assert answer.count(b"HTTP/1.1") == (1 if b"\r\n" in sent else 0)


def test_a_client_that_keeps_its_connection_is_not_cut_off(client):
    connection = client.connect()
    for _ in range(4):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"alive"}'
        time.sleep(PATIENT_S / 3)
    connection.close()


@pytest.mark.parametrize("how", [b"", b"Connection: close\r\n"])
def test_an_answer_that_nobody_reads_is_dropped(client, how):
    body = b'{"images": [""]}'
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        held.settimeout(20)
        held.connect(("127.0.0.1", client.port))
        head = b"POST /null HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (how, len(body))
        held.sendall(head + body)
        begun = held.recv(1000)
        time.sleep(2 * PATIENT_S)
        # Its sockets' buffers were full when it was given up.
        received = len(begun)
        while chunk := held.recv(2**16):
            received += len(chunk)
    whole = int(re.search(rb"content-length: (\d+)", begun)[1])
    assert len(begun) < received < whole


def test_one_connection_too_many_is_closed_and_the_others_live(client, until, monkeypatch):
    monkeypatch.setattr("server.service.http_server.MAX_CONNECTIONS", 3)
    with connect(client), connect(client):
        connection = client.connect()
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b'{"status":"alive"}'
        with connect(client) as refused:
            assert closed(refused)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
    until(lambda: answers(client))


def closed(held):
    try:
        return held.recv(1) == b""
    except ConnectionResetError:
        return True


def answers(client):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return client.request("GET", "/healthz")[0] == 200
    return False


def test_the_service_has_files_for_all_connections(monkeypatch):
    limits = [(1024, 1_000_000), (1024, 4096), (100_000, 200_000), (1024, resource.RLIM_INFINITY)]
    given = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: given.append(both))
    for both in limits:
        monkeypatch.setattr(resource, "getrlimit", lambda _, both=both: both)
        http_server.allow_files()
    assert given == [(8448, 1_000_000), (4096, 4096), (8448, resource.RLIM_INFINITY)]
