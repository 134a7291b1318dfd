"""A cell of a study, and one execution of it."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Self

from reports.ledger.axes import AXES, Axes, recorded
from users.backends.registry import is_adjustable
from users.endpoint import Endpoint
from users.load.load_profile import LoadProfile, parse


@dataclass(frozen=True)
class Cell(Axes):
    """endpoint × batch × load × level, measured for at least `requests` and `seconds`.

    With a `batch_mix`, or a trace to `replay`, `batch` is the largest one.

    Closed loop: `level` users. Open loop: `level` requests a second. With a `profile`, as
    users.load.profile_text reads it, `level` is its peak, and the measure phase is as long as the profile,
    whatever `requests` and `seconds` say. The axes stand empty until `swarm.plan.sweep` has filled in what
    the study's options say.
    """

    endpoint: Endpoint
    batch: int
    level: float
    requests: int
    seconds: float
    load: str = "closed"

    @property
    def name(self) -> str:
        """Its name in ledgers, Locust's tables and reports, e.g. `onnx-grpc/b4/c1` or `onnx-grpc/b1/r50`.

        A variant follows where the study has several: `onnx-grpc/b1/c16/shared`.
        """
        letter, variant = "r" if self.open else "c", f"/{self.variant}" if self.variant else ""
        batch = "mix" if self.batch_mix or self.replay else f"b{self.batch}"
        return f"{self.endpoint.name}/{batch}/{letter}{self.level:g}{variant}"

    def varied(self, **axes: Any) -> Self:
        """The same with other axes, of which its name tells."""
        names = (AXES[name].name(value) for name, value in axes.items())
        return replace(self, **axes, variant="/".join(filter(None, (self.variant, *names))))

    @property
    def open(self) -> bool:
        """Whether requests come at a rate, independent of earlier ones."""
        return self.load == "open"

    @property
    def adjustable(self) -> bool:
        """Whether a model is behind it whose settings can be others for a run."""
        return is_adjustable(self.endpoint)

    @property
    def settings(self) -> tuple[int | None, int]:
        """How its server is to be set: another setting takes a reload of the model."""
        return self.queue_delay_us, self.instances

    @property
    def course(self) -> LoadProfile | None:
        """How its rate, or its number of users, goes, where it does not stay the same."""
        return parse(self.profile, self.level) if self.profile else None

    @property
    def users(self) -> int:
        """How many users it takes, all workers together."""
        return self.max_in_flight if self.open else int(self.level)


Warm = tuple[str, str, str, int]


def warmed_by(entry: Mapping[str, Any]) -> Warm:
    """What a planned run leaves warm, as its record has it: server, model, payload and batch.

    Whatever its protocol or load: what is slow at first is the model's.
    """
    backend = str(entry["backend"])
    server, model = entry.get("server") or backend, entry.get("model") or backend
    return str(server), str(model), str(entry["payload"]), int(entry["batch"])


@dataclass(frozen=True)
class PlannedRun:
    """One execution of one cell; `confirming` is one that is to confirm the rate that a search found."""

    cell: Cell
    repeat: int
    confirming: bool = False

    @property
    def tag(self) -> tuple[str, int]:
        """What tells it from other runs."""
        return self.cell.name, self.repeat

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header lists it."""
        cell = self.cell
        return {
            "cell": cell.name,
            "endpoint": cell.endpoint.name,
            "backend": cell.endpoint.behind,
            **{name: getattr(cell.endpoint, name) for name in ("protocol", "payload")},
            **{name: getattr(cell, name) for name in ("batch", "load", "level")},
            **recorded(cell),
            **({"stages": [list(astuple(stage)) for stage in cell.course.stages]} if cell.course else {}),
            "requests": cell.requests,
            "seconds": cell.seconds,
            "repeat": self.repeat,
            **{name: getattr(cell.endpoint, name) for name in ("model", "codec", "space")},
            "server": cell.endpoint.shares,
            **({"confirming": True} if self.confirming else {}),
        }
