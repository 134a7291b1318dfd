"""Other load generators, where they are found: how each is called, and what is read from what it prints.

A peer's processor time is all that its process used, start-up and warm-up too, over all requests that the
null server counted meanwhile. Its requests/s and its p50 are its own figures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generating.http2 import message_of
from benchmarks.generating.kinds import GRPC_METHOD, KINDS, Kind, body_files, read_bodies

HTTP_KINDS = ("jpeg-http", "fp32-http", "fp32-http-b32")
GRPC_KINDS = ("jpeg-grpc", "fp32-grpc")
PERF_ANALYZER = "perf_analyzer"
ANY_SPREAD_PCT = 999
"""perf_analyzer's windows may differ so much: its figures are compared over repeats, as all others are."""
US, MS, S = 1e-3, 1.0, 1e3


@dataclass(frozen=True)
class Asked:
    """What a peer is to do, and where it may leave files."""

    kind: Kind
    users: int
    port: int
    seconds: float
    bodies: Path

    @property
    def url(self) -> str:
        """Where requests go."""
        return f"http://127.0.0.1:{self.port}{self.kind.path}"

    @property
    def body(self) -> Path:
        """The one body that it sends again and again."""
        return body_files(self.bodies, self.kind.name)[0]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of that body."""
        return read_bodies(self.bodies, self.kind.name).headers


@dataclass(frozen=True)
class Peer:
    """One peer: the kinds that it can send, how it is called, and where its own figures stand.

    `rate` and `p50`: patterns of a number; p50's is followed by its unit, or `unit` has its milliseconds.
    """

    name: str
    kinds: Sequence[str]
    command: Callable[[str, Asked], list[str]]
    rate: str
    p50: str
    unit: float = 0.0
    version: str = ""


def perf_analyzer(program: str, asked: Asked) -> list[str]:
    """NVIDIA's, with a thread and a blocking call for each user; what it sends is random."""
    given = ["--shape", "input:3,224,224"]
    if asked.kind.payload == "jpeg":
        given = ["--shape", "input:1", "--string-length", str(asked.body.stat().st_size)]
    return [
        program, "-m", asked.kind.model, "-u", f"127.0.0.1:{asked.port}", "-i", asked.kind.protocol, "--sync",
        *given, "-b", str(asked.kind.batch), "--concurrency-range", str(asked.users),
        "-p", str(round(asked.seconds * 1e3)), "-s", str(ANY_SPREAD_PCT), "-r", "3",
    ]  # fmt: skip


def wrk(program: str, asked: Asked) -> list[str]:
    """One thread; the body comes from a Lua script."""
    script = asked.bodies / f"{asked.kind.name}.lua"
    headers = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in asked.headers.items())
    script.write_text(
        f'wrk.method = "POST"\nwrk.body = assert(io.open("{asked.body}", "rb")):read("*a")\n{headers}'
    )
    seconds = str(max(2, round(asked.seconds)))
    return [
        program, "-t1", f"-c{asked.users}", f"-d{seconds}s", "-s", str(script), "--latency", asked.url,
    ]  # fmt: skip


def hey(program: str, asked: Asked) -> list[str]:
    """A goroutine for each user, on the one core."""
    content_type = asked.headers["Content-Type"]
    others = [f"{name}: {value}" for name, value in asked.headers.items() if name != "Content-Type"]
    return [
        program, "-z", f"{asked.seconds:g}s", "-c", str(asked.users), "-m", "POST", "-D", str(asked.body),
        "-T", content_type, *(part for header in others for part in ("-H", header)), asked.url,
    ]  # fmt: skip


def h2load(program: str, asked: Asked) -> list[str]:
    """One thread; over HTTP/2 one request at a time on each connection."""
    grpc = asked.kind.protocol == "grpc"
    headers = {"content-type": "application/grpc", "te": "trailers"} if grpc else asked.headers
    body = asked.body
    if grpc:
        body = asked.bodies / "grpc.message"
        body.write_bytes(message_of(asked.body.read_bytes()))
    lines = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    seconds = str(max(2, round(asked.seconds)))
    way = ["-m1"] if grpc else ["--h1"]
    return [
        program, *way, "-t1", f"-c{asked.users}", "-D", seconds, "--warm-up-time=1", "-d", str(body), *lines,
        asked.url,
    ]  # fmt: skip


def ghz(program: str, asked: Asked) -> list[str]:
    """A connection for each user; it learns the call from tritonclient's own descriptors."""
    protoset = asked.bodies / "triton.protoset"
    protoset.write_bytes(descriptors())
    return [
        program, "--insecure", "--protoset", str(protoset), "--call", GRPC_METHOD.lstrip("/"),
        "--binary-file", str(asked.body), "-c", str(asked.users), "--connections", str(asked.users),
        "-z", f"{asked.seconds:g}s", f"127.0.0.1:{asked.port}",
    ]  # fmt: skip


def descriptors() -> bytes:
    """Triton's service as a FileDescriptorSet."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from tritonclient.grpc import model_config_pb2, service_pb2

    made = FileDescriptorSet()
    for module in (model_config_pb2, service_pb2):
        module.DESCRIPTOR.CopyToProto(made.file.add())
    written: bytes = made.SerializeToString()
    return written


PEERS = (
    Peer(
        PERF_ANALYZER, ("jpeg-grpc", "fp32-http", "fp32-grpc", "fp32-http-b32"), perf_analyzer,
        r"Throughput: ([\d.]+) infer/sec", r"p50 latency: ([\d.]+) usec", US, "--version",
    ),
    Peer("wrk", HTTP_KINDS, wrk, r"Requests/sec:\s+([\d.]+)", r"50%\s+([\d.]+)(us|ms|s)", version="-v"),
    Peer("hey", HTTP_KINDS, hey, r"Requests/sec:\s+([\d.]+)", r"50% in ([\d.]+) secs", S),
    # Of its latencies h2load prints the mean, and no percentile.
    Peer("h2load", tuple(KINDS), h2load, r"finished in [\d.]+s, ([\d.]+) req/s", "", version="--version"),
    Peer(
        "ghz", GRPC_KINDS, ghz, r"Requests/sec:\s+([\d.]+)", r"50 % in ([\d.]+) (us|ms|s)",
        version="--version",
    ),
)  # fmt: skip
UNITS = {"us": US, "ms": MS, "s": S}


def found(name: str, given: str | None) -> str | None:
    """The peer's program: the one given, or the one on the PATH."""
    return shutil.which(given or name)


def own_figures(peer: Peer, text: str, batch: int = 1) -> tuple[float | None, float | None]:
    """Its requests/s and its p50 in milliseconds, each None where it printed none.

    perf_analyzer's rate is of inferences: `batch` to a request.

    >>> own_figures(PEERS[1], "    50%    1.90ms\\nRequests/sec:   4805.91")
    (4805.91, 1.9)
    """
    rate = re.search(peer.rate, text)
    p50 = re.search(peer.p50, text) if peer.p50 else None
    p50_ms = float(p50[1]) * (peer.unit or UNITS[p50[2]]) if p50 else None
    requests = 1 / batch if peer.name == PERF_ANALYZER else 1.0
    return float(rate[1]) * requests if rate else None, p50_ms


def version_of(peer: Peer, program: str) -> str:
    """The first line with a number in what it says of its version, or that it says nothing."""
    if not peer.version:
        return "tells no version"
    try:
        done = subprocess.run(
            [program, peer.version], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "tells no version"
    said = (done.stdout + done.stderr).splitlines()
    lines = [line for line in said if re.search(r"\d", line) and "error" not in line]
    return lines[0].partition(" Copyright")[0].strip() if lines else "tells no version"
