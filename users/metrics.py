"""Pages of metrics in Prometheus' text format, and what they tell of GPUs."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

MIB = 2**20
DCGM_FIELDS = {
    "DCGM_FI_DEV_GPU_UTIL": ("util_pct", 1),
    "DCGM_FI_DEV_FB_USED": ("memory_bytes", MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", 1e-3),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1),
}
"""Of dcgm-exporter's page, by the units of its etc/default-counters.csv: %, MiB, W, mJ, MHz."""
IDS = ("UUID", "gpu", "gpu_uuid")
"""Labels that identify the GPU of a sample, the first present one: dcgm-exporter's `gpu` is a number."""
PART_OF_GPU = "GPU_I_ID"
"""dcgm-exporter's label of samples of a MIG instance, not of the whole GPU."""
BLANK = 2.0**47
"""From here on DCGM's numbers mean that there is no value (dcgm_structs.h); older exporters print them."""


def samples(page: str, names: Collection[str]) -> Iterator[Sample]:
    """The samples of these names on a page. Raises ValueError if it is none.

    Lines are chosen before they are parsed: to parse them all is ten times the work, and beside the load.
    """
    starts = tuple(names)
    lines = [line for line in page.splitlines() if line.startswith(starts)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from (sample for sample in family.samples if sample.name in names)


def gpus_of(page: str, fields: Mapping[str, tuple[str, float]]) -> dict[str, Any]:
    """`{"gpus": […]}`, left out where a page tells of none.

    `fields`: by a metric's name our field, and how many of its units make one of theirs.
    """
    told = []
    for sample in samples(page, fields):
        field, factor = fields[sample.name]
        name = next((sample.labels[label] for label in IDS if label in sample.labels), None)
        if name is not None and PART_OF_GPU not in sample.labels and sample.value < BLANK:
            told.append((name, field, sample.value * factor))
    found = gpu_records(told)
    return {"gpus": found} if found else {}


def gpu_records(told: Iterable[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """One record a GPU from (id, field, value); a value that is no number is left out.

    >>> gpu_records([("a", "power_w", 70.5), ("a", "memory_bytes", 2.0), ("b", "power_w", math.nan)])
    [{'id': 'a', 'power_w': 70.5, 'memory_bytes': 2}]
    """
    found: dict[str, dict[str, Any]] = {}
    for gpu, field, value in told:
        if math.isfinite(value):
            kept = int(value) if field == "memory_bytes" else round(float(value), 3)
            found.setdefault(gpu, {"id": gpu})[field] = kept
    return list(found.values())
