"""The null servers, and the floor's HTTP/2, against each other and against the clients of the real ones."""

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import grpc
import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient, service_pb2

from benchmarks.generating import http2, null_http2
from benchmarks.generating.answers import embedding, service_answer, triton_answer
from benchmarks.generating.arm import read_told
from benchmarks.generating.children import run
from benchmarks.generating.floor import Blocking, Epoll, Posts, Session
from benchmarks.generating.http2 import Calls, call_headers, frame, frame_head, literal, message_of
from benchmarks.generating.kinds import JPEG_MODEL, KINDS, MODEL, PICTURES, http_head
from benchmarks.generating.null_grpc import serve
from benchmarks.generating.null_http import Server, content_length, infer_answer
from tests.processes import free_port

TENSOR = bytes(602_112)


def started(server: Callable[[socket.socket], Server | null_http2.Server]) -> int:
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=server(listening).serve, daemon=True).start()
    return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def http_port() -> int:
    return started(Server)


@pytest.fixture(scope="module")
def http2_port() -> int:
    return started(null_http2.Server)


@pytest.fixture(scope="module")
def grpc_port() -> Iterator[int]:
    port = free_port()
    server = serve(port)
    yield port
    server.stop(0).wait()


def test_frames_are_those_of_the_standard() -> None:
    assert frame_head(http2.DATA, http2.END_STREAM, 7, 602_117).hex() == "093005" + "00" + "01" + "00000007"
    assert frame(http2.SETTINGS, 0, 0, b"").hex() == "000000" + "04" + "00" + "00000000"
    assert literal("te", "trailers") == b"\x00\x02te\x08trailers"
    assert call_headers("h:1").startswith(b"\x83\x86\x00\x05:path")
    assert message_of(b"abc") == b"\x00\x00\x00\x00\x03abc"


def data_bytes(buffers: http2.Buffers) -> int:
    """How much of the message is in buffers: all slices of it, which alone are memory views."""
    return sum(len(buffer) for buffer in buffers if isinstance(buffer, memoryview))


def settings(*pairs: tuple[int, int]) -> bytes:
    payload = b"".join(name.to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in pairs)
    return frame(http2.SETTINGS, 0, 0, payload)


def window(stream: int, by: int) -> bytes:
    return frame(http2.WINDOW_UPDATE, 0, stream, by.to_bytes(4, "big"))


def test_data_keeps_to_both_windows() -> None:
    calls = Calls([bytes(200_000)], "h:1")
    assert data_bytes(calls.begin()) == 65_535
    assert data_bytes(calls.feed(window(0, 50_000)) or []) == 0
    assert data_bytes(calls.feed(window(1, 30_000)) or []) == 30_000
    assert data_bytes(calls.feed(settings((4, 65_535 + 5_000))) or []) == 5_000
    assert data_bytes(calls.feed(window(1, 500_000) + window(0, 500_000)) or []) == 99_465


def test_data_keeps_to_the_largest_frame() -> None:
    calls = Calls([bytes(60_000)], "h:1")
    assert max(map(len, calls.begin()[2:])) == 16_384
    larger = Calls([bytes(60_000)], "h:1")
    larger.feed(settings((5, 20_000)))
    assert max(map(len, larger.begin())) == 20_000


def test_settings_and_pings_are_answered_even_where_the_answer_ends_with_them() -> None:
    calls = Calls([b"x"], "h:1")
    calls.begin()
    assert calls.feed(settings()) == [frame(http2.SETTINGS, http2.ACK, 0, b"")]
    end = frame(http2.HEADERS, http2.END_STREAM, 1, b"")
    data = frame(http2.DATA, 0, 1, b"answer")
    assert calls.feed(data + frame(http2.PING, 0, 0, b"12345678") + end) is None
    assert calls.begin()[0] == frame(http2.PING, http2.ACK, 0, b"12345678")
    assert calls.failures == 0


def test_an_answer_without_data_is_a_failure() -> None:
    calls = Calls([b"x"], "h:1")
    calls.begin()
    assert calls.feed(frame(http2.HEADERS, http2.END_STREAM, 1, b"")) is None
    assert calls.failures == 1


def test_the_floor_speaks_with_a_real_grpc_server(grpc_port: int) -> None:
    sessions = [Calls([message_of(TENSOR)], f"127.0.0.1:{grpc_port}") for _ in range(2)]
    before = served(grpc_port)
    ended = spun(sessions, grpc_port)
    assert ended <= served(grpc_port) - before <= ended + 1
    assert sum(session.failures for session in sessions) == 0


def spun(sessions: Sequence[Session], port: int) -> int:
    """How many requests ended, at least one by each of the floor's two ways of sending."""
    with (
        closing(Blocking(sessions[0], ("127.0.0.1", port))) as one,
        closing(Epoll(sessions[1:], ("127.0.0.1", port))) as many,
    ):
        took = one.spin(0.05)
        by_epoll = many.spin(0.05)
        while not by_epoll:
            by_epoll = many.spin(0.05)
    return len(took) + len(by_epoll)


def served(port: int) -> int:
    """What the null server of gRPC has counted."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelStatistics")
        told = service_pb2.ModelStatisticsResponse.FromString(call(b""))
    return int(told.model_stats[0].inference_count)


def test_the_floor_speaks_with_the_null_server_of_http2(http2_port: int) -> None:
    messages = [message_of(TENSOR), message_of(b"x")]
    sessions = [Calls(messages, f"127.0.0.1:{http2_port}", first) for first in range(2)]
    assert spun(sessions, http2_port) >= 2
    assert sum(session.failures for session in sessions) == 0


def test_a_stub_gets_its_answers_from_the_null_server_of_http2(http2_port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{http2_port}") as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        small, large = call(b"x"), call(TENSOR * 3)
        under_way = [call.future(TENSOR) for _ in range(8)]
        assert [one.result() for one in under_way] == [small] * 8
    shapes = [list(service_pb2.ModelInferResponse.FromString(one).outputs[0].shape) for one in (small, large)]
    assert shapes == [[1, 512], [3, 512]]


def test_the_grpc_answer_holds_as_many_embeddings_as_pictures_came(grpc_port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        answer = service_pb2.ModelInferResponse.FromString(call(TENSOR * 3))
    assert list(answer.outputs[0].shape) == [3, 512]
    rows = np.frombuffer(answer.raw_output_contents[0], np.float32).reshape(3, 512)
    assert np.array_equal(rows[2], embedding())


def test_the_null_server_of_grpc_tells_of_both_models(grpc_port: int) -> None:
    with closing(InferenceServerClient(f"127.0.0.1:{grpc_port}")) as client:
        kinds = {model: client.get_model_metadata(model).inputs[0].datatype for model in (MODEL, JPEG_MODEL)}
        assert kinds == {"null": "FP32", "null_jpeg": "BYTES"}
        assert list(client.get_model_config(JPEG_MODEL).config.input[0].dims) == [1]
        assert client.get_inference_statistics(JPEG_MODEL).model_stats[0].name == "null_jpeg"


@pytest.mark.parametrize("arm", [("plain_grpc",), ("plain_grpc", "--gevent"), ("stock",)])
def test_arms_of_grpc_send_files(arm: tuple[str, ...], grpc_port: int, tmp_path: Path) -> None:
    write_jpegs(tmp_path)
    before = served(grpc_port)
    place = ("jpeg-grpc", "2", str(grpc_port), str(tmp_path))
    times = ("--seconds", "0.2", "--warm-up", "0.1", "--listen", "0.1")
    module, *extra = arm
    command = [sys.executable, "-m", f"benchmarks.generating.{module}", *place, *times, *extra]
    told = read_told(run(command, min(os.sched_getaffinity(0)), 60).text)
    assert 0 < told.requests <= served(grpc_port) - before
    assert (told.failures, told.p50_ms is not None) == (0, True)


def write_jpegs(folder: Path) -> None:
    """What `benchmarks.generating.bodies` leaves of a kind, with two small files."""
    (folder / "jpeg-grpc").mkdir()
    (folder / "jpeg-grpc" / "headers.json").write_text("{}")
    (folder / PICTURES).mkdir()
    for number in range(2):
        (folder / "jpeg-grpc" / f"{number:03d}.body").write_bytes(bytes(10_000))
        (folder / PICTURES / f"{number:03d}.jpg").write_bytes(bytes(10_000))


def test_the_floor_speaks_with_the_null_server_of_http(http_port: int) -> None:
    kind = KINDS["jpeg-http"]
    head = http_head(kind, {"Content-Type": "application/json"}, "h", 13_000)
    sessions = [Posts([[head, bytes(13_000)]]) for _ in range(2)]
    assert spun(sessions, http_port) >= 2
    assert sum(session.failures for session in sessions) == 0


def test_a_head_and_a_body_may_come_in_pieces(http_port: int) -> None:
    with socket.create_connection(("127.0.0.1", http_port)) as sock:
        for piece in (b"POST /v2/models/null/infer HTTP/1.1\r\nContent-", b"Length: 6\r\n\r\nabc", b"def"):
            sock.sendall(piece)
        assert sock.recv(65_536) == triton_answer(1)


def test_the_length_of_the_body_is_that_of_its_own_header() -> None:
    triton = b"POST / HTTP/1.1\r\nInference-Header-Content-Length: 9\r\n"
    assert content_length(b"POST / HTTP/1.1\r\nContent-Length: 12") == 12
    assert content_length(triton + b"content-length: 12\r\nA: 1") == 12
    assert content_length(b"GET / HTTP/1.1\r\nHost: h") == 0


def test_answers_fit_what_was_sent() -> None:
    assert infer_answer("/embed", 13_000) == service_answer(1)
    assert infer_answer("/v2/models/null/infer", 602_292) == triton_answer(1)
    assert infer_answer("/v2/models/null/infer", 19_267_761) == triton_answer(32)
    assert np.linalg.norm(embedding()) == pytest.approx(1, abs=1e-6)
