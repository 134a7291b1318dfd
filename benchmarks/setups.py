"""Set-ups whose cause of slowness is known, because it was planted: what `benchmarks/planted.py` runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from swarm.links.profiles import LinkSpec

LONG_S, WIDE_MBIT, LOSS = 0.014, 210.0, 0.001
"""The seeds' path as research/grpc.md fitted it, with a little more loss: 14 ms, 210 Mbit/s."""

HOGS_A_CORE = 3
"""A fair scheduler then leaves a busy client a quarter of each core."""


@dataclass(frozen=True)
class Setup:
    """One cell on real servers; `truth` is the limit that must be named.

    `server`: options of `python -m server up`. `endpoint`: which of its endpoints. `study`: options of the
    study. `fault`: of the client's own process. `hogs`: processes that burn a core each. `stranger`: images
    in a request that somebody else sends into the measure phase. `picture_px`: the pictures' width, 0 for the
    default ones.
    """

    name: str
    truth: str
    endpoint: str
    server: tuple[str, ...]
    users: int = 1
    batch: int = 1
    study: tuple[str, ...] = ()
    fault: str = ""
    hogs: int = 0
    stranger: int = 0
    picture_px: int = 0
    link: LinkSpec | None = field(default=None)


def emulated(profile: str, *options: str, delay_us: int = 0) -> tuple[str, ...]:
    """A tritonserver whose model sleeps."""
    return ("--emulate", profile, "--queue-delay-us", str(delay_us), *options)


LOSSY = LinkSpec(rtt_s=LONG_S, mbit_per_s=WIDE_MBIT, loss=LOSS)
NARROW = LinkSpec(rtt_s=0.01, mbit_per_s=40.0, queue_bytes=500_000)

SETUPS = (
    Setup("CPU burnt in the client", "client-cpu", "emulated-http", emulated("5+0"), users=8, fault="cpu"),
    Setup(
        "every core taken by others", "client-cpu", "emulated-http", emulated("5+0"), users=8,
        hogs=HOGS_A_CORE * len(os.sched_getaffinity(0)),
    ),
    Setup("event loop blocked", "client-loop", "emulated-http", emulated("5+0"), users=8, fault="loop"),
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
    Setup("slow model", "server-compute", "emulated-grpc", emulated("120+0")),
    Setup(
        "slow decode in the service", "server-compute", "pytorch-http", ("--only", "pytorch"),
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
