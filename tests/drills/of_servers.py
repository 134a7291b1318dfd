"""Drills of the server: it dies, hangs, comes back; its answers are wrong, broken off, refused, too slow."""

import signal
from collections.abc import Callable

from tests.drills.drill import Drill, planted
from tests.drills.judging import MAYBE, SOME, Expected
from tests.drills.processes import GRPC
from tests.drills.rig import IMPATIENT, USERS, Rig

DOWN_S, HUNG_S = 2.0, 6.0
PLANTED = 32
"""More than a tenth of a short study's requests: no limit but refusals may be named of those that 32 meet."""


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


def spoilt(kind: str, *faults: str) -> Expected:
    """As many failures of one kind as the server met requests with these faults, and nothing else.

    Refusals are a limit by themselves, however many they are.
    """
    limit = "rate-limited" if kind == "rejected" else "inconclusive"
    return Expected(1, {kind: "+".join(faults)}, ("failures",), ("results-lost", "server-lost"), limit)


def over_http(name: str, cause: str, kind: str) -> Drill:
    """A fault of the stand-in for the service."""
    return Drill(name, cause, spoilt(kind, name), planted(name, PLANTED))


def over_grpc(name: str, cause: str, kind: str) -> Drill:
    """A fault of the stand-in for Triton."""
    return Drill(f"{name}-grpc", cause, spoilt(kind, name), planted(name, PLANTED), grpc(3))


def long_and_large(rig: Rig) -> None:
    """One user whose requests are of 32 pictures, which take long to read."""
    rig.serve()
    rig.before_load += 1  # two first requests of 32 pictures, and none but the very first of one
    rig.ordinary("--study", "full", "--cells", "*/b32/c1", "--seconds", "5", *IMPATIENT)


LOST = ("failures", "server-lost")
DOWN = Expected(3, {"refused": SOME, "reset": MAYBE}, LOST, in_flight=USERS)
HUNG = Expected(1, {"timeout": SOME}, ("failures",), ("server-lost", "results-lost"))
STOPPED = "stopped for 6 s; a request may take 4 s"
DRILLS = (
    Drill("killed", "server killed (SIGKILL), for good", DOWN, kill),
    Drill("killed-grpc", "gRPC server killed, for good", DOWN, kill, grpc(3)),
    Drill("restarted", "server killed, back after 2 s", DOWN, restart, http(6)),
    Drill("restarted-grpc", "gRPC server killed, back after 2 s", DOWN, restart, grpc(6)),
    Drill("hung", f"server {STOPPED}", HUNG, hang, http(9, *IMPATIENT)),
    Drill("hung-grpc", f"gRPC server {STOPPED}", HUNG, hang, grpc(9, *IMPATIENT)),
    over_http("not-http", "answers that are no HTTP", "bad-reply"),
    over_http("not-json", "answers that are no JSON", "bad-reply"),
    over_http("binary", "answers of random bytes", "bad-reply"),
    over_grpc("junk", "gRPC answers that are no message", "bad-reply"),
    over_http("half", "half of an answer, then the end", "reset"),
    over_http("511", "511 floats a picture", "bad-reply"),
    over_http("batch", "one embedding too many", "bad-reply"),
    over_grpc("511", "511 floats a picture over gRPC", "bad-reply"),
    over_grpc("batch", "one embedding too many over gRPC", "bad-reply"),
    over_http("nan", "NaN embeddings", "bad-reply"),
    over_grpc("nan", "NaN embeddings over gRPC", "bad-reply"),
    over_http("500", "a burst of HTTP 500", "server-error"),
    over_http("503", "a burst of HTTP 503", "server-error"),
    over_http("429", "a burst of HTTP 429 with Retry-After", "rejected"),
    over_grpc("internal", "a burst of gRPC INTERNAL", "server-error"),
    over_grpc("unavailable", "a burst of gRPC UNAVAILABLE", "server-error"),
    over_grpc("exhausted", "a burst of gRPC RESOURCE_EXHAUSTED", "rejected"),
    over_http("reset", "connections reset (RST) in place of answers", "reset"),
    Drill(
        "trickle", "answers that trickle, 80 bytes a second",
        Expected(1, {"timeout": "trickle"}, ("failures",), ("results-lost", "server-lost"), limit=""),
        planted("trickle", USERS), http(3, *IMPATIENT),
    ),
    Drill(
        "slow-read", "bodies of 400 kB that the server reads a byte at a time",
        Expected(1, {"timeout": "slow-read"}, ("failures",), ("counts-mismatch", "server-lost"), limit=""),
        planted("slow-read", 2), long_and_large,
    ),
)  # fmt: skip
