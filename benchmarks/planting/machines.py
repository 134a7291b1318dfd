"""Set-ups whose cause is the machines' part: CPU that is taken away or held, TCP, and silent fronts."""

from __future__ import annotations

from benchmarks.planting.machines_cgroup import limited
from benchmarks.planting.peers import program
from benchmarks.planting.setup import Setup, emulated
from swarm.links.profiles import LinkProfile

FAST = emulated("1+0", "--instances", "4")
"""A server that has room, whatever the client does."""
RATE_MBIT = 40
POLICED = LinkProfile(
    "policed", one_way_ms=5, mbit_per_s=RATE_MBIT, burst_bytes=60_000, congestion_control="bbr"
)
"""A provider's limit as a policer: nothing waits, and what is above the rate is dropped."""
PACED = LinkProfile(
    "paced", one_way_ms=5, mbit_per_s=RATE_MBIT, queue_bytes=500_000, congestion_control="bbr"
)
"""As narrow, with a queue, of which one BBR connection uses a little and several use more."""
CLEAN = LinkProfile("clean", one_way_ms=7, mbit_per_s=210, queue_bytes=1_000_000)
"""The published study's path without its losses."""
SMALL_BUFFER = 16_384
"""Which Linux doubles to 32 KB."""

SETUPS = (
    Setup(
        "calls that block for 10 ms", "client-loop", "emulated-http", FAST, users=2, fault="block10",
    ),
    Setup(
        "a thread that holds the interpreter lock", "client-cpu", "emulated-http", emulated("5+0"), users=2,
        fault="thread", said=("interpreter lock", "its own process"),
    ),
    # An image needs about 100 ms of one core, and several threads would burn the quota while they wait.
    Setup(
        "cgroup of 0.3 cores around the server", "throttled", "pytorch-http", ("--only", "pytorch"),
        server_in=limited(0.3, "INFERSWARM_THREADS=1"), said=("server",),
    ),
    # Requests that the library builds cost the client more CPU than the server.
    Setup(
        "cgroup of 0.3 cores around the client", "throttled", "emulated-http", FAST, users=8,
        study=("--client", "library"), client_in=limited(0.3), said=("worker",),
    ),
    Setup(
        "policer and BBR, rate known", "link", "emulated-http", emulated("4+0"), users=8,
        study=("--link-mbit", str(RATE_MBIT)), link=POLICED,
    ),
    # Drops without a queue look like loss on a path with room: only delivery and pacing rate may tell.
    Setup(
        "policer and BBR, rate unknown", "link or inconclusive", "emulated-http", emulated("4+0"), users=8,
        link=POLICED,
    ),
    Setup("BBR on a full link, rate unknown", "link", "emulated-http", emulated("4+0"), users=8, link=PACED),
    # Nine tenths of the time the link sends, and its queue stays short.
    Setup("one BBR connection, rate unknown", "link", "emulated-http", emulated("4+0"), link=PACED),
    Setup(
        "receive buffers of 32 KB, long path", "connections", "emulated-http", emulated("4+0"), users=4,
        link=CLEAN, front=program("shim.py", "--receive-buffer", str(SMALL_BUFFER)),
    ),
    Setup(
        "silent front, one request at a time", "inconclusive", "emulated-http", emulated("4+0"), users=8,
        front=program("relay.py", "--hold-ms", "50"), said=("unexplained",),
    ),
    Setup(
        "silent front of 100 ms, one gRPC channel for 16 users", "inconclusive", "emulated-grpc",
        emulated("4+0"), users=16, study=("--channels", "shared"), said=("unexplained",),
        front=program("relay.py", "--delay-ms", "100"),
    ),
)  # fmt: skip
