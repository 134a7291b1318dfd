"""What the master sampled each second of a run: GPUs, whether the server could be asked, and what it cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.records import epoch_s
from reports.ledger.ledger import Record

HOUR_S = 3600


@dataclass(frozen=True)
class Gpus:
    """All GPUs together: mean utilisation, sums of memory and power, slowest clock; None where unknown."""

    util_pct: float | None = None
    memory_bytes: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None


def gpus_at(sample: Record) -> Gpus:
    """One second's reading."""
    gpus = sample.get("gpus") or ()
    util, memory, power, clock = (_of_all(gpus, name) for name in Gpus.__dataclass_fields__)
    return Gpus(
        util_pct=fmean(util) if util else None,
        memory_bytes=sum(memory) if memory else None,
        power_w=sum(power) if power else None,
        sm_clock_mhz=min(clock, default=None),
    )


def _of_all(gpus: Sequence[Record], name: str) -> list[float]:
    """Each GPU's value; none at all where one GPU lacks it, since a part is no sum."""
    found = _known(gpu.get(name) for gpu in gpus)
    return found if len(found) == len(gpus) else []


def gpus_over(samples: Iterable[Record]) -> Gpus:
    """The readings of several seconds: mean utilisation and power, most memory, slowest clock."""
    readings = [gpus_at(sample) for sample in samples]
    util, power = (_known(r.util_pct for r in readings), _known(r.power_w for r in readings))
    return Gpus(
        util_pct=fmean(util) if util else None,
        memory_bytes=max(_known(r.memory_bytes for r in readings), default=None),
        power_w=fmean(power) if power else None,
        sm_clock_mhz=min(_known(r.sm_clock_mhz for r in readings), default=None),
    )


def host_cpu_pct(samples: Iterable[Record]) -> float | None:
    """The mean over seconds of the master's machine, in percent of all its cores; None where untold."""
    found = _known((sample.get("host") or {}).get("cpu_pct") for sample in samples)
    return fmean(found) if found else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def sampling_gap(samples: Sequence[Record], phases: Sequence[Record], watched: bool) -> Caveat | None:
    """The caveat of a run where seconds of its measure phase lack the server's counters, or another source.

    `watched`: whether the run was one to be sampled at all; those of older ledgers were not.
    """
    seconds = _measured_seconds(samples, phases)
    if not watched or not seconds:
        return None
    inside = [sample for sample in samples if sample["second"] in seconds]
    read = {sample["second"] for sample in inside if sample.get("server")}
    gaps = {"server": len(seconds) - len(read)} | _failed_sources(inside)
    said = [
        f"{count} of {len(seconds)} seconds without a {name} reading{_reason(inside, name)}"
        for name, count in gaps.items()
        if count
    ]
    return caveat("probe-gap", "; ".join(said)) if said else None


def _failed_sources(samples: Iterable[Record]) -> dict[str, int]:
    """In how many seconds each source but the server could not be read."""
    names = Counter(text.partition(": ")[0] for sample in samples for text in sample.get("missing") or ())
    return {name: count for name, count in sorted(names.items()) if name != "server"}


def _measured_seconds(samples: Sequence[Record], phases: Sequence[Record]) -> range:
    """The seconds that ended in the measure phase, by the master's clock, as its samples are."""
    begins = {line["phase"]: int(epoch_s(line["utc"])) for line in phases}
    if "measure" in begins and "drain" in begins:
        return range(begins["measure"], begins["drain"])
    sampled = [sample["second"] for sample in samples if sample["phase"] == "measure"]
    return range(min(sampled), max(sampled) + 1) if sampled else range(0)


def _reason(samples: Iterable[Record], name: str) -> str:
    """What was said of a source most often, in brackets; empty where nothing was."""
    texts = [text for sample in samples for text in sample.get("missing") or ()]
    said = Counter(text.removeprefix(f"{name}: ") for text in texts if text.startswith(f"{name}: "))
    return f" ({said.most_common(1)[0][0]})" if said else ""


def costs(
    images_per_s: float | None, power_w: float | None, options: Mapping[str, Any]
) -> dict[str, float | None]:
    """Images for a US dollar, joules for an image; None where rate, price or power is unknown or 0.

    `options` are the header's: `usd_per_hour` is what the servers cost together. `power_w` is the mean over
    the measure phase of all GPUs that were sampled, with what they draw idle.
    """
    usd = options.get("usd_per_hour")
    return {
        "images_per_usd": images_per_s * HOUR_S / usd if images_per_s and usd else None,
        "joules_per_image": power_w / images_per_s if images_per_s and power_w else None,
    }


def gpu_count(samples: Iterable[Record]) -> int | None:
    """The most GPUs that a second of the measure phase had readings of; None where none had."""
    return max((len(sample.get("gpus") or ()) for sample in samples), default=0) or None
