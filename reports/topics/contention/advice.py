"""What to do about the cause of a difference between HTTP and gRPC."""

from reports.format import digits
from reports.limit import UNKNOWN
from reports.stats.paired import ADVISED_REPEATS
from reports.topics.contention.arms import Arms
from reports.topics.contention.experiments import CONNECTIONS, CPU, LIBRARY, LOOP, losses, lossy

ADVICE = {
    CONNECTIONS: "Give gRPC a connection for each user (--channels per-user); in a client of your own, a "
    "channel each with distinct arguments or grpc.use_local_subchannel_pool, or a pool of a few.",
    CPU: "Add workers (--workers) or hosts, and send prepared requests: one process has one core.",
    LOOP: "Find what the users call that does not yield to gevent, or add workers.",
    LIBRARY: "Measure servers with prepared requests, which our own wire sends (--client prepared); in a "
    "client of your own, several processes share what grpcio costs for each call.",
    UNKNOWN: f"Run what is missing, and with --repeats {ADVISED_REPEATS}.",
}
LOSSY = (
    "Packets were lost: where no policer drops them, BBR on the client helps too; so does a client nearer to "
    "the server."
)
ALIKE_TO_A_BALANCER = (
    "a balancer that pins a connection to one replica looks alike: there more connections help, BBR and a "
    "nearer client do not."
)
OF_HTTP2 = frozenset({"http2-window", "streams"})
"""Limits of one connection that its server sets: more connections help against them, too."""


def beside_connections(arms: Arms) -> str:
    """What else would help where one connection is too few, or what looks alike where no losses were seen."""
    if (limit := arms["R2"].limit) in OF_HTTP2:
        return f"Its limit is {limit}: {limits_advice(arms, limit)}"
    if lossy(arms):
        return LOSSY
    found = losses(arms)
    few = f"Only {found[0]:,} segments ({digits(100 * found[1])} %) were lost" if found else ""
    seen = "Losses were not counted" if not found else few if found[0] else "No losses were seen"
    return f"{seen}: {ALIKE_TO_A_BALANCER}"


def limits_advice(arms: Arms, limit: str) -> str:
    """What the rule for a limit advises in a run of gRPC that has it; empty without one."""
    runs = [run for code in ("R4", "R2") if code in arms for run in arms[code].runs]
    return next((run.limit.advice for run in runs if run.limit and run.limit.code == limit), "")
