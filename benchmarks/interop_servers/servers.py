"""Others' servers and proxies, each on free ports of 127.0.0.1 and ended with all that it has started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.interop_servers import environments, proxies
from benchmarks.interop_servers.cases import FILE_CASES, PROXY_CASES, TEST_CASES, Case
from benchmarks.interop_servers.environments import PROGRAMS, NotHere, program
from benchmarks.interop_servers.messages import PROTO, TEST_SERVICE
from benchmarks.interop_servers.triton_cases import PROFILE, TRITON_CASES
from benchmarks.strange_servers.running import HOST, running, work_folder
from server.net import choose_ports
from server.spec import ROOT
from tests.processes import is_listening

BREACH, CONNECTED = "breach: ", "connected"
PYTHON = "benchmarks.interop_servers.programs"


@dataclass(frozen=True)
class Running:
    """`host:port`, and what the server has said so far."""

    address: str
    said: Callable[[], str] = str

    def breaches(self) -> list[str]:
        """What it says that the client did wrong."""
        return [line.removeprefix(BREACH) for line in self.said().splitlines() if line.startswith(BREACH)]

    def connections(self) -> int:
        """How many it says were used."""
        return self.said().splitlines().count(CONNECTED)


Command = Callable[[int, Path], list[str]]
"""By a free port and a folder for what the server writes. Raises NotHere."""
Start = Callable[[], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Server:
    """A column: what it is asked, and how it is started. `start` raises NotHere and SetUpError."""

    name: str
    cases: Mapping[str, Case]
    start: Start


@contextmanager
def started(name: str, command: Command) -> Iterator[Running]:
    """A server on one port, once it listens."""
    with work_folder() as folder:
        (port,) = choose_ports(HOST, [0])
        words = command(port, folder)
        with running(name, words, os.environ, folder, lambda: is_listening(port)) as child:
            yield Running(f"{HOST}:{port}", child.said)


def python(name: str, *options: str) -> Command:
    """A program of ours, in this environment."""
    return lambda port, _: [sys.executable, "-m", f"{PYTHON}.{name}", str(port), *options]


def grpc_js(port: int, folder: Path) -> list[str]:
    """A program of Node's, beside its packages."""
    node, packages = program("node", "nodejs"), environments.grpc_js()
    script = packages / "grpc_js.js"
    script.write_bytes((PROGRAMS / script.name).read_bytes())
    return [node, str(script), str(port), str(PROTO)]


def grpc_go(port: int, folder: Path) -> list[str]:
    """A program of Go's."""
    return [environments.grpc_go(), str(port)]


def hyper(port: int, folder: Path) -> list[str]:
    """A program of Rust's."""
    return [environments.hyper(), str(port)]


def nghttpd(port: int, folder: Path) -> list[str]:
    """It gives out one file, under the path of a method."""
    served = folder / "files" / TEST_SERVICE / "EmptyCall"
    served.parent.mkdir(parents=True)
    served.write_text("a file\n")
    return [program("nghttpd", "nghttp2-server"), "--no-tls", f"--htdocs={folder / 'files'}", str(port)]


Behind = Callable[[int, int, int, Path], list[str]]
"""A proxy's command, by its port, its server's, and one where nobody listens."""


def nginx(port: int, upstream: int, down: int, folder: Path) -> list[str]:
    """nginx with grpc_pass."""
    config = folder / "nginx.conf"
    config.write_text(proxies.NGINX.format(folder=folder, port=port, upstream=upstream, down=down))
    name = program("nginx", "nginx-light")
    return [name, "-p", str(folder), "-c", str(config), "-e", str(folder / "nginx.log")]


def haproxy(port: int, upstream: int, down: int, folder: Path) -> list[str]:
    """HAProxy with HTTP/2 on both sides."""
    config = folder / "haproxy.cfg"
    config.write_text(proxies.HAPROXY.format(port=port, upstream=upstream, down=down))
    return [program("haproxy", "haproxy"), "-db", "-f", str(config)]


def envoy(port: int, upstream: int, down: int, folder: Path) -> list[str]:
    """Envoy with HTTP/2 on both sides."""
    config = folder / "envoy.json"
    config.write_text(proxies.envoy(port, upstream, down))
    return [
        environments.envoy(),
        "-c",
        str(config),
        "--concurrency",
        "1",
        "--use-dynamic-base-id",
        "-l",
        "warn",
    ]


def nghttpx(port: int, upstream: int, down: int, folder: Path) -> list[str]:
    """nghttpx with HTTP/2 on both sides."""
    return [program("nghttpx", "nghttp2-proxy"), *proxies.nghttpx(port, upstream, down), "--conf=/dev/null"]


@contextmanager
def proxied(name: str, behind: Behind) -> Iterator[Running]:
    """A proxy before grpcio's server of asyncio."""
    with started("grpcio-aio", python("grpcio_aio")) as server:
        upstream = int(server.address.rpartition(":")[2])
        (down,) = choose_ports(HOST, [0])
        with started(name, lambda port, folder: behind(port, upstream, down, folder)) as front:
            yield front


@contextmanager
def tritonserver() -> Iterator[Running]:
    """The real tritonserver, whose model sleeps."""
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes", "--emulate", PROFILE]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        events = (json.loads(line) for line in child.stdout)
        ready: dict[str, Any] = next((event for event in events if event["event"] in ("ready", "error")), {})
        if "endpoints" not in ready:
            raise NotHere(ready.get("text", "the server ended at once"))
        yield Running(ready["endpoints"]["emulated"]["grpc"])
        # Leaving the block closes its standard input, at which it stops.


def of_service(name: str, command: Command) -> Server:
    """A server of the test service."""
    return Server(name, TEST_CASES, partial(started, name, command))


def proxy(name: str, behind: Behind) -> Server:
    """A proxy before one."""
    return Server(name, PROXY_CASES, partial(proxied, name, behind))


SERVERS = (
    of_service("grpcio", python("grpcio_sync")),
    of_service("grpcio-aio", python("grpcio_aio")),
    of_service("grpc-js", grpc_js),
    of_service("grpc-go", grpc_go),
    of_service("hyper", hyper),
    of_service("h2-strict", python("strict")),
    of_service("h2-awkward", python("strict", "--awkward")),
    Server("tritonserver", TRITON_CASES, tritonserver),
    proxy("nginx", nginx),
    proxy("haproxy", haproxy),
    proxy("envoy", envoy),
    proxy("nghttpx", nghttpx),
    Server("nghttpd", FILE_CASES, partial(started, "nghttpd", nghttpd)),
)
