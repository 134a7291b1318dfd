"""Channels by their names, and what the kernel of a real server sees of each kind over gRPC."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import gevent
import psutil
import pytest

from tests.processes import eventually
from tests.stand_ins import stand_in
from tests.users.ways import IMAGES, codec_at, preset_of
from users.codecs.base import Codec
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.errors import RequestError
from users.transport.base import Transport
from users.transport.connections import GIVE, Channels, parse
from users.transport.grpc import GrpcTransport
from users.transport.grpc_library import GrpcLibrary, size_thread_pool
from users.transport.http import HttpTransport
from users.transport.transports import TRANSPORTS, client

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
KINDS = ("per-user", "shared", "pool:4", "same-args")
BOTH = pytest.mark.parametrize("made_by", [GrpcTransport, GrpcLibrary])
"""Our own gRPC, and grpcio."""
STARTING = """
import collections, subprocess
import gevent, grpc
from users.transport.grpc_library import patch_grpc

def call_nobody():
    with grpc.insecure_channel("127.0.0.1:1") as channel:
        call = channel.unary_unary("/no/where")
        while True:
            try:
                call(b"", timeout=0.2)
            except grpc.RpcError:
                gevent.sleep(0.005)

patch_grpc()
calling = [gevent.spawn(call_nobody) for _ in range(4)]
gevent.sleep(0.2)
print(dict(collections.Counter(subprocess.run(["true"]).returncode for _ in range(80))))
gevent.killall(calling)
"""


@pytest.mark.parametrize(
    ("text", "channels"),
    [
        ("same-args", Channels("same-args")),
        ("shared", Channels("shared", 1)),
        ("pool:64", Channels("pool", 64)),
    ],
)
def test_a_name_and_back(text: str, channels: Channels) -> None:
    assert parse(text) == channels
    assert str(channels) == text


@pytest.mark.parametrize(
    "text",
    ["", "pool", "pool:", "pool:0", "pool:-1", "pool:04", "pool: 4", "pool:٤", "Shared", "shared\n", "4"],
)
def test_other_names_are_told_what_to_give(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value) == GIVE
    for made_by in (GrpcTransport, GrpcLibrary):
        with pytest.raises(ValueError, match="give per-user, per-request, shared, same-args or pool:N"):
            made_by(codec_at(V2Grpc), 30, text)


@pytest.mark.parametrize(
    ("form", "by_library", "made_by"),
    [
        *((Embed, by, HttpTransport) for by in (False, True)),
        (V2Grpc, False, GrpcTransport),
        (V2Grpc, True, GrpcLibrary),
    ],
)
def test_who_carries_requests(form: type[Codec], by_library: bool, made_by: type[Transport]) -> None:
    made = client(codec_at(form), 30, "shared", by_library, "fair")
    assert (type(made), made.by_library, made.scheduling) == (made_by, by_library, "fair")
    assert (str(made.channels), made.timeout_s) == ("shared", 30)


@pytest.mark.parametrize(
    ("channels", "expected", "by_grpcio"),
    [
        ("per-user", [0, 1, 3, 16], [0, 1, 3, 16]),
        ("shared", [0, 1, 1, 1], [0, 1, 1, 1]),
        ("pool:4", [0, 1, 3, 4], [0, 1, 3, 4]),
        ("same-args", [0, 1, 3, 16], [0, 1, 1, 1]),
    ],
)
def test_how_many_connections_there_are(channels: str, expected: list[int], by_grpcio: list[int]) -> None:
    for way, transport in TRANSPORTS.items():
        found = [transport.connections(users, channels) for users in (0, 1, 3, 16)]
        assert found == (by_grpcio if way == ("grpc", True) else expected)


@pytest.fixture(scope="module")
def codec() -> Iterator[V2Grpc]:
    with stand_in("fake_triton.py", "--delay-ms", "5") as address:
        yield V2Grpc(preset_of(V2Grpc, address))


def served(codec: V2Grpc, port: int = 0) -> int:
    """The connections that the serving process, a child of this one, has on its port, or on another."""
    held = [c for child in psutil.Process().children() for c in child.net_connections("tcp")]
    return sum(
        c.laddr.port == (port or codec.endpoint.port) and c.status == psutil.CONN_ESTABLISHED for c in held
    )


def send_all(*users: Transport) -> None:
    """A request of each, all at once; each must succeed."""
    prepared = users[0].codec.prepare(IMAGES, (0,))
    asking = [gevent.spawn(user.send, prepared) for user in users]
    assert len(gevent.joinall(asking, timeout=60, raise_error=True)) == len(users)


@BOTH
def test_no_proxy_is_asked(made_by: type[Transport], codec: V2Grpc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "http_proxy", "HTTP_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with made_by(codec, 30) as user:
        send_all(user)


def test_each_call_of_grpcio_may_hold_a_thread() -> None:
    """More than gevent's pool has by itself, whatever it has now."""
    pool = gevent.get_hub().threadpool
    for users in (pool.maxsize, 3):
        size_thread_pool(users)
        assert pool.maxsize >= users + 8


def test_an_answer_by_grpcio_beyond_what_its_request_allows_is_none(codec: V2Grpc) -> None:
    user = GrpcLibrary(codec, 30)
    user._call = lambda *_, **__: bytes(2_000_000)
    with pytest.raises(RequestError, match="bad-reply: an answer of 2,000,000 bytes"):
        user.send(codec.prepare(IMAGES, (0,)))


@BOTH
@pytest.mark.parametrize("channels", [*KINDS, "pool:32"])
def test_what_a_server_sees_of_sixteen_users(made_by: type[Transport], channels: str, codec: V2Grpc) -> None:
    expected = made_by.connections(16, channels)
    with ExitStack() as stack:
        users = [stack.enter_context(made_by(codec, 30, channels)) for _ in range(16)]
        assert served(codec) == 0, "nobody has sent yet"
        for _ in range(3):
            send_all(*users)
            assert served(codec) == expected
    assert eventually(lambda: served(codec) == 0)


@BOTH
@pytest.mark.parametrize("channels", KINDS)
def test_users_who_have_not_sent_do_not_count(made_by: type[Transport], channels: str, codec: V2Grpc) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(made_by(codec, 30, channels)) for _ in range(16)]
        # Every fourth: had the users places from the start, these would be on one channel of four.
        send_all(*users[::4])
        assert served(codec) == made_by.connections(4, channels)
    assert eventually(lambda: served(codec) == 0)


def channels_in_use(users: Sequence[Transport]) -> list[int]:
    """How many users each channel has, the fewest first."""
    return sorted(Counter(user._channel.thing for user in users).values())  # type: ignore[attr-defined]


@BOTH
def test_a_pool_stays_even_when_users_leave_and_come(made_by: type[Transport], codec: V2Grpc) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(made_by(codec, 30, "pool:4")) for _ in range(16)]
        for user in users:
            send_all(user)
        for user in users[::4]:
            user.close()
        assert served(codec) == 4, "a channel that all have left stays for those to come"
        users[::4] = [stack.enter_context(made_by(codec, 30, "pool:4")) for _ in range(4)]
        send_all(*users)
        assert served(codec) == 4
        assert channels_in_use(users) == [4, 4, 4, 4]
    assert eventually(lambda: served(codec) == 0)


def test_kinds_side_by_side_share_nothing(codec: V2Grpc) -> None:
    ways = [(made_by, kind) for made_by in (GrpcTransport, GrpcLibrary) for kind in KINDS]
    named = V2Grpc(replace(codec.endpoint, authority="clip.example"))
    with ExitStack() as stack:
        users: list[Transport] = [stack.enter_context(by(codec, 30, kind)) for by, kind in ways * 2]
        users += [stack.enter_context(by(named, 30, "shared")) for by in (GrpcTransport, GrpcLibrary)]
        send_all(*users)
        assert served(codec) == (2 + 1 + 2 + 2) + (2 + 1 + 2 + 1) + 2, "one of each for another :authority"
    assert eventually(lambda: served(codec) == 0)


@BOTH
def test_closed_twice_or_unused_a_place_is_given_up_once(made_by: type[Transport], codec: V2Grpc) -> None:
    before = GrpcLibrary.users
    first, second, unused = (made_by(codec, 30, "shared") for _ in range(3))
    for user in (first, second, unused):
        user.open()
    send_all(first, second)
    for _ in range(2):
        first.close()
        unused.close()
    send_all(second)
    assert served(codec) == 1
    second.close()
    assert GrpcLibrary.users == before
    assert eventually(lambda: served(codec) == 0)


RUN = """
import os
from users import Endpoint, InferenceUser
from tests.pictures import image_set
from users.backends.registry import codec_of
from users.load.assignment import Assignment, prepare_pool

class OverGrpc(InferenceUser):
    endpoint = Endpoint("g", "onnx", "grpc", "fp32", os.environ["OVER_GRPC"], "m")

class OverHttp(InferenceUser):
    endpoint = Endpoint("h", "pytorch", "http", "jpeg", os.environ["OVER_HTTP"])

def set_stage(user):
    codec = codec_of(user.endpoint)
    pool = prepare_pool(codec, image_set(1), 1)
    user.assignment = Assignment(codec, pool, 30, channels=os.environ["CHANNELS"])
    user.assignment.enter("measure")

set_stage(OverGrpc)
set_stage(OverHttp)
"""
AMOUNTS = ["--users=16", "--spawn-rate=16", "--run-time=2s", "--stop-timeout=0", "--only-summary"]


@pytest.fixture(scope="module")
def http_address() -> Iterator[str]:
    with stand_in("fake_service.py", "--delay-ms", "100") as address:
        yield address


@pytest.mark.parametrize("channels", KINDS)
def test_a_run_ends(channels: str, codec: V2Grpc, http_address: str, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(RUN)
    given = {"OVER_GRPC": codec.endpoint.address, "OVER_HTTP": http_address, "CHANNELS": channels}
    # Most of the users who share are stopped while they wait for a connection.
    run = subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(tmp_path / "run.py"), "--headless", *AMOUNTS],
        env={**os.environ, **given, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = run.stdout + run.stderr
    assert "Traceback" not in said, said
    assert said.count("RequestError(") == said.count("RequestError('other: abandoned at a stop')"), said
    table = said.partition("percentiles")[0].splitlines()
    counts = {line.split()[1]: int(line.split()[2]) for line in table if "/b1 " in line}
    assert counts.keys() == {"g/b1", "h/b1"}, said
    assert all(count > 8 for count in counts.values()), said
    assert served(codec) == served(codec, int(http_address.rpartition(":")[2])) == 0


@pytest.mark.parametrize("room", ["users import Endpoint", "swarm import StudyShape"])
def test_processes_can_be_started_beside_grpc(room: str) -> None:
    """gRPC's own care for forks aborts one process in ten that is started while calls are under way."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {room}\n{STARTING}"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("GRPC_")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "{0: 80}\n", done.stderr
