"""What a run's images cost: in money by a declared price, in energy by the power that was sampled."""

from collections.abc import Iterable, Mapping
from typing import Any

from reports.ledger.ledger import Record

HOUR_S = 3600


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
