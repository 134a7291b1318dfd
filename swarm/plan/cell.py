"""A cell of a study, what its axes are, and one execution of it."""

from dataclasses import astuple, dataclass
from typing import Any

from users.endpoint import NULL, Endpoint
from users.load.load_profile import LoadProfile, parse

RECORDED = (
    *("batch", "load", "level", "arrivals", "max_in_flight", "channels", "client", "workers", "hosts"),
    *("link", "congestion", "queue_delay_us", "instances", "variant", "profile"),
)
"""What the ledger's header has of a cell under the same names."""


@dataclass(frozen=True)
class Cell:
    """endpoint × batch × load × level, measured for at least `requests` and `seconds`.

    Closed load: `level` users. Open load: `level` requests a second, whose `arrivals` are constant or
    poisson, carried by at most `max_in_flight` users. With a `profile`, as users.load.load_profile reads it,
    `level` is its peak, and the measure phase is as long as the profile, whatever `requests` and `seconds`
    say.

    The axes below stand empty until `swarm.plan.sweep` has filled in what the study's options say.
    `channels` as users.transport.connections reads them; `client` prepared or library; `workers` on
    `hosts`, 0 for all that are there; `link` by its profile's name, empty for the path as it is;
    `congestion` is the client's congestion control where it is not the profile's. `queue_delay_us` is how
    long Triton lets a request wait for others, `instances` how many executions of the model it can run at
    once; None and 0: as it was started. `variant` names what a study varies of them.
    """

    endpoint: Endpoint
    batch: int
    level: float
    requests: int
    seconds: float
    load: str = "closed"
    arrivals: str = ""
    max_in_flight: int = 0
    channels: str = ""
    client: str = ""
    workers: int = 0
    hosts: int = 0
    link: str = ""
    congestion: str = ""
    queue_delay_us: int | None = None
    instances: int = 0
    profile: str = ""
    variant: str = ""

    @property
    def name(self) -> str:
        """Its name in ledgers, Locust's tables and reports, e.g. `onnx-grpc/b4/c1` or `onnx-grpc/b1/r50`.

        A variant follows where the study has several: `onnx-grpc/b1/c16/shared`.
        """
        letter, variant = "r" if self.open else "c", f"/{self.variant}" if self.variant else ""
        return f"{self.endpoint.name}/b{self.batch}/{letter}{self.level:g}{variant}"

    @property
    def open(self) -> bool:
        """Whether requests come at a rate, whatever becomes of those before them."""
        return self.load == "open"

    @property
    def adjustable(self) -> bool:
        """Whether a model of Triton's is behind it, whose settings can be others for a run."""
        return bool(self.endpoint.model) and self.endpoint.backend != NULL

    @property
    def course(self) -> LoadProfile | None:
        """How its rate goes, where it does not stay the same."""
        return parse(self.profile, self.level) if self.profile else None

    @property
    def users(self) -> int:
        """How many users it takes, all workers together."""
        return self.max_in_flight if self.open else int(self.level)


@dataclass(frozen=True)
class PlannedRun:
    """One execution of one cell."""

    cell: Cell
    repeat: int

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header lists it."""
        cell = self.cell
        return {
            "cell": cell.name,
            "endpoint": cell.endpoint.name,
            **{name: getattr(cell.endpoint, name) for name in ("backend", "protocol", "payload")},
            **{name: getattr(cell, name) for name in RECORDED},
            **({"stages": [list(astuple(stage)) for stage in cell.course.stages]} if cell.course else {}),
            "requests": cell.requests,
            "seconds": cell.seconds,
            "repeat": self.repeat,
        }
