"""Clients that send a byte now and then, or do not read their answer, hold nothing for long."""

import contextlib
import json
import re
import socket
import time

import pytest

from server.settings import Settings

PATIENT_S = 0.5
HEAD = b"POST /embed HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n"


@pytest.fixture
def client(embedder, serving, until):
    # Answers that no socket's buffers hold.
    embedder.dim = 1_000_000
    with serving(embedder, Settings(max_receive_s=PATIENT_S, max_queue=0)) as client:
        until(lambda: client.request("GET", "/readyz")[0] == 200)
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
                answer += held.recv(10_000) or _raise()
    return answer


def _raise():
    raise ConnectionResetError


def test_a_body_that_trickles_is_refused_and_gives_its_place_back(client, until):
    with connect(client) as held:
        held.sendall(HEAD)
        until(lambda: client.metric("inferswarm_in_flight") == 1)
        assert client.embed([(1, 2, 3)])[0] == 429
        head, _, detail = trickle(held).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head
    assert json.loads(detail) == {
        "detail": "the body had not arrived within 0.5 s: send fewer images a request"
    }
    assert client.embed([(1, 2, 3)])[0] == 200


def test_a_refused_body_that_trickles_is_not_read_for_ever(client, until):
    with connect(client) as held, connect(client) as refused:
        held.sendall(HEAD)
        until(lambda: client.metric("inferswarm_in_flight") == 1)
        refused.sendall(HEAD)
        answer = trickle(refused)
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"connection: close" in answer


@pytest.mark.parametrize("sent", [b"", b"POST /emb", b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\nGET /h"])
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
        head = b"POST /null HTTP/1.1\r\nHost: here\r\n%sContent-Length: %d\r\n\r\n" % (how, len(body))
        held.sendall(head + body)
        begun = held.recv(1000)
        time.sleep(3 * PATIENT_S)
        # Its sockets' buffers were full when it was given up.
        received = len(begun)
        while chunk := held.recv(2**16):
            received += len(chunk)
    whole = int(re.search(rb"content-length: (\d+)", begun)[1])
    assert len(begun) < received < whole
