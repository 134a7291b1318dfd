"""HTTP against gRPC: the same load over other connections and processes, and which runs are which."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reports.published_figures.figures import EQUAL_CHANNELS, by_own_wire
from reports.stats.figures import images_per_s, pair_name, pairing, stems
from reports.stats.repeats import Runs, Spread, grouped, over, spread_of
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Summary, tainting

STILL_EVIDENCE = frozenset({"client-bound"})
"""Invalidates a figure as the server's; here the client may be the very cause that is looked for."""
PROTOCOLS = {"http": "HTTP", "grpc": "gRPC"}
OWN_WIRE, GRPCIO = "own wire", "grpcio"
"""What sends gRPC's requests: the suite's own HTTP/2, or the library, which older versions had alone."""
BY_LIBRARY = "library"
"""The client whose requests are made and sent as a plain client does."""
BASE_ARMS = (
    ("R0", "own connections", "http", "per-user"),
    ("R1", "one connection", "http", "shared"),
    ("R2", "one channel", "grpc", "shared"),
    ("R4", "own connections", "grpc", "per-user"),
)
"""Of the fewest processes: code, what its users have, protocol, channels."""
GRPCIO_ARMS = (
    ("R8", "one channel", "shared"),
    ("R9", "own channels", "per-user"),
    ("R3", "equal channels", "same-args"),
)
"""Of as many processes, sent by grpcio: code, what its users have, channels."""


class ArmAxes(NamedTuple):
    """What tells an arm from another; `hosts` are those asked for, 0 for all; `client` built the requests."""

    protocol: str
    channels: str
    workers: int
    hosts: int
    client: str
    congestion: str


def axes_of(run: Summary, all_workers: int) -> ArmAxes:
    """Of a run, begun or not; `all_workers` are those of runs that ask for all there are."""
    workers = run.topology.workers or all_workers
    return ArmAxes(run.protocol, run.channels, workers, run.topology.hosts, run.client, run.congestion)


def named_arms(known: Sequence[ArmAxes], own_wire: bool = False) -> Iterator[tuple[str, str, ArmAxes]]:
    """The code and words of each arm that is among the axes, on as few hosts as it was tested on.

    The fewest processes with one gRPC channel are the base that everything else is one step away from.
    `own_wire`: whether prepared requests were sent by it.
    """
    in_order = sorted(known, key=lambda axes: (axes.workers, axes.hosts))
    usual = [axes for axes in in_order if axes.client != BY_LIBRARY] or in_order
    plain = [axes for axes in usual if not axes.congestion]
    shared = [axes for axes in plain if axes[:2] == ("grpc", "shared")]
    least = min((axes.workers for axes in shared or known), default=0)
    for code, words, *way in BASE_ARMS:
        yield from [(code, words, axes) for axes in plain if axes[:3] == (*way, least)][:1]
    yield from _pooled(plain, [axes for axes in shared if axes.workers > least], least)
    fast = [axes for axes in usual if axes[:3] == ("grpc", "shared", least) and axes.congestion]
    yield from [("R12", f"with {axes.congestion.upper()}", axes) for axes in fast][:1]
    by_library = [axes for axes in in_order if axes not in usual and not axes.congestion]
    for code, words, channels in GRPCIO_ARMS:
        # Before there was another wire, equal channels were tested with prepared requests.
        sent = plain + by_library if channels == EQUAL_CHANNELS and not own_wire else by_library
        yield from [(code, words, axes) for axes in sent if axes[:3] == ("grpc", channels, least)][:1]


def _pooled(
    plain: Sequence[ArmAxes], many: Sequence[ArmAxes], least: int
) -> Iterator[tuple[str, str, ArmAxes]]:
    """Several channels in the base's processes, and one in each of several: as many if possible."""
    pools = [axes for axes in plain if axes.protocol == "grpc" and pool_size(axes) and axes.workers == least]
    alike = [(pool, axes) for pool in pools for axes in many if axes.workers == pool_size(pool) * least]
    pool, spread = alike[0] if alike else (next(iter(pools), None), next(iter(many), None))
    if pool:
        yield "R5", f"{pool_size(pool)} channels", pool
    if spread:
        yield "R6", f"{spread.workers} processes", spread


def pool_size(axes: ArmAxes) -> int:
    """How many channels a pool has; 0 where it is none."""
    size = axes.channels.partition(":")[2]
    return int(size) if size.isdigit() else 0


class Case(NamedTuple):
    """A load that both protocols were sent over one link; its backend as pairs of endpoints are named."""

    backend: str
    payload: str
    batch: Batch
    users: float
    link: str

    def __str__(self) -> str:
        over_link = f" over {self.link}" if self.link else ""
        return f"{self.backend} {self.payload}, batch {self.batch}, {self.users:g} users{over_link}"


@dataclass(frozen=True)
class ArmRuns:
    """One arm: its code, what its users have in words, its planned runs, and those that are evidence.

    `sender` is what sent its requests, OWN_WIRE or GRPCIO; empty for HTTP.
    """

    code: str
    words: str
    axes: ArmAxes
    planned: Runs
    runs: Runs
    sender: str = ""

    @property
    def name(self) -> str:
        """As sentences call it: `gRPC, own wire, one channel`."""
        return f"{PROTOCOLS.get(self.axes.protocol, self.axes.protocol)}, {self.words}"

    @property
    def rate(self) -> Spread | None:
        """Images per second over its repeats; None where no run of it is evidence."""
        return spread_of(self.runs, images_per_s)

    @property
    def rates(self) -> dict[int, float]:
        """Images per second by repeat."""
        return {run.repeat: found for run in self.runs if (found := images_per_s(run))}

    @property
    def connections(self) -> int | None:
        """The most TCP connections that the kernel saw at once in one of its runs."""
        return max((seen for run in self.runs if (seen := run.tcp_connections) is not None), default=None)

    @property
    def limit(self) -> str:
        """The limit that most of its runs have, the first of equals; empty without any."""
        codes = Counter(run.limit.code for run in self.runs if run.limit)
        return codes.most_common(1)[0][0] if codes else ""


Arms = Mapping[str, ArmRuns]
"""By code, only arms that were planned."""


def cases(study: Study) -> Iterator[tuple[Case, Arms]]:
    """Every load that was sent over both protocols by several users, with more than one kind of channels."""
    many = (run for run in study.runs if run.closed and run.level > 1 and not run.is_floor)
    loads = grouped(many, lambda run: (*pairing(run), batch_of(run), run.level, run.link)).values()
    found = {case: runs for runs in loads if (case := case_of(runs))}
    for case in sorted(found, key=lambda case: _place(study, case)):
        if len({run.channels for run in found[case]} - {""}) > 1:
            yield case, arms_of(found[case])


def case_of(runs: Runs) -> Case | None:
    """What runs of one load are of; None where they are not of one endpoint by each protocol."""
    ways = {(run.protocol, run.endpoint): run for run in runs}
    if sorted(protocol for protocol, _ in ways) != sorted(PROTOCOLS):
        return None
    sides = {protocol: run for (protocol, _), run in ways.items()}
    first, name = runs[0], pair_name(sides["http"], sides["grpc"])
    backend = first.backend if name in stems(first) else name
    return Case(backend, first.payload, batch_of(first), first.level, first.link)


def _place(study: Study, case: Case) -> tuple[int, Batch, float, str, str]:
    """In the order of the header's links, then from small to large."""
    names = [str(link.get("name")) for link in study.links]
    return (
        names.index(case.link) if case.link in names else -1,
        case.batch,
        case.users,
        case.backend,
        case.payload,
    )


def arms_of(runs: Sequence[Summary]) -> Arms:
    """The arms that some runs of one case make up: HTTP's, then gRPC's of the own wire, then grpcio's.

    All prepared requests of a study over gRPC are sent the same way: any run tells which it was.
    """
    all_there = max((run.workers or 0 for run in runs if not run.topology.workers), default=0)
    by_axes = grouped(runs, lambda run: axes_of(run, all_there))
    own_wire = any(by_own_wire(run) for run in runs)
    found: dict[str, ArmRuns] = {}
    for code, words, axes in named_arms(list(by_axes), own_wire):
        planned, sender = by_axes[axes], sender_of(axes, own_wire)
        evidence = [run for run in planned if is_evidence(run)]
        found[code] = ArmRuns(code, _told(words, axes, own_wire), axes, planned, evidence, sender)
    return found


def sender_of(axes: ArmAxes, own_wire: bool) -> str:
    """What sent an arm's requests; empty for HTTP."""
    if axes.protocol != "grpc":
        return ""
    return OWN_WIRE if own_wire and axes.client != BY_LIBRARY else GRPCIO


def _told(words: str, axes: ArmAxes, own_wire: bool) -> str:
    """What its users have, with what sent its requests where studies differ in that."""
    if axes.protocol != "grpc":
        return words
    if own_wire:
        return f"{sender_of(axes, own_wire)}, {words}"
    return f"{words}, by tritonclient" if axes.client == BY_LIBRARY else words


def is_evidence(run: Summary) -> bool:
    """Whether its images per second tell something: done, with successes, and not invalidated."""
    return run.started and run.succeeded > 0 and not tainting(run) - STILL_EVIDENCE


def ratio_of(arms: Arms, top: str, bottom: str) -> Spread | None:
    """One arm's images per second over another's; None where one of them was not tested."""
    sides = [arms[code].rate if code in arms else None for code in (top, bottom)]
    return over(sides[0], sides[1]) if sides[0] and sides[1] else None
