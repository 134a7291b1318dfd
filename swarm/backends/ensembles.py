"""What an ensemble of Triton's counts, put together from its own counters and those of its steps.

Triton's own counters of an ensemble say little: its `queue` leaves out the waits for its steps, its
executions and batch sizes are the requests, not what the model that computes joined them to, and a failure is
counted twice (server 2.51).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Count = Callable[[Mapping[str, Any]], dict[str, Any]]
"""The counters of one model from its entry in `ModelStatistics`."""

BEFORE = {"jpeg": "decode_ns"}
"""What the steps before the model do, by payload; to resize, crop and scale counts as decoding there."""
OF_ALL_STEPS = ("queue_ns", "input_ns", "output_ns")


def ensemble_counters(
    answer: Mapping[str, Any], model: str, steps: Sequence[str], payload: str, count: Count
) -> dict[str, Any]:
    """Counters of the ensemble `model`, from the statistics of all models of its server.

    The first step sees each request once, whatever comes of it. Others' requests to the model that computes
    are counted with them: they share its queue and its batches, and must not go unnoticed. Raises KeyError.
    """
    counted = {stats["name"]: count(stats) for stats in answer["model_stats"]}
    whole, first, inner = counted[model], counted[steps[0]], counted[steps[-1]]
    return {
        **inner,
        "requests": first["requests"] + inner["successes"] - whole["successes"],
        **{part: sum(counted[step][part] for step in steps) for part in OF_ALL_STEPS},
        BEFORE.get(payload, "preprocess_ns"): sum(counted[step]["compute_ns"] for step in steps[:-1]),
    }
