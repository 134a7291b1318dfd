"""Set-ups with HTTP/2's own bounds in the way of gRPC: small windows on a long path, few streams at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.planting.processes import listener
from benchmarks.planting.proxies import NGINX_HEAD, found
from benchmarks.planting.setup import Behind, Front, Setup, emulated
from swarm.links.profiles import LinkProfile
from tests.processes import free_port

NGINX = (
    NGINX_HEAD
    + """\
  client_max_body_size 64m;
  upstream servers {{ {servers} keepalive 64; }}
  server {{
    listen {host}:{port} http2; keepalive_requests 1000000;
    {server_lines}
    location / {{ grpc_pass grpc://servers; }}
  }}
}}
"""
)
"""Of each stream it takes 64 KB, and gives credit for as many once it has read these."""
WIDE_WINDOW = "http2_body_preread_size 4m;"
FAR = LinkProfile("far", one_way_ms=10)
"""Ten windows of 64 KB are then 200 ms."""
FEW = 4


def nginx(*server_lines: str) -> Front:
    """nginx before a gRPC server, with further lines of its own."""

    @contextmanager
    def front(behind: Behind) -> Iterator[int]:
        port = free_port()
        text = NGINX.format(
            folder=behind.folder,
            servers=" ".join(f"server {server};" for server in behind.servers),
            host=behind.host,
            port=port,
            server_lines=" ".join(server_lines),
        )
        config = behind.folder / "nginx.conf"
        config.write_text(text)
        command = [found("nginx"), "-p", str(behind.folder), "-c", str(config)]
        with listener([*command, "-e", str(behind.folder / "nginx.log")], port, behind.folder / "nginx.out"):
            yield port

    return front


SETUPS = (
    Setup(
        "nginx's windows of 64 KB, long path", "http2-window", "emulated-grpc", emulated("4+0"), users=4,
        link=FAR, front=nginx(), said=("window of 65.5 kB", "http2_body_preread_size"),
    ),
    Setup(
        "nginx with 4 streams at once, 16 users on one channel", "streams", "emulated-grpc",
        emulated("40+0", "--instances", "8"), users=16, study=("--channels", "shared"),
        front=nginx(f"http2_max_concurrent_streams {FEW};", WIDE_WINDOW), said=("allows 4 streams",),
    ),
    # As many calls as there are streams keep the one instance busy: more would only wait in its queue.
    Setup(
        "nginx with 4 streams at once, a slow model behind it", "server-compute or server-queue",
        "emulated-grpc", emulated("1+40"), users=16, study=("--channels", "shared"),
        front=nginx(f"http2_max_concurrent_streams {FEW};", WIDE_WINDOW),
    ),
    # Busy as well, but an execution takes as long for all sixteen as for the two that it has.
    Setup(
        "nginx with 4 streams at once, batches not full behind it", "streams", "emulated-grpc",
        emulated("40+0"), users=16, study=("--channels", "shared"), said=("executions had",),
        front=nginx(f"http2_max_concurrent_streams {FEW};", WIDE_WINDOW),
    ),
)  # fmt: skip
