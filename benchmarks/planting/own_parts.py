"""Set-ups of our own parts alone: a client with a fault, an emulated link, an embedded server."""

from benchmarks.planting.setup import Setup, emulated, hogs
from swarm.links.profiles import LinkProfile

LONG_MS, WIDE_MBIT, LOSS_PCT = 14, 210.0, 0.1
"""The published study's path as fitted, with a little more loss: 14 ms, 210 Mbit/s."""
LOSSY = LinkProfile(
    "lossy", one_way_ms=LONG_MS / 2, mbit_per_s=WIDE_MBIT, loss_pct=LOSS_PCT, queue_bytes=1_000_000
)
NARROW = LinkProfile("narrow", one_way_ms=5, mbit_per_s=40.0, queue_bytes=500_000)

CLIENTS = (
    Setup("CPU burnt in the client", "client-cpu", "emulated-http", emulated("5+0"), users=8, fault="cpu"),
    Setup(
        "every core taken by others", "client-cpu", "emulated-http", emulated("5+0"), users=8, hogs=hogs()
    ),
    Setup("event loop blocked", "client-loop", "emulated-http", emulated("5+0"), users=8, fault="loop"),
)  # fmt: skip

PATHS = (
    Setup(
        "one gRPC channel for 16 users, lossy long path", "connections", "emulated-grpc", emulated("4+0"),
        users=16, study=("--channels", "shared"), link=LOSSY,
    ),
    Setup("one HTTP user, lossy long path", "connections", "emulated-http", emulated("4+0"), link=LOSSY),
    Setup("link of 40 Mbit/s, rate unknown", "link", "emulated-http", emulated("4+0"), users=8, link=NARROW),
    Setup(
        "link of 40 Mbit/s, rate known", "link", "emulated-grpc", emulated("4+0"), users=8,
        study=("--link-mbit", "40"), link=NARROW,
    ),
)  # fmt: skip

SERVERS = (
    Setup("slow model", "server-compute", "emulated-grpc", emulated("120+0")),
    Setup(
        "slow decode in the service", "server-preprocess", "pytorch-http", ("--only", "pytorch"),
        picture_px=6000,
    ),
    Setup(
        "one slow instance, many users", "server-queue", "emulated-http", emulated("60+0"), users=8,
        batch=32,
    ),
    Setup("long batching delay", "server-queue", "emulated-grpc", emulated("5+0", delay_us=250_000), users=2),
    Setup(
        "cold shape inside the window", "server-cold", "emulated-http", emulated("8+0/3000"), users=2,
        stranger=29,
    ),
    Setup("too few users", "offered-load", "emulated-grpc", emulated("20+0", "--instances", "4"), users=1),
    Setup("unloaded fast server", "offered-load", "emulated-http", emulated("1+0"), users=1),
)  # fmt: skip

SETUPS = (*CLIENTS, *PATHS, *SERVERS)
