"""Classes of requests within a run, such as its batch sizes: how many there were, and how long each took."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reports.fold.records import ratio
from reports.fold.windows import Results
from reports.histogram.percentiles import Distribution


@dataclass(frozen=True, kw_only=True)
class ClassFigures:
    """The requests of one class; `share` is that of the run's requests which came back, `asked` as planned.

    `goodput_share` is of those that came back; which class an arrival was of that was never sent is not
    counted. None where a figure is unknown.
    """

    label: str
    requests: int
    failures: int
    images: int
    share: float | None
    asked: float | None = None
    latency: Distribution = field(default_factory=Distribution)
    service: Distribution = field(default_factory=Distribution)
    goodput_share: float | None = None


def class_figures(classes: Mapping[str, Results], asked: Mapping[str, float]) -> tuple[ClassFigures, ...]:
    """Those of a run by label, in order of the numbers in it."""
    whole = sum(one.finished for one in classes.values())
    return tuple(
        ClassFigures(
            label=label,
            requests=one.finished,
            failures=one.failures,
            images=one.images,
            share=ratio(one.finished, whole),
            asked=asked.get(label),
            latency=Distribution.of(one.histogram("latency")),
            service=Distribution.of(one.histogram("service_time")),
            goodput_share=ratio(one.good, one.finished),
        )
        for label in in_order(classes)
        for one in [classes[label]]
    )


def in_order(labels: Iterable[str]) -> list[str]:
    """b2 before b16, and before b16/640px."""
    return sorted(labels, key=lambda label: [_numeral(part) for part in re.split(r"(\d+)", label)])


def _numeral(part: str) -> str:
    return part.zfill(9) if part.isdigit() else part


def asked_shares(batch_mix: str, picture_mix: str) -> dict[str, float]:
    """What was planned of each class, by its label: `1:0.7,4:0.3` is 0.7 of `b1`, 0.3 of `b4`.

    Of two mixes every size is planned with every kind of picture.
    """
    batches = {f"b{size}": share for size, share in shares(batch_mix).items()} or {"": 1.0}
    kinds = {f"{kind}px" if kind.isdecimal() else kind: of for kind, of in shares(picture_mix).items()}
    pictures = kinds or {"": 1.0}
    both = {(size, kind): one * of for size, one in batches.items() for kind, of in pictures.items()}
    return {"/".join(filter(None, names)): share for names, share in both.items() if any(names)}


def shares(mix: str) -> dict[str, float]:
    """`1:0.7,4:0.3` by name; none of an empty text. Raises ValueError where a share is no number."""
    parts = (part.rpartition(":") for part in mix.split(",") if part)
    return {name.strip(): float(share) for name, _, share in parts}
