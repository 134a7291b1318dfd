"""Whether a limit of the server, which both protocols share, explains that gRPC is slower than HTTP."""

from collections.abc import Callable
from statistics import median

from reports.format import ms
from reports.limit import OF_THE_SERVER
from reports.limits.shares import MOST, service_ns
from reports.summary.summary import Summary
from reports.topics.contention.arms import ArmRuns, Arms

REFUSES = frozenset({"rate-limited", "server-full"})
"""What is refused is no time at the server, and either protocol may have a bound of its own."""


def explains_nothing(arms: Arms, cause: str) -> str:
    """How gRPC's limit explains no difference, in words; empty where it may, or is none of the server's.

    HTTP got more from the same server. So gRPC's requests must have been there for longer, by most of what
    they take longer in all.
    """
    if cause not in OF_THE_SERVER - REFUSES:
        return ""
    grpc = next(arms[code] for code in ("R4", "R2") if arms[code].limit == cause)
    said = f"a connection for each user changes nothing, and {cause}, gRPC's limit, explains no difference"
    grpc_ns, http_ns = _median_of(grpc, service_ns), _median_of(arms["R0"], service_ns)
    at_grpc_ns, at_http_ns = _median_of(grpc, _server_ns), _median_of(arms["R0"], _server_ns)
    if grpc_ns is None or http_ns is None or at_grpc_ns is None or at_http_ns is None:
        return f"{said}: how long the requests of both were at the server is not known"
    if at_grpc_ns - at_http_ns >= MOST * (grpc_ns - http_ns):
        return ""
    return (
        f"{said}: requests were at the server for {ms(at_grpc_ns)} of {ms(grpc_ns)} ms over gRPC, and for "
        f"{ms(at_http_ns)} of {ms(http_ns)} ms over HTTP"
    )


def _server_ns(run: Summary) -> float | None:
    return run.server.total_ns


def _median_of(arm: ArmRuns, time_ns: Callable[[Summary], float | None]) -> float | None:
    """Over its runs; None where none tells."""
    known = [value for run in arm.runs if (value := time_ns(run)) is not None]
    return median(known) if known else None
