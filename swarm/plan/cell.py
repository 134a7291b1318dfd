"""A cell of a study, and one execution of it."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

from reports.ledger.axes import AXES, Axes, recorded
from users.backends.registry import is_adjustable
from users.endpoint import Endpoint
from users.load.load_profile import LoadProfile, parse
from users.load.mix import Traffic, mix_of
from users.load.replay import Replay
from users.load.think import ThinkTime
from users.load.think import parse as think_time


@dataclass(frozen=True)
class Cell(Axes):
    """endpoint × batch × load × level, measured for at least `requests` and `seconds`.

    With a `batch_mix`, `batch` is the largest one; so it is with a `trace` to replay, whose shares it has.

    Closed loop: `level` users. Open loop: `level` requests a second. With a `profile`, as
    users.load.profile_text reads it, `level` is its peak, and the measure phase is as long as the profile,
    whatever `requests` and `seconds` say. With a `trace`, `level` is its mean rate. The axes stand empty
    until `swarm.plan.sweep` has filled in what the study's options say.
    """

    endpoint: Endpoint
    batch: int
    level: float
    requests: int
    seconds: float
    load: str = "closed"
    trace: Replay | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Its name in ledgers, Locust's tables and reports, e.g. `onnx-grpc/b4/c1` or `onnx-grpc/b1/r50`.

        A variant follows where the study has several: `onnx-grpc/b1/c16/shared`.
        """
        letter, variant = "r" if self.open else "c", f"/{self.variant}" if self.variant else ""
        batch = "mix" if self.batch_mix else f"b{self.batch}"
        return f"{self.endpoint.name}/{batch}/{letter}{self.level:g}{variant}"

    def varied(self, **axes: Any) -> Self:
        """The same with other axes, of which its name tells."""
        names = (AXES[name].name(value) for name, value in axes.items())
        return replace(self, **axes, variant="/".join(filter(None, (self.variant, *names))))

    @property
    def by_batch(self) -> list[Self]:
        """The same for each batch that its requests have."""
        sizes = {one.batch for one in self.traffic.classes} if self.traffic else {self.batch}
        return [replace(self, batch=size) for size in sorted(sizes)]

    @property
    def traffic(self) -> Traffic | None:
        """Of which classes its requests are; None where they are all alike."""
        return self.trace or mix_of(self.batch_mix, self.picture_mix, self.batch)

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
    def fixed_s(self) -> float:
        """How long it measures, whatever comes of its requests; 0 where its load stays the same."""
        return self.course.seconds if self.course else self.seconds if self.trace else 0.0

    @property
    def quiet_s(self) -> float:
        """For how long its load may ask for nothing: in a trace, or while all users think."""
        return self.trace.quiet_s if self.trace else self.thinking.longest_s

    @property
    def thinking(self) -> ThinkTime:
        """How long its users wait after an answer."""
        return think_time(self.think or "0")

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
            **({"asked": cell.trace.asked} if cell.trace else {}),
            "requests": cell.requests,
            "seconds": cell.seconds,
            "repeat": self.repeat,
            **{name: getattr(cell.endpoint, name) for name in ("model", "codec", "space")},
            "server": cell.endpoint.shares,
            **({"confirming": True} if self.confirming else {}),
        }
