"""What tells the arms of the experiment apart, and which of those that a study ran are which arm."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reports.summary.summary import Summary

PROTOCOLS = {"http": "HTTP", "grpc": "gRPC"}
BASE_ARMS = (
    ("R0", "own connections", "http", "per-user"),
    ("R1", "one connection", "http", "shared"),
    ("R2", "one channel", "grpc", "shared"),
    ("R3", "equal channels", "grpc", "same-args"),
    ("R4", "own connections", "grpc", "per-user"),
)
"""Of the fewest processes: code, what its users have, protocol, channels."""


class Axes(NamedTuple):
    """What tells an arm from another; `hosts` are those asked for, 0 for all; `client` built the requests."""

    protocol: str
    channels: str
    workers: int
    hosts: int
    client: str
    congestion: str


def axes_of(run: Summary, all_workers: int) -> Axes:
    """Of a run, begun or not; `all_workers` are those of runs that ask for all there are."""
    workers = run.workers_asked or all_workers
    return Axes(run.protocol, run.channels, workers, run.hosts_asked, run.client, run.congestion)


def all_there(runs: Iterable[Summary]) -> int:
    """The most workers that had a part in a run which asked for all there are; 0 without such a run."""
    return max((run.workers or 0 for run in runs if not run.workers_asked), default=0)


def named_arms(known: Sequence[Axes]) -> Iterator[tuple[str, str, Axes]]:
    """The code and words of each arm that is among the axes, on as few hosts as it was tested on.

    The fewest processes with one gRPC channel are the base that everything else is one step away from.
    """
    usual = [axes for axes in known if axes.client != "library"] or known
    plain = sorted(
        (axes for axes in usual if not axes.congestion), key=lambda axes: (axes.workers, axes.hosts)
    )
    shared = [axes for axes in plain if axes[:2] == ("grpc", "shared")]
    least = min((axes.workers for axes in shared or known), default=0)
    for code, words, *way in BASE_ARMS:
        yield from [(code, words, axes) for axes in plain if axes[:3] == (*way, least)][:1]
    yield from _pooled(plain, [axes for axes in shared if axes.workers > least], least)
    base = [axes for axes in known if axes[:3] == ("grpc", "shared", least)]
    yield from [("R8", "by tritonclient", axes) for axes in base if axes not in usual][:1]
    fast = [axes for axes in base if axes in usual and axes.congestion]
    yield from [("R12", f"with {axes.congestion.upper()}", axes) for axes in fast][:1]


def _pooled(plain: Sequence[Axes], many: Sequence[Axes], least: int) -> Iterator[tuple[str, str, Axes]]:
    """Several channels in the base's processes, and one in each of several: as many if possible."""
    pools = [axes for axes in plain if axes.protocol == "grpc" and pool_size(axes) and axes.workers == least]
    alike = [(pool, axes) for pool in pools for axes in many if axes.workers == pool_size(pool) * least]
    pool, spread = alike[0] if alike else (next(iter(pools), None), next(iter(many), None))
    if pool:
        yield "R5", f"{pool_size(pool)} channels", pool
    if spread:
        yield "R6", f"{spread.workers} processes", spread


def pool_size(axes: Axes) -> int:
    """How many channels a pool has; 0 where it is none."""
    size = axes.channels.partition(":")[2]
    return int(size) if size.isdigit() else 0
