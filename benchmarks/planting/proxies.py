"""Set-ups with a proxy of Debian's before the server: nginx, HAProxy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.planting.processes import listener
from benchmarks.planting.setup import Behind, Front, Setup, emulated
from tests.processes import free_port

NGINX_HEAD = """
error_log {folder}/nginx.error.log warn;
pid {folder}/nginx.pid;
user root;
daemon off;
master_process off;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
"""
"""What its configuration begins with, whatever it is for."""
NGINX = (
    NGINX_HEAD
    + """\
  client_max_body_size 64m; client_body_buffer_size 2m;
  limit_req_zone all zone=rate:1m rate={rate}r/s;
  upstream servers {{ {servers} keepalive 64; }}
  server {{
    listen {host}:{port};
    proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_request_buffering on;
    {server_lines}
    location / {{ proxy_pass http://servers; }}
    location ~ /infer$ {{ {infer_lines} proxy_pass http://servers; }}
  }}
}}
"""
)
"""A request is read whole before a server is asked; everything lies in one folder and one process."""
HAPROXY = """
global
  tune.bufsize {buffer_bytes}
  tune.maxrewrite 8192
defaults
  mode http
  option http-keep-alive
  option http-buffer-request
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout queue {queue_ms}ms
  timeout http-request 60s
frontend suite
  bind {host}:{port}
  default_backend servers
backend servers
  balance roundrobin
{servers}
"""
BUFFER_BYTES = 1_048_576
"""HAProxy's room for a request: one of 602 kB is read whole before it waits for a server."""
FAST = 1000
LONG_MS, QUEUE_MS = 60_000, 60
RATE, RATE_BURST = 40, 20
"""Requests a second that pass, and how many more at once: a study's first questions are never refused."""


def nginx(server_lines: str = "", infer_lines: str = "", rate: int = FAST) -> Front:
    """nginx with further lines of its server, and of the place where requests for vectors arrive."""

    @contextmanager
    def front(behind: Behind) -> Iterator[int]:
        port = free_port()
        text = NGINX.format(
            folder=behind.folder,
            servers=" ".join(f"server {server};" for server in behind.servers),
            host=behind.host,
            port=port,
            server_lines=server_lines,
            infer_lines=infer_lines,
            rate=rate,
        )
        config = behind.folder / "nginx.conf"
        config.write_text(text)
        command = [found("nginx"), "-p", str(behind.folder), "-c", str(config)]
        with listener([*command, "-e", str(behind.folder / "nginx.log")], port, behind.folder / "nginx.out"):
            yield port

    return front


def haproxy(server_words: str = "", queue_ms: int = LONG_MS) -> Front:
    """HAProxy with further words for each of its servers, which take turns.

    A request that has waited for one of them longer than `queue_ms` is answered with 503.
    """

    @contextmanager
    def front(behind: Behind) -> Iterator[int]:
        port = free_port()
        lines = [
            f"  server s{number} {server} {server_words}" for number, server in enumerate(behind.servers)
        ]
        config = behind.folder / "haproxy.cfg"
        config.write_text(
            HAPROXY.format(
                host=behind.host,
                port=port,
                servers="\n".join(lines),
                buffer_bytes=BUFFER_BYTES,
                queue_ms=queue_ms,
            )
        )
        with listener([found("haproxy"), "-db", "-f", str(config)], port, behind.folder / "haproxy.log"):
            yield port

    return front


def found(name: str) -> str:
    """A program's path; SystemExit, with the package, where it is missing."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        raise SystemExit(f"{name} is missing: apt-get install -y nginx-light haproxy")
    return path


SETUPS = (
    Setup(
        "slow model behind nginx, which buffers", "server-compute", "emulated-http", emulated("120+0"),
        front=nginx(),
    ),
    Setup(
        "too few users behind nginx", "offered-load", "emulated-http",
        emulated("20+0", "--instances", "4"), front=nginx(),
    ),
    Setup(
        "HAProxy with one connection to the server", "inconclusive", "emulated-http",
        emulated("30+0", "--instances", "4"), users=8, front=haproxy("maxconn 1"), said=("unexplained",),
    ),
    # 503 alone means a rate and a full queue: only the counters, read through HAProxy too, may tell which.
    Setup(
        "HAProxy answers 503 after a wait", "rate-limited or inconclusive", "emulated-http",
        emulated("30+0", "--instances", "4"), users=8, front=haproxy("maxconn 1", QUEUE_MS), said=("503",),
    ),
    Setup(
        "nginx lets 40 requests a second pass", "rate-limited", "emulated-http",
        emulated("5+0", "--instances", "2"), users=4, said=("429",),
        front=nginx("limit_req_status 429;", f"limit_req zone=rate burst={RATE_BURST} nodelay;", RATE),
    ),
    Setup(
        "two replicas behind one address, half idle", "offered-load or inconclusive", "emulated-http",
        emulated("20+0", "--instances", "4"), users=4, replicas=2, front=haproxy(),
        caveats=("several-servers",),
    ),
)  # fmt: skip
