"""What Triton counts of a model, and its page of metrics.

Its own counters of an ensemble say little: its `queue` leaves out the waits for its steps, its executions and
batch sizes are the requests, not what the model that computes joined them to, and a failure is counted twice
(server 2.51). So they are put together from its own and those of its steps.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from users.endpoint import Endpoint
from users.metrics import DCGM_FIELDS, gpus_of, samples
from users.transport.admin_connection import Read
from users.triton.api import open_api, queues_of, steps_behind

BEFORE = {"jpeg": "decode_ns"}
"""What the steps before the model do, by payload; resizing, cropping and scaling count as decoding there."""
OF_ALL_STEPS = ("queue_ns", "input_ns", "output_ns")
PENDING = "nv_inference_pending_request_count"
OF_TRITON = "nv_gpu_"
"""How all names begin that a page of Triton's own has of GPUs."""
GPU_FIELDS = {
    "nv_gpu_utilization": ("util_pct", 100),
    "nv_gpu_memory_used_bytes": ("memory_bytes", 1),
    "nv_gpu_memory_total_bytes": ("memory_total_bytes", 1),
    "nv_gpu_power_usage": ("power_w", 1),
    "nv_gpu_power_limit": ("power_limit_w", 1),
    "nv_energy_consumption": ("energy_j", 1),
}


@contextmanager
def counter_reader(endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    """Reads the counters of the endpoint's model over one connection, as Backend says."""
    # An ensemble's steps are found out at the first time.
    steps_once = functools.cache(lambda: steps_behind(endpoint))
    with open_api(endpoint, timeout_s) as api:

        def read() -> dict[str, Any]:
            if steps := steps_once():
                return {"server": ensemble_counters(api.statistics(), endpoint, steps)}
            stats = own_stats(api.statistics(endpoint.model), endpoint.version)
            version = {"version": str(stats["version"])} if stats.get("version") else {}
            return {"server": counted(stats), **version}

        yield read


def own_stats(answer: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """The entry of a version among a model's statistics, or of the newest. Raises LookupError."""
    found: Sequence[Mapping[str, Any]] = answer["model_stats"]
    if version:
        found = [stats for stats in found if str(stats.get("version")) == version]
    if not found:
        raise LookupError(f"no statistics of the model{f', version {version}' if version else ''}")
    return max(found, key=lambda stats: int(stats.get("version") or 0))


def counted(stats: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of one model from its entry in `ModelStatistics`, and its executions by batch size."""
    return triton_counters(stats) | {"batches": triton_batches(stats)}


def step_counters(of: Mapping[str, Any]) -> dict[str, int]:
    """What tells how full one step of an ensemble is, from the counters of its model.

    `work_ns` is charged to each request in full; `executing_ns`, left out where executions are not told by
    their size, has each execution once.
    """
    executing_ns = sum(time_ns for _, time_ns in of["batches"].values())
    return {
        **{name: of[name] for name in ("successes", "executions", "queue_ns")},
        "work_ns": sum(of[name] for name in ("input_ns", "compute_ns", "output_ns")),
        **({"executing_ns": executing_ns} if executing_ns else {}),
    }


def triton_batches(stats: Mapping[str, Any]) -> dict[str, list[int]]:
    """By executed batch size: how many executions, and the time of all of them, input and output included."""
    parts = ("compute_input", "compute_infer", "compute_output")
    return {
        str(of["batch_size"]): [
            int(of["compute_infer"]["count"]),
            sum(int(of.get(part, {}).get("ns", 0)) for part in parts),
        ]
        for of in stats.get("batch_stats", ())
    }


def triton_counters(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Counters from `ModelStatistics`; protobuf's JSON writes 64-bit numbers as text and leaves zeros out."""
    parts = stats.get("inference_stats", {})

    def of(name: str, what: str) -> int:
        return int(parts.get(name, {}).get(what, 0))

    cache = {
        "cache_hits": of("cache_hit", "count"),
        "cache_queries": of("cache_hit", "count") + of("cache_miss", "count"),
        "cache_ns": of("cache_hit", "ns") + of("cache_miss", "ns"),
    }
    return {
        "requests": of("success", "count") + of("fail", "count"),
        "successes": of("success", "count"),
        "images": int(stats.get("inference_count", 0)),
        "executions": int(stats.get("execution_count", 0)),
        "queue_ns": of("queue", "ns"),
        "input_ns": of("compute_input", "ns"),
        "compute_ns": of("compute_infer", "ns"),
        "output_ns": of("compute_output", "ns"),
        **(cache if cache["cache_queries"] else {}),
    }


def ensemble_counters(answer: Mapping[str, Any], endpoint: Endpoint, steps: Sequence[str]) -> dict[str, Any]:
    """Counters of the endpoint's model, an ensemble, from the statistics of all models of its server.

    The first step sees each request once, whatever comes of it, but for those that the ensemble's own cache
    answers. Others' requests to the model that computes are counted with them: they share its queue and its
    batches, and must not go unnoticed. Raises KeyError.
    """
    found = {stats["name"]: counted(stats) for stats in answer["model_stats"]}
    whole, first, inner = found[endpoint.model], found[steps[0]], found[steps[-1]]
    cached = whole.get("cache_hits", 0)
    return {
        **inner,
        **cache_counters([whole, *(found[step] for step in steps)]),
        "requests": first["requests"] + cached + inner["successes"] - (whole["successes"] - cached),
        "successes": inner["successes"] + cached,
        **{part: sum(found[step][part] for step in steps) for part in OF_ALL_STEPS},
        BEFORE.get(endpoint.payload, "preprocess_ns"): sum(found[step]["compute_ns"] for step in steps[:-1]),
        "steps": {step: step_counters(found[step]) for step in steps},
    }


def cache_counters(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Of an ensemble and its steps together; nothing where none has a cache."""
    asked = max(of.get("cache_queries", 0) for of in each)
    sums = {name: sum(of.get(name, 0) for of in each) for name in ("cache_hits", "cache_ns")}
    return {**sums, "cache_queries": asked} if asked else {}


def metrics_of(endpoint: Endpoint) -> Callable[[str], dict[str, Any]]:
    """How its page of metrics is read: what waits where the endpoint's requests wait, and GPUs."""
    return functools.partial(parse, models=queues_of(endpoint))


def parse(page: str, models: Sequence[str]) -> dict[str, Any]:
    """`{"pending_requests": n, "gpus": […]}`, either left out where the page does not tell.

    What is pending is summed over the models and their versions. The page may be dcgm-exporter's as well,
    which tells of all GPUs of its machine; Triton's own tells of those that are visible to it.
    """
    pending = [one.value for one in samples(page, {PENDING}) if one.labels["model"] in models]
    told = {"pending_requests": int(sum(pending))} if pending else {}
    found = gpus_of(page, {**DCGM_FIELDS, **GPU_FIELDS})
    if OF_TRITON in page:
        found = {name: [{**gpu, "visible": True} for gpu in gpus] for name, gpus in found.items()}
    return {**told, **found}
