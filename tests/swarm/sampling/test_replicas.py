"""Readings of a Deployment, its autoscaler and its pods: what is told, and what is not invented."""

import pytest

from swarm.sampling.kubernetes import autoscaler_reading, deployment_reading, millicores, pods_reading


def test_a_count_that_is_zero_is_not_in_the_answer() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    found = deployment_reading({"spec": {"replicas": 4}, "status": {"replicas": 3, "conditions": [failure]}})
    counts = {"replicas": 3, "desired_replicas": 4, "ready_replicas": 0, "unavailable_replicas": 0}
    assert found == {**counts, "replica_failure": "exceeded quota"}


def test_an_autoscaler_without_metrics_says_so_and_invents_nothing() -> None:
    inactive = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}
    found = autoscaler_reading({"spec": {"maxReplicas": 6}, "status": {"conditions": [inactive]}})
    assert found == {"hpa_min": 1, "hpa_max": 6, "hpa_inactive": "FailedGetResourceMetric"}
    memory, cpu = {"resource": {"name": "memory"}}, {"name": "cpu", "target": {"averageUtilization": 60}}
    current = {"name": "cpu", "current": {"averageUtilization": 90, "averageValue": "450m"}}
    spec = {"minReplicas": 2, "maxReplicas": 6, "metrics": [memory, {"containerResource": cpu}]}
    status = {"currentMetrics": [memory, {"resource": current}]}
    bounds = {"hpa_min": 2, "hpa_max": 6, "hpa_target_cpu_pct": 60}
    read = {"cpu_pct_of_request": 90, "cpu_millicores": 450}
    assert autoscaler_reading({"spec": spec, "status": status}) == bounds | read


def test_pods_that_wait_and_pods_that_restarted() -> None:
    pods = [{"status": {"phase": "Pending"}}, {"status": {"containerStatuses": [{"restartCount": 3}]}}]
    assert pods_reading({"items": pods}) == {"pending_pods": 1, "restarts": 3}


@pytest.mark.parametrize(
    ("text", "found"),
    [("250m", 250), ("2", 2_000), ("0.5", 500), ("1500000n", 1.5), ("1500u", 1.5), ("1k", 1e6)],
)
def test_quantities(text: str, found: float) -> None:
    assert millicores(text) == found


def test_other_units_are_refused() -> None:
    with pytest.raises(ValueError, match="'5Mi' is not a CPU quantity"):
        millicores("5Mi")
