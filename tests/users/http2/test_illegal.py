"""What a server must not send: an error of one kind, the connection closed or its stream reset, no hang."""

import pytest

from tests.users.http2.callers import Asked, Callers, Listener, callers, ended, kinds
from tests.users.http2.peer import (
    GOOD_HEAD,
    Peer,
    block,
    framed,
    head,
    message,
    numbered,
    set_to,
    string,
    trailers,
)
from users.http2.frames import (
    ACK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
    PADDED,
    PING,
    PRIORITISED,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
)

pytestmark = pytest.mark.system

BLOCK = block(GOOD_HEAD)
HALF = framed(HEADERS, 0, 1, BLOCK[:9])
GOOD = framed(DATA, 0, 1, message(b"good"))
ENDLESS = {f"name-{number}": "x" * 100 for number in range(100)}
BOMB = b"\x40" + string(b"n") + string(b"v" * 3_000) + b"\xbe" * 100
"""A field that enters the table, and is then referred to 100 times: 303,000 bytes of headers in 3 KB."""

OF_THE_CONNECTION = {
    "data of an idle stream": (framed(DATA, 0, 99, b"?"), PROTOCOL_ERROR),
    "data of no stream": (framed(DATA, 0, 0, b"?"), PROTOCOL_ERROR),
    "headers of an idle stream": (head(99), PROTOCOL_ERROR),
    "headers of a server's stream": (head(2), PROTOCOL_ERROR),
    "headers of no stream": (head(0), PROTOCOL_ERROR),
    "data of a server's stream": (framed(DATA, 0, 2, b"?"), PROTOCOL_ERROR),
    "reset of an idle stream": (numbered(RST_STREAM, 99, 0), PROTOCOL_ERROR),
    "reset of no stream": (numbered(RST_STREAM, 0, 0), PROTOCOL_ERROR),
    "a short reset": (framed(RST_STREAM, 0, 1, b"\0\0\0"), FRAME_SIZE_ERROR),
    "credit of an idle stream": (numbered(WINDOW_UPDATE, 99, 1), PROTOCOL_ERROR),
    "no credit": (numbered(WINDOW_UPDATE, 0, 0), PROTOCOL_ERROR),
    "short credit": (framed(WINDOW_UPDATE, 0, 0, b"\1"), FRAME_SIZE_ERROR),
    "too much credit": (numbered(WINDOW_UPDATE, 0, MAX_WINDOW), FLOW_CONTROL_ERROR),
    "a window of 2 GiB": (set_to({INITIAL_WINDOW_SIZE: 1 << 31}), FLOW_CONTROL_ERROR),
    "a frame of 16,383": (set_to({MAX_FRAME_SIZE: 16_383}), PROTOCOL_ERROR),
    "a frame of 16 MiB": (set_to({MAX_FRAME_SIZE: 1 << 24}), PROTOCOL_ERROR),
    "settings of a stream": (framed(SETTINGS, 0, 1), PROTOCOL_ERROR),
    "settings of 5 bytes": (framed(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    "a confirmation with more": (framed(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
    "a ping of 7 bytes": (framed(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "a ping of a stream": (framed(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a short goaway": (framed(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "goaway of a stream": (framed(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a promise": (framed(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + BLOCK), PROTOCOL_ERROR),
    "a continuation of nothing": (framed(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL_ERROR),
    "data between headers": (HALF + GOOD, PROTOCOL_ERROR),
    "settings between headers": (HALF + set_to({}), PROTOCOL_ERROR),
    "headers between headers": (HALF + head(3), PROTOCOL_ERROR),
    "another's continuation": (HALF + framed(CONTINUATION, END_HEADERS, 3, BLOCK[9:]), PROTOCOL_ERROR),
    "an unknown frame between headers": (HALF + framed(99, 0, 0), PROTOCOL_ERROR),
    "endless continuations": (
        framed(HEADERS, 0, 1, BLOCK) + framed(CONTINUATION, 0, 1, bytes(16_000)) * 100, None,
    ),
    "padding longer than data": (head(1) + framed(DATA, PADDED, 1, b"\5????"), PROTOCOL_ERROR),
    "padding without its length": (head(1) + framed(DATA, PADDED, 1, b""), PROTOCOL_ERROR),
    "padding longer than headers": (framed(HEADERS, 4 | PADDED, 1, b"\xff" + BLOCK), PROTOCOL_ERROR),
    "headers without their priority": (framed(HEADERS, 4 | PRIORITISED, 1, b"\0\0"), FRAME_SIZE_ERROR),
    "a frame larger than 16 KiB": (head(1) + framed(DATA, 0, 1, bytes(16_385)), FRAME_SIZE_ERROR),
    "a head of a huge frame": (head(1) + framed(DATA, 0, 1, b"", (1 << 24) - 1), FRAME_SIZE_ERROR),
    "headers that cannot be read": (framed(HEADERS, END_HEADERS, 1, b"\xff" * 40), COMPRESSION_ERROR),
    "an index that is not there": (framed(HEADERS, END_HEADERS, 1, b"\xfe"), COMPRESSION_ERROR),
    "a string that ends too soon": (framed(HEADERS, END_HEADERS, 1, b"\0\x7f\x0fabc"), COMPRESSION_ERROR),
    "bad huffman": (framed(HEADERS, END_HEADERS, 1, b"\0\x84\xff\xff\xff\xff\1a"), COMPRESSION_ERROR),
    "a huge table": (framed(HEADERS, END_HEADERS, 1, b"\x3f\xe1\xff\xff\xff\x03"), COMPRESSION_ERROR),
    "headers that unpack to 300 KB": (framed(HEADERS, END_HEADERS, 1, BOMB), COMPRESSION_ERROR),
    "data behind an answer": (
        head(1) + GOOD + trailers(1) + framed(DATA, 0, 1, b"?"), STREAM_CLOSED,
    ),
}  # fmt: skip
"""By name: what is sent, and HTTP/2's code for it, None where several will do."""
OF_A_STREAM = {
    "no credit": (numbered(WINDOW_UPDATE, 1, 0), PROTOCOL_ERROR),
    "too much credit": (numbered(WINDOW_UPDATE, 1, MAX_WINDOW), FLOW_CONTROL_ERROR),
    "data before headers": (GOOD, PROTOCOL_ERROR),
    "headers twice": (head(1) + head(1), PROTOCOL_ERROR),
}
BEGINNINGS = {
    "a ping": framed(PING, 0, 0, bytes(8)),
    "a confirmation": framed(SETTINGS, ACK, 0),
    "goaway": framed(GOAWAY, 0, 0, bytes(8)),
    "an answer": head(1),
    "nothing known": b"\0" * 18,
    "settings of 5 bytes": framed(SETTINGS, 0, 0, bytes(5)),
    "settings of 16 MiB": framed(SETTINGS, 0, 0, b"", (1 << 24) - 1),
}


def two_calls(listener: Listener, users: Callers) -> tuple[Peer, list[Asked]]:
    """On one connection, on streams 1 and 3, sent whole."""
    calls = [users.call() for _ in range(2)]
    peer = listener.accept().greet()
    peer.whole(1)
    peer.whole(3)
    return peer, calls


def goes_on(listener: Listener, users: Callers) -> None:
    """The next call is a good one, on a new connection."""
    call = users.call()
    peer = listener.accept().greet()
    peer.serve(1)
    assert ended(call) == b"good"


@pytest.mark.parametrize("name", OF_THE_CONNECTION)
def test_an_error_of_the_connection_ends_all_its_calls(listener: Listener, name: str) -> None:
    sent, code = OF_THE_CONNECTION[name]
    with callers(listener.address, 2) as users:
        peer, calls = two_calls(listener, users)
        peer.raw(sent)
        first = "good" if name == "data behind an answer" else "bad-reply"
        assert kinds(*calls) == [first, "bad-reply"]
        peer.hung_up()
        assert peer.gone is not None
        assert code in (None, peer.gone)
        goes_on(listener, users)


@pytest.mark.parametrize("name", OF_A_STREAM)
def test_an_error_of_a_stream_resets_it_alone(listener: Listener, name: str) -> None:
    sent, code = OF_A_STREAM[name]
    with callers(listener.address, 2) as users:
        peer, calls = two_calls(listener, users)
        peer.raw(sent)
        assert kinds(calls[0]) == ["bad-reply"]
        assert peer.cancelled(1) == code
        peer.answer(3)
        assert ended(calls[1]) == b"good"


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_connection_that_begins_otherwise_is_a_bad_reply(listener: Listener, name: str) -> None:
    with callers(listener.address, timeout_s=5) as users:
        call = users.call()
        peer = listener.accept()
        peer.raw(BEGINNINGS[name])
        assert kinds(call) == ["bad-reply"]
        peer.preface_only()
        peer.hung_up()
        goes_on(listener, users)


def test_a_windows_overflow_by_settings_is_an_error_of_the_connection(listener: Listener) -> None:
    """As RFC 9113 has it (6.9.2), though it is one stream's window."""
    with callers(listener.address) as users:
        (call,) = users.calls(1)
        peer = listener.accept().greet()
        peer.quiet()
        peer.credit(0, 1)
        peer.credit(1, MAX_WINDOW - 1_000)
        peer.quiet()
        peer.raw(set_to({INITIAL_WINDOW_SIZE: MAX_WINDOW}))
        assert kinds(call) == ["bad-reply"]
        peer.hung_up()
        assert peer.gone == FLOW_CONTROL_ERROR
