"""The axes of a study, declared here alone: what a plan says of a cell beside endpoint, batch and load."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

CHANNELS = ("", "shared", "same-args", "pool", "per-user", "per-request")
"""From few connections to many."""
NO_LINK = "none"
"""What people call the path as it is."""


class Topology(NamedTuple):
    """So many worker processes on so many client hosts; 0 is all that are there."""

    workers: int = 0
    hosts: int = 0

    def __str__(self) -> str:
        """As a cell's variant names it: `4w`, `4w2h`."""
        return f"{self.workers}w" + (f"{self.hosts}h" if self.hosts else "")


@dataclass(frozen=True)
class Axis:
    """How an axis stands in tables.

    `name`: how a variant names a value. `rank`: runs are sorted by the lowest first, and by none that has
    none; `key`: what its values are sorted by. `column`: whether it has a column at the end of cells.csv.
    `gated`: whether thresholds choose cells by it. `condition`: whether what its option says must be alike
    for two studies to be compared.
    """

    name: Callable[[Any], str] = str
    rank: int | None = 9
    key: Callable[[Any], Any] = lambda value: value
    column: bool = True
    gated: bool = True
    condition: bool = True


def axis(unset: Any, **more: Any) -> Any:
    """A field for an axis, with its value where it does not apply, and in older ledgers."""
    return field(default=unset, metadata={"axis": Axis(**more)})


def by_connections(channels: str) -> tuple[int, int]:
    """What channels are sorted by: few connections first, pools by their size."""
    kind, _, size = channels.partition(":")
    place = CHANNELS.index(kind) if kind in CHANNELS else len(CHANNELS)
    return place, int(size) if size.isdigit() else 0


def delay_name(delay_us: int) -> str:
    """`delay-0ms`, `delay-0.5ms`."""
    return f"delay-{delay_us / 1000:.10g}ms"


def instances_name(instances: int) -> str:
    """`1-instance`, `2-instances`."""
    return f"{instances}-instance{'s' if instances > 1 else ''}"


def think_s(think: str) -> float:
    """The mean of a think time in seconds: of `exponential:0.5`, 0.5."""
    return float(think.rpartition(":")[2] or 0)


def think_name(think: str) -> str:
    """`think-0.5s`, `think-exponential-0.5s`."""
    return f"think-{think.replace(':', '-') or 0}s"


_APART: Mapping[str, Any] = {"column": False, "gated": False, "condition": False}


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the load's own settings are, and what else a study varies.

    `arrivals` of an open-loop load are constant or poisson, carried by at most `max_in_flight` users;
    `profile` is its course. `channels` as users.transport.connections reads them; `client` prepared or
    library; `link` by its profile's name, empty for the path as it is; `congestion` is the client's
    congestion control where it is not the profile's. `queue_delay_us` is how long Triton lets a request wait
    for others, `instances` how many executions of the model it can run at once; None and 0: as it was
    started. `variant` names what the study varies of them. `think` is how many seconds a closed-loop user
    waits after an answer, or `exponential:` and their mean. `batch_mix` and `picture_mix` are shares of
    requests by batch and by kind of picture, `replay` names the trace whose arrivals and batches are
    replayed. `compression` is that of requests, and `shared_memory` is system where their inputs lie in the
    server's; empty without. `together` names the cells that run at the same time, all of them alike; `split`
    is the share of one schedule's arrivals that the endpoint gets.
    """

    arrivals: str = axis("", rank=None, column=False, gated=False)
    max_in_flight: int = axis(0, rank=None, column=False, gated=False)
    channels: str = axis("", rank=5, key=by_connections, column=False)
    client: str = axis("", rank=2, key=lambda client: client == "library", column=False)
    topology: Topology = axis(Topology(), rank=4, column=False, condition=False)  # noqa: RUF009
    link: str = axis("", name=lambda link: link or NO_LINK, rank=1, column=False, condition=False)
    congestion: str = axis("", rank=3, column=False, condition=False)
    queue_delay_us: int | None = axis(
        None, name=delay_name, rank=7, key=lambda us: -1 if us is None else us, **_APART
    )
    instances: int = axis(0, name=instances_name, rank=6, **_APART)
    variant: str = axis("", rank=99, column=False, condition=False)
    profile: str = axis("", rank=None, **_APART)
    think: str = axis("", name=think_name, rank=8, key=lambda think: (think_s(think), think))
    compression: str = axis("", name=lambda how: how or "uncompressed")
    shared_memory: str = axis("", name=lambda how: f"shm-{how or 'none'}")
    batch_mix: str = axis("", rank=None)
    picture_mix: str = axis("", rank=None)
    replay: str = axis("", rank=None, condition=False)
    together: str = axis("", rank=90, condition=False)
    split: float = axis(0.0, rank=91, gated=False, condition=False)

    def others(self, *but: str) -> tuple[Any, ...]:
        """All but some: what must be alike where cells are to differ in those alone."""
        return tuple(getattr(self, name) for name in AXES if name not in (*but, "variant"))


AXES: Mapping[str, Axis] = {one.name: one.metadata["axis"] for one in fields(Axes)}
UNSET: Mapping[str, Any] = {one.name: one.default for one in fields(Axes)}
_RANKED = sorted((rank, name) for name, one in AXES.items() if (rank := one.rank) is not None)


def ranks(cell: Axes) -> tuple[Any, ...]:
    """What cells of one endpoint are sorted by."""
    return tuple(AXES[name].key(getattr(cell, name)) for _, name in _RANKED)


def recorded(cell: Axes, names: Iterable[str] = tuple(AXES)) -> dict[str, Any]:
    """As a plan's entry has them: what has parts, such as a topology, part by part."""
    told: dict[str, Any] = {}
    for name in names:
        value = getattr(cell, name)
        told |= value._asdict() if isinstance(value, Topology) else {name: value}
    return told


def planned_axes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse: the fields of Axes, from what an entry tells of them."""
    told = {name: unset if (value := entry.get(name)) is None else value for name, unset in UNSET.items()}
    return told | {"topology": Topology(entry.get("workers") or 0, entry.get("hosts") or 0)}


def of_trait(trait: str) -> dict[str, Any]:
    """The axes that are columns, gated or conditions, as a plan names them, with their values where unset."""
    return recorded(Axes(), (name for name, one in AXES.items() if getattr(one, trait)))
