"""Answers in every form that gRPC and HTTP/2 allow, and what those are taken for that they do not."""

import math
from collections.abc import Mapping

import pytest

from tests.users.http2.callers import Callers, Listener, callers, ended, kinds
from tests.users.http2.peer import GOOD_HEAD, Peer, answered, block, framed, head, message, refused, trailers
from users.errors import RequestError
from users.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PRIORITISED,
    PRIORITY,
    WINDOW_UPDATE,
)

pytestmark = pytest.mark.system

OK = trailers(1)
LAST = END_HEADERS | END_STREAM
WEIGHT = b"\x80\0\0\0\x10"
"""What PRIORITY says: which stream goes before, and how much it matters."""
UNKNOWN_TYPE = 0x7A
COMPRESSED = bytes.fromhex("20 88 0f108b 1d75d0620d263d4c4d6564")
"""A new size of the table; `:status: 200` of the static table; and content-type in Huffman's code."""


def padded(payload: bytes, size: int = 200) -> bytes:
    """With so many bytes behind it that mean nothing."""
    return bytes((size,)) + payload + bytes(size)


def data(*parts: bytes, stream: int = 1) -> bytes:
    """DATA frames."""
    return b"".join(framed(DATA, 0, stream, part) for part in parts)


def in_pieces(stream: int, fields: Mapping[str, str], count: int, flags: int = 0) -> bytes:
    """Headers as HEADERS and CONTINUATION, each with as much of the block."""
    whole = block(fields)
    size = math.ceil(len(whole) / count)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    kinds = [HEADERS, *([CONTINUATION] * (count - 1))]
    ends = [flags, *([0] * (count - 2)), END_HEADERS]
    made = zip(kinds, ends, parts, strict=True)
    return b"".join(framed(kind, ended, stream, part) for kind, ended, part in made)


GOOD, BLOCK = message(b"good"), block(GOOD_HEAD)
REST, HEAD = data(GOOD) + OK, head(1)
PADDING = framed(DATA, PADDED, 1, padded(b"", 255)) + framed(DATA, PADDED, 1, padded(b"", 0))
CREDIT = [framed(WINDOW_UPDATE, 0, stream, b"\0\0\0\1") for stream in (0, 1)]
LONG_TRAILERS = in_pieces(1, {"grpc-status": "0", "x": "y" * 99}, 3, END_STREAM)
ANSWERS = {
    "plain": answered(1, b"good"),
    "empty": HEAD + data(message(b"")) + OK,
    "each byte a frame": HEAD + data(*(bytes((byte,)) for byte in GOOD)) + OK,
    "empty frames between": HEAD + data(b"", GOOD[:3], b"", GOOD[3:], b"") + OK,
    "padded": framed(HEADERS, END_HEADERS | PADDED, 1, padded(BLOCK))
    + framed(DATA, PADDED, 1, padded(GOOD))
    + PADDING
    + OK,
    "with priority": framed(HEADERS, END_HEADERS | PRIORITISED, 1, WEIGHT + BLOCK)
    + framed(PRIORITY, 0, 1, WEIGHT)
    + REST,
    "padded with priority": framed(HEADERS, END_HEADERS | PADDED | PRIORITISED, 1, padded(WEIGHT + BLOCK))
    + REST,
    "headers in three": in_pieces(1, GOOD_HEAD, 3) + REST,
    "trailers in three": HEAD + data(GOOD) + LONG_TRAILERS,
    "interim answers": head(1, {":status": "100"}) + head(1, {":status": "103", "link": "x"}) + HEAD + REST,
    "a new size of the table": framed(HEADERS, END_HEADERS, 1, b"\x20" + BLOCK) + REST,
    "huffman and static": framed(HEADERS, END_HEADERS, 1, COMPRESSED) + REST,
    "frames of unknown types": framed(UNKNOWN_TYPE, 0xFF, 0, b"?")
    + HEAD
    + framed(UNKNOWN_TYPE, 0, 1, bytes(100))
    + REST,
    "unknown flags": framed(HEADERS, END_HEADERS | 0x52, 1, BLOCK) + framed(DATA, 0x56, 1, GOOD) + OK,
    "reserved bits": framed(HEADERS, END_HEADERS, 1 << 31 | 1, BLOCK) + REST,
    "credit meanwhile": HEAD + CREDIT[0] + data(GOOD) + CREDIT[1] + OK,
    "trailers with more": HEAD + data(GOOD) + trailers(1, grpc_message="fine", x_bin="AAEC"),
    "status with zeros": HEAD + data(GOOD) + trailers(1, "00"),
}


def asked(listener: Listener, users: Callers) -> Peer:
    """A connection with one call whole on stream 1."""
    peer = listener.accept().greet()
    peer.whole(1)
    return peer


@pytest.mark.parametrize("name", ANSWERS)
def test_a_good_answer_in_any_form(listener: Listener, name: str) -> None:
    with callers(listener.address) as users:
        for cut in (len(ANSWERS[name]), 1):
            call = users.call()
            peer = asked(listener, users)
            for at in range(0, len(ANSWERS[name]), cut):
                peer.raw(ANSWERS[name][at : at + cut])
                peer.quiet(0.0002) if cut == 1 else None
            peer.streams[1].answered = True
            assert ended(call) == (b"" if name == "empty" else b"good")
            call = users.call()
            peer.serve(3)
            assert ended(call) == b"good"
            peer.leave(3)
            peer.hung_up()


def test_several_answers_in_one_segment(listener: Listener) -> None:
    with callers(listener.address, 4) as users:
        calls = [users.call() for _ in range(4)]
        peer = listener.accept().greet()
        for stream in (1, 3, 5, 7):
            peer.whole(stream)
        peer.raw(b"".join(answered(stream, bytes((stream,))) for stream in (7, 1, 5, 3)))
        assert [ended(call) for call in calls] == [b"\1", b"\3", b"\5", b"\7"]


def test_answers_whose_frames_alternate(listener: Listener) -> None:
    with callers(listener.address, 2) as users:
        calls = [users.call() for _ in range(2)]
        peer = listener.accept().greet()
        for stream in (1, 3):
            peer.whole(stream)
        bodies = {1: message(b"a" * 10_000), 3: message(b"b" * 20_000)}
        peer.raw(head(3), head(1))
        for at in range(0, 20_005, 700):
            peer.raw(data(bodies[1][at : at + 700], stream=1), data(bodies[3][at : at + 700], stream=3))
        peer.raw(trailers(1), trailers(3))
        assert [ended(call) for call in calls] == [b"a" * 10_000, b"b" * 20_000]


def said(text: str) -> dict[str, str]:
    """gRPC's message, as it is on the wire."""
    return {"grpc-message": text}


BAD, OURS = "rejected", "server-error"
"""Whose fault it is by an answer: the request's, or the server's."""
FIELD = block({"x": "y"})
HTML = {":status": "404", "content-type": "text/html"}
STATUSES = {
    "percent-encoded": (refused(1, "3", said("h%C3%A4tte %25%0A")), BAD, "INVALID_ARGUMENT", "hätte %"),
    "signs without code": (refused(1, "3", said("100% %zz %C3%28")), BAD, "INVALID_ARGUMENT", "100% %zz"),
    "raw bytes": (refused(1, "13", said("\udcff\udcfe")), OURS, "INTERNAL", ""),
    "no message": (refused(1, "8", {}), BAD, "RESOURCE_EXHAUSTED", ""),
    "unavailable": (refused(1, "14", said("Exceeds maximum queue size")), OURS, "UNAVAILABLE", "queue"),
    "deadline": (refused(1, "4", {}), "timeout", "", ""),
    "after a message": (head(1) + data(GOOD) + refused(1, "13", said("no")), OURS, "INTERNAL", "no"),
    "unknown number": (refused(1, "77", {}), OURS, "UNKNOWN", "77"),
    "not a number": (refused(1, "ok", {}), OURS, "UNKNOWN", ""),
    "negative": (refused(1, "-1", {}), OURS, "UNKNOWN", ""),
    "endless": (refused(1, "9" * 5_000, {}), OURS, "UNKNOWN", ""),
    "http 200": (head(1) + data(GOOD) + framed(HEADERS, LAST, 1, FIELD), OURS, "UNKNOWN", ""),
    "http 200 alone": (head(1, GOOD_HEAD, LAST), OURS, "UNKNOWN", ""),
    "http 200, end in data": (head(1) + framed(DATA, END_STREAM, 1, GOOD), OURS, "UNKNOWN", ""),
    "http 404": (head(1, HTML, LAST), BAD, "UNIMPLEMENTED", "404"),
    "http 401": (head(1, {":status": "401"}, LAST), BAD, "UNAUTHENTICATED", "401"),
    "http 413": (head(1, {":status": "413"}, LAST), OURS, "UNKNOWN", "413"),
    "http 503": (head(1, {":status": "503"}) + framed(DATA, 1, 1, b"<p>"), OURS, "UNAVAILABLE", "503"),
    "grpc status wins": (head(1, {":status": "503", "grpc-status": "3"}, LAST), BAD, "INVALID_ARGUMENT", ""),
    "no status at all": (head(1, {"x": "y"}, LAST), OURS, "UNKNOWN", ""),
    "interim alone": (head(1, {":status": "103"}, LAST), OURS, "UNKNOWN", ""),
}
MALFORMED = {
    "two messages": head(1) + data(GOOD + GOOD) + OK,
    "no message": head(1) + OK,
    "a cut message": head(1) + data(GOOD[:-1]) + OK,
    "a cut prefix": head(1) + data(GOOD[:4]) + OK,
    "more than its length": head(1) + data(GOOD + b"!") + OK,
    "compressed": head(1) + data(message(b"good", 1)) + OK,
    "flag 7": head(1) + data(message(b"good", 7)) + OK,
    "larger than the limit": head(1) + data(*([bytes(16_384)] * 80)),
    "headers in the middle": head(1) + data(GOOD[:5]) + head(1),
    "data before headers": data(GOOD),
}


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_is_an_error_of_its_call_alone(listener: Listener, name: str) -> None:
    answer, kind, code, text = STATUSES[name]
    with callers(listener.address, 2) as users:
        calls = [users.call() for _ in range(2)]
        peer = asked(listener, users)
        peer.whole(3)
        peer.end(1, answer)
        assert kinds(calls[0]) == [kind]
        error = ended(calls[0])
        assert isinstance(error, RequestError)
        assert error.code == code
        assert text in error.detail
        peer.answer(3)
        assert ended(calls[1]) == b"good"


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_a_bad_reply_of_its_call_alone(listener: Listener, name: str) -> None:
    with callers(listener.address, 2) as users:
        calls = [users.call() for _ in range(2)]
        peer = asked(listener, users)
        peer.whole(3)
        peer.end(1, MALFORMED[name])
        assert kinds(calls[0]) == ["bad-reply"]
        peer.answer(3)
        assert ended(calls[1]) == b"good"
        peer.quiet()


def test_retry_pushback_is_told(listener: Listener) -> None:
    with callers(listener.address) as users:
        call = users.call()
        asked(listener, users).end(1, refused(1, "14", {"grpc-retry-pushback-ms": "2500"}))
        error = ended(call)
        assert isinstance(error, RequestError)
        assert error.retry_after_s == 3
