"""Pages of metrics in Prometheus' text format, and what they tell of GPUs."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from users.errors import ErrorKind, RequestError
from users.redact import quoted

MIB = 2**20
DCGM_FIELDS = {
    "DCGM_FI_DEV_GPU_UTIL": ("util_pct", 1),
    "DCGM_FI_DEV_FB_USED": ("memory_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE": ("memory_free_bytes", MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total_bytes", MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", 1),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", 1e-3),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1),
    "DCGM_FI_DEV_MAX_SM_CLOCK": ("max_sm_clock_mhz", 1),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle_reasons", 1),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_reasons", 1),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("pcie_gen", 1),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("pcie_width", 1),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": ("max_pcie_gen", 1),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": ("max_pcie_width", 1),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx_bytes_per_s", 1),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx_bytes_per_s", 1),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active_pct", 100),
}
"""Of dcgm-exporter's page, by the units of its etc/default-counters.csv: %, MiB, W, mJ, MHz, a fraction.

Of clocks it tells by one of two names, an older and a newer one. Some are on the page only if they are asked
for in its counters' file, `DCGM_FI_PROF_SM_ACTIVE` among them.
"""
IDS = ("UUID", "uuid", "gpu", "gpu_uuid")
"""Labels that identify the GPU of a sample, the first present one: dcgm-exporter's `gpu` is a number."""
WHOLE = frozenset(
    {
        *("memory_bytes", "memory_free_bytes", "memory_total_bytes", "throttle_reasons", "other_processes"),
        *("pcie_gen", "max_pcie_gen", "pcie_width", "max_pcie_width"),
    }
)
"""Fields that are whole numbers. `throttle_reasons` are bits, as NVML and DCGM number them."""
FLAGS = frozenset({"serves", "visible", "mig"})
"""Fields that are true or false."""
PART_OF_GPU = "GPU_I_ID"
"""dcgm-exporter's label of samples of a MIG instance, not of the whole GPU."""
SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+[-+]?(?:\.?\d|Inf|NaN)", re.ASCII | re.MULTILINE)
"""The name in a line of a page that has a value."""
MOST_NEAR, LEAST_ALIKE, SHOWN = 3, 0.5, 60
"""Names that are shown in place of one that is not there, how like it they are, and characters of no page."""
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


def total(page: str, name: str) -> float:
    """A counter, summed over all its samples. Raises RequestError with the reason why it is unknown.

    >>> total('waits_sum{model="a"} 1.5\\nwaits_sum{model="b"} 2', "waits_sum")
    3.5
    """
    values = [one.value for one in samples(page, {name})]
    if not values:
        raise RequestError(ErrorKind.BAD_REPLY, missing(page, name))
    if re.search(rf"^# TYPE {re.escape(name)} gauge\s*$", page, re.MULTILINE):
        raise RequestError(ErrorKind.BAD_REPLY, f"{name} is a gauge; name a counter, which only grows")
    if not math.isfinite(sum(values)):
        raise RequestError(ErrorKind.BAD_REPLY, f"{name} is {sum(values)}, which is no count")
    return sum(values)


def missing(page: str, name: str) -> str:
    """The reason why a page has no metric of a name, with those that are like it."""
    names = sorted(set(SAMPLE.findall(page)))
    if not names:
        return f"the page has no metrics; it begins with {quoted(page)[:SHOWN]!r}"
    near = difflib.get_close_matches(name, names, MOST_NEAR, LEAST_ALIKE)
    others = f"it has {', '.join(near)}" if near else f"none of its {len(names)} names is like it"
    return f"the page has no metric {name}; {others}"


def identity(page: str, started: str) -> dict[str, str]:
    """`{"identity": …}` of the process that wrote a page, by the metric that tells when it started.

    Left out where the page does not have it, or is put together of several processes' pages.

    >>> identity('started_seconds{host="a"} 1795258800.25', "started_seconds")
    {'identity': 'a/1795258800.250'}
    """
    found = list(samples(page, {started}))
    if len(found) != 1:
        return {}
    return {"identity": f"{found[0].labels.get('host', '')}/{found[0].value:.3f}"}


def gpus_of(page: str, fields: Mapping[str, tuple[str, float]]) -> dict[str, Any]:
    """`{"gpus": […]}`, left out where a page tells of none. `mig`: it tells of parts of the GPU, too.

    `fields`: by a metric's name our field, and how many of its units make one of theirs.
    """
    told: list[tuple[str, str, float]] = []
    for sample in samples(page, fields):
        field, factor = fields[sample.name]
        name = _id_of(sample)
        if name is not None and PART_OF_GPU not in sample.labels and sample.value < BLANK:
            told.append((name, field, sample.value * factor))
    found = gpu_records([*told, *((name, "mig", True) for name in _in_parts(page))])
    return {"gpus": found} if found else {}


def _id_of(sample: Sample) -> str | None:
    return next((sample.labels[label] for label in IDS if sample.labels.get(label)), None)


def _in_parts(page: str) -> list[str]:
    """The GPUs of whose MIG instances the page tells: by one metric that it has of instances."""
    line = next((line for line in page.splitlines() if PART_OF_GPU in line), "")
    found = samples(page, {line.partition("{")[0]}) if line else ()
    return [name for one in found if PART_OF_GPU in one.labels and (name := _id_of(one)) is not None]


def joined(gpus: Sequence[Mapping[str, Any]], more: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """GPUs that one source told of, with what another tells of the same ones.

    What the first says of a GPU stands. The others that the second tells of are not the server's.

    >>> joined([{"id": "a", "power_w": 70.0}], [{"id": "a", "power_w": 9.0, "mig": True}, {"id": "b"}])
    [{'id': 'a', 'power_w': 70.0, 'mig': True}]
    """
    by_id = {gpu.get("id"): gpu for gpu in more}
    return [{**by_id.get(gpu.get("id"), {}), **gpu} for gpu in gpus]


def gpu_records(told: Iterable[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """One record a GPU from (id, field, value); a value that is no number is left out.

    >>> gpu_records([("a", "power_w", 70.5), ("a", "memory_bytes", 2.0), ("b", "power_w", math.nan)])
    [{'id': 'a', 'power_w': 70.5, 'memory_bytes': 2}]
    """
    found: dict[str, dict[str, Any]] = {}
    for gpu, field, value in told:
        if math.isfinite(value):
            found.setdefault(gpu, {"id": gpu})[field] = _kept(field, value)
    return list(found.values())


def _kept(field: str, value: float) -> float:
    if field in FLAGS:
        return bool(value)
    return int(value) if field in WHOLE else round(float(value), 3)
