"""gRPC's test service on h2, which ends a connection at any breach of HTTP/2 and says which it was.

python -m benchmarks.interop_servers.programs.strict PORT [--awkward]

Its output has a line `connected` for each connection that is used, and one that begins with `breach:` for
whatever a client does wrong. With `--awkward` it does all that HTTP/2 allows and few servers do: tiny windows
that change at every call and so become negative, three streams at once, pings, padding, frames and settings
of unknown kinds, an informational answer before the right one, header blocks of several frames.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from typing import Any
from urllib.parse import quote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from benchmarks.interop_servers.programs.rules import INITIAL, TRAILING, Answer, answer_to, echoed

PREFIX = 5
WINDOWS = (4096, 1000, 70_000)
"""Of new and open streams of an awkward server, in turn."""
STREAMS, PADDING = 3, 100
UNKNOWN_FRAME = bytes.fromhex("000003 5a ff 00000000 616263")
UNKNOWN_SETTING = 0xF00D
LARGE_FIELD, SELDOM = ("x-large", "x" * 20_000), 10
"""More than a frame of 16 KiB holds, compressed too: in so many answers once, as it takes h2 long."""
RIGHT = {
    ":method": re.compile("POST"),
    ":scheme": re.compile("http"),
    ":path": re.compile(r"/[\w.]+/\w+"),
    ":authority": re.compile(r"[\w.-]+(:\d+)?"),
    "te": re.compile("trailers"),
    "content-type": re.compile(r"application/grpc(\+proto)?"),
}
TIMEOUT = re.compile(r"\d{1,8}[HMSmun]")


def breaches(headers: list[tuple[str, str]]) -> list[str]:
    """What a gRPC request's headers have wrong."""
    found = dict(headers)
    wrong = [
        f"{name} is {found.get(name)!r}"
        for name, right in RIGHT.items()
        if not right.fullmatch(found.get(name, ""))
    ]
    if not TIMEOUT.fullmatch(found.get("grpc-timeout", "1S")):
        wrong.append(f"grpc-timeout is {found['grpc-timeout']!r}")
    if len([name for name, _ in headers if name in RIGHT]) != len(RIGHT):
        wrong.append("a field of the protocol's is there twice")
    return wrong


class Asked:
    """A request as it comes, and its answer as it goes."""

    def __init__(self, headers: list[tuple[str, str]]) -> None:
        self.headers = headers
        self.body = bytearray()
        self.left = memoryview(b"")
        self.trailers: list[tuple[str, str]] | None = None


class Strict(asyncio.Protocol):
    """One connection."""

    def __init__(self, awkward: bool) -> None:
        self.awkward = awkward
        self.http2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.asked: dict[int, Asked] = {}
        self.calls, self.greeted = 0, False
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.awkward:
            self.http2.update_settings(
                {
                    SettingCodes.INITIAL_WINDOW_SIZE: WINDOWS[0],
                    SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
                    UNKNOWN_SETTING: 1,
                }
            )
        self.http2.initiate_connection()
        self.flush()

    def data_received(self, data: bytes) -> None:
        if not self.greeted:
            self.greeted = True
            print("connected", flush=True)
        try:
            for event in self.http2.receive_data(data):
                self.take(event)
        except ProtocolError as error:
            told(f"{type(error).__name__}: {error}")
            self.flush()
            self.transport.close()
            return
        for stream in list(self.asked):
            self.pump(stream)
        self.flush()

    def flush(self) -> None:
        """Hand over what h2 has to send."""
        if data := self.http2.data_to_send():
            self.transport.write(data)

    def take(self, event: Event) -> None:
        """What the client did."""
        if isinstance(event, RequestReceived):
            headers = [(str(name), str(value)) for name, value in event.headers]
            for wrong in breaches(headers):
                told(wrong)
            self.asked[event.stream_id] = Asked(headers)
            self.calls += 1
            if self.awkward:
                self.disturb()
        elif isinstance(event, DataReceived):
            if asked := self.asked.get(event.stream_id):
                asked.body += event.data
            self.credit(event)
        elif isinstance(event, StreamEnded):
            self.answer(event.stream_id)
        elif isinstance(event, StreamReset):
            if event.error_code not in (ErrorCodes.CANCEL, ErrorCodes.NO_ERROR):
                told(f"RST_STREAM with code {event.error_code}")
            self.asked.pop(event.stream_id, None)

    def credit(self, event: DataReceived) -> None:
        """Give back what has come: as h2 does, or at once, since h2 may never do for a window that shrank."""
        size, stream = event.flow_controlled_length or 0, event.stream_id
        if not self.awkward:
            self.http2.acknowledge_received_data(size, stream)
            return
        self.http2.increment_flow_control_window(size)
        if not event.stream_ended:
            self.http2.increment_flow_control_window(size, stream)

    def disturb(self) -> None:
        """Settings change, a ping, a frame of an unknown kind."""
        self.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: WINDOWS[self.calls % len(WINDOWS)]})
        self.http2.ping(self.calls.to_bytes(8, "big"))
        self.flush()
        self.transport.write(UNKNOWN_FRAME)

    def answer(self, stream: int) -> None:
        """Begin the answer, at once or later."""
        if (asked := self.asked.get(stream)) is None:
            return
        size = int.from_bytes(asked.body[1:PREFIX], "big")
        if len(asked.body) != PREFIX + size or asked.body[0]:
            told(f"a body of {len(asked.body)} bytes says {bytes(asked.body[:PREFIX]).hex()}")
        answer = answer_to(dict(asked.headers)[":path"], bytes(asked.body[PREFIX:]))
        if answer.after_s:
            asyncio.get_running_loop().call_later(answer.after_s, self.later, stream, answer)
        else:
            self.begin(stream, answer)

    def later(self, stream: int, answer: Answer) -> None:
        """Where the client still waits."""
        if stream in self.asked:
            self.begin(stream, answer)
            self.pump(stream)
            self.flush()

    def begin(self, stream: int, answer: Answer) -> None:
        """Headers, or trailers alone."""
        asked = self.asked[stream]
        headers = [(":status", "200"), ("content-type", "application/grpc")]
        if self.awkward:
            self.http2.send_headers(stream, [(":status", "103"), ("link", "</x>")])
            if not self.calls % SELDOM:
                headers.append(LARGE_FIELD)
        headers += echoed(INITIAL, asked.headers)
        trailers = [("grpc-status", str(answer.code)), *echoed(TRAILING, asked.headers)]
        if answer.code:
            text = quote(answer.text, safe=" !\"#$&'()*+,/:;<=>?@[]^_`{|}~\\-.")
            self.http2.send_headers(stream, [*headers, *trailers, ("grpc-message", text)], end_stream=True)
            self.asked.pop(stream)
            return
        self.http2.send_headers(stream, headers)
        asked.left = memoryview(b"\0" + len(answer.body).to_bytes(4, "big") + answer.body)
        asked.trailers = trailers

    def pump(self, stream: int) -> None:
        """As much of an answer as the client's windows allow, and its trailers behind it."""
        asked = self.asked[stream]
        if asked.trailers is None:
            return
        # A byte says how much padding there is.
        padding = PADDING if self.awkward else None
        besides = PADDING + 1 if self.awkward else 0
        while asked.left:
            room = (
                min(self.http2.local_flow_control_window(stream), self.http2.max_outbound_frame_size)
                - besides
            )
            if room <= 0:
                return
            self.http2.send_data(stream, bytes(asked.left[:room]), pad_length=padding)
            asked.left = asked.left[room:]
        self.http2.send_headers(stream, asked.trailers, end_stream=True)
        self.asked.pop(stream)


def told(breach: str) -> None:
    """Say what the client did wrong."""
    print(f"breach: {breach}", flush=True)


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--awkward", action="store_true")
    options = parser.parse_args()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Strict(options.awkward), "127.0.0.1", options.port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
