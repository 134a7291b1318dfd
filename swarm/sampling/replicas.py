"""What the Kubernetes API's objects say: a Deployment's replicas, its autoscaler's mind, its pods. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

MILLI = {"n": 1e-6, "u": 1e-3, "m": 1.0, "": 1e3, "k": 1e6}
"""How many thousandths one of a quantity's unit is."""


def items(listed: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What a list of the API holds; nothing where it is none."""
    return listed.get("items") or ()


def deployment_reading(found: Mapping[str, Any]) -> dict[str, Any]:
    """Replicas asked for, there, ready. The API leaves out a count in `status` that is 0."""
    status = found.get("status", {})
    counts = {name: status.get(f"{name}Replicas", 0) for name in ("ready", "unavailable")}
    failure = condition(found, "ReplicaFailure")
    return {
        "replicas": status.get("replicas", 0),
        "desired_replicas": found["spec"]["replicas"],
        **{f"{name}_replicas": count for name, count in counts.items()},
        # A quota, for instance, that has no room for another pod.
        **({"replica_failure": failure["message"]} if failure.get("status") == "True" else {}),
    }


def autoscaler_reading(found: Mapping[str, Any]) -> dict[str, Any]:
    """Its bounds, its target and the CPU it goes by, in percent of a pod's request; no more than it has."""
    spec, status = found["spec"], found.get("status", {})
    target = cpu_of(spec.get("metrics") or (), "target")
    current = cpu_of(status.get("currentMetrics") or (), "current")
    inactive = condition(found, "ScalingActive")
    told = {
        "hpa_min": spec.get("minReplicas", 1),
        "hpa_max": spec["maxReplicas"],
        "hpa_target_cpu_pct": target.get("averageUtilization"),
        "cpu_pct_of_request": current.get("averageUtilization"),
        "cpu_millicores": millicores(current["averageValue"]) if "averageValue" in current else None,
        "hpa_inactive": inactive.get("reason") if inactive.get("status") == "False" else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def cpu_of(metrics: Sequence[Mapping[str, Any]], side: str) -> Mapping[str, Any]:
    """The `target` or `current` of the CPU among an autoscaler's metrics; empty where it goes by others."""
    for metric in metrics:
        resource = metric.get("resource") or metric.get("containerResource") or {}
        if resource.get("name") == "cpu":
            found: Mapping[str, Any] = resource.get(side) or {}
            return found
    return {}


def pods_reading(found: Mapping[str, Any]) -> dict[str, Any]:
    """How many pods wait for a node or an image, and how often containers have been restarted."""
    statuses = [pod.get("status", {}) for pod in items(found)]
    containers = (one for status in statuses for one in status.get("containerStatuses") or ())
    return {
        "pending_pods": sum(status.get("phase") == "Pending" for status in statuses),
        "restarts": sum(one["restartCount"] for one in containers),
    }


def condition(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """One of an object's conditions; empty where it has none of that type."""
    known = found.get("status", {}).get("conditions") or ()
    return next((one for one in known if one["type"] == name), {})


def millicores(quantity: str) -> float:
    """Thousandths of a core. Raises ValueError.

    >>> millicores("250m"), millicores("2"), millicores("1500000n")
    (250.0, 2000.0, 1.5)
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([numk]?)", quantity)
    if parts is None:
        raise ValueError(f"{quantity!r} is no quantity of CPU")
    return round(float(parts[1]) * MILLI[parts[2]], 6)
