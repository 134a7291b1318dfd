"""Drills of the server: it dies, hangs and comes back."""

from __future__ import annotations

import signal
from collections.abc import Callable

from benchmarks.drilling.drill import Drill
from benchmarks.drilling.judging import MAYBE, SOME, Expected
from benchmarks.drilling.rig import IMPATIENT, USERS, Rig
from benchmarks.drilling.target import GRPC

DOWN_S, HUNG_S = 2.0, 6.0


def kill(rig: Rig) -> None:
    """SIGKILL, for good."""
    rig.server.kill()


def restart(rig: Rig) -> None:
    """Down for two seconds, and back at the same address."""
    rig.server.kill()
    rig.pause(DOWN_S)
    rig.server.start()


def hang(rig: Rig) -> None:
    """Stopped for longer than a request may take, then going on."""
    rig.server.signal(signal.SIGSTOP)
    rig.pause(HUNG_S)
    rig.server.signal(signal.SIGCONT)


def http(seconds: float, *options: str) -> Callable[[Rig], None]:
    """A study of the service whose measure phase takes so long."""

    def begin(rig: Rig) -> None:
        rig.serve()
        rig.ordinary("--seconds", f"{seconds:g}", *options)

    return begin


def grpc(seconds: float, *options: str) -> Callable[[Rig], None]:
    """The same of Triton over gRPC."""

    def begin(rig: Rig) -> None:
        rig.serve(GRPC)
        rig.over_grpc("--seconds", f"{seconds:g}", *options)

    return begin


LOST = ("failures", "server-lost")
DRILLS = (
    Drill(
        "killed",
        "server killed (SIGKILL), for good",
        Expected(3, {"refused": SOME, "reset": MAYBE}, LOST, in_flight=USERS),
        kill,
    ),
    Drill(
        "killed-grpc",
        "gRPC server killed, for good",
        Expected(3, {"refused": SOME, "reset": MAYBE}, LOST, in_flight=USERS),
        kill,
        grpc(3),
    ),
    Drill(
        "restarted",
        "server killed, back after 2 s",
        Expected(3, {"refused": SOME, "reset": MAYBE}, LOST, in_flight=USERS),
        restart,
        http(6),
    ),
    Drill(
        "restarted-grpc",
        "gRPC server killed, back after 2 s",
        Expected(3, {"refused": SOME, "reset": MAYBE}, LOST, in_flight=USERS),
        restart,
        grpc(6),
    ),
    Drill(
        "hung",
        "server stopped for 6 s; a request may take 4 s",
        Expected(1, {"timeout": SOME}, ("failures",), ("server-lost", "results-lost")),
        hang,
        http(9, *IMPATIENT),
    ),
    Drill(
        "hung-grpc",
        "gRPC server stopped for 6 s; a request may take 4 s",
        Expected(1, {"timeout": SOME}, ("failures",), ("server-lost", "results-lost")),
        hang,
        grpc(9, *IMPATIENT),
    ),
)
