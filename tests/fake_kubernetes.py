"""A stand-in for the Kubernetes API as `kubectl proxy` serves it: one Deployment and what belongs to it.

    python tests/fake_kubernetes.py PORT [--service HOST:PORT] [--at 30:4,90:6] [--lag-s 2] [--no-autoscaler]

Real HTTP, the objects' real form. It has 2 replicas until the stand-in service at --service has seen so many
requests (`--at REQUESTS:REPLICAS`); other numbers are ready `--lag-s` later. CPU is at 90 % of its request
from half the requests of the next step on, else at 30.
"""

import argparse
import json
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

from gevent.pywsgi import WSGIServer

Start = Callable[[str, list[tuple[str, str]]], Any]
NAMESPACE = DEPLOYMENT = "inferswarm-server"
TARGET_PCT, LEAST, MOST = 60, 2, 6


class Cluster:
    """The objects by path, as they are now; `seen` says how many requests the service has had."""

    def __init__(self, steps: dict[int, int], lag_s: float, seen: Callable[[], int]) -> None:
        self.steps, self.lag_s, self.seen = steps, lag_s, seen
        self.asked: dict[int, float] = {LEAST: 0.0}
        """When each number of replicas was asked for."""
        self.autoscaler = True

    def paths(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Every path that answers."""
        apps, scaling = "/apis/apps/v1", "/apis/autoscaling/v2"
        of = f"/namespaces/{NAMESPACE}"
        scalers = {f"{scaling}{of}/horizontalpodautoscalers/{DEPLOYMENT}-cpu": self.scaler}
        return {
            f"/api/v1{of}": lambda: {"kind": "Namespace", "metadata": {"name": NAMESPACE}},
            f"/api/v1{of}/pods": self.pods,
            f"{apps}{of}/deployments": lambda: listed("Deployment", [self.deployment()]),
            f"{apps}{of}/deployments/{DEPLOYMENT}": self.deployment,
            f"{scaling}{of}/horizontalpodautoscalers": self.scalers,
            **(scalers if self.autoscaler else {}),
        }

    @property
    def desired(self) -> int:
        """What the autoscaler wants by now."""
        seen = self.seen()
        wanted = max([LEAST, *(replicas for least, replicas in self.steps.items() if seen >= least)])
        self.asked.setdefault(wanted, time.monotonic())
        return wanted

    @property
    def ready(self) -> int:
        """What it wanted a while ago."""
        now, desired = time.monotonic(), self.desired
        ready = [n for n, at in self.asked.items() if n == LEAST or now >= at + self.lag_s]
        return max(n for n in ready if n <= desired)

    @property
    def cpu_pct(self) -> int:
        """Busy from half the requests of the next step on."""
        seen = self.seen()
        coming = [least for least in self.steps if seen < least]
        return 90 if coming and seen >= min(coming) / 2 else 30

    def deployment(self) -> dict[str, Any]:
        """With `unavailableReplicas` left out where it is 0, as the API does."""
        desired, ready = self.desired, self.ready
        waiting = {"unavailableReplicas": desired - ready} if desired > ready else {}
        return {
            "kind": "Deployment",
            "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
            "spec": {"replicas": desired, "selector": {"matchLabels": {"app": DEPLOYMENT}}},
            "status": {"replicas": desired, "readyReplicas": ready, **waiting, "conditions": []},
        }

    def scaler(self) -> dict[str, Any]:
        """An autoscaling/v2 HorizontalPodAutoscaler by CPU."""
        current = {"averageUtilization": self.cpu_pct, "averageValue": f"{5 * self.cpu_pct}m"}
        target = {"type": "Utilization", "averageUtilization": TARGET_PCT}
        wanted = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        found = {"type": "Resource", "resource": {"name": "cpu", "current": current}}
        active = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
        scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": DEPLOYMENT}
        metadata = {"name": f"{DEPLOYMENT}-cpu", "namespace": NAMESPACE}
        spec = {"scaleTargetRef": scaled, "minReplicas": LEAST, "maxReplicas": MOST, "metrics": [wanted]}
        status = {"currentReplicas": self.ready, "desiredReplicas": self.desired}
        status |= {"currentMetrics": [found], "conditions": [active]}
        return {"kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec, "status": status}

    def scalers(self) -> dict[str, Any]:
        """The one, or none."""
        return listed("HorizontalPodAutoscaler", [self.scaler()] if self.autoscaler else [])

    def pods(self) -> dict[str, Any]:
        """One for each replica; those that are not ready are pending."""
        ready = self.ready
        made = []
        for number in range(self.desired):
            container = {"name": "service", "restartCount": 0, "ready": number < ready}
            phase = "Running" if number < ready else "Pending"
            status = {"phase": phase, "containerStatuses": [container]}
            made.append({"metadata": {"name": f"{DEPLOYMENT}-{number}"}, "status": status})
        return listed("Pod", made)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """WSGI."""
        answer = self.paths().get(environ["PATH_INFO"])
        if answer is None:
            start("404 Not Found", [("Content-Type", "application/json")])
            return [json.dumps({"kind": "Status", "status": "Failure", "code": 404}).encode()]
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer()).encode()]


def listed(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """A list of the API."""
    return {"kind": f"{kind}List", "items": items}


def requests_of(service: str) -> Callable[[], int]:
    """Reads the stand-in service's count, at most ten times a second; 0 without a service."""
    last = [0.0, 0.0]

    def seen() -> int:
        if service and time.monotonic() - last[0] > 0.1:
            with urllib.request.urlopen(f"http://{service}/metrics", timeout=2) as page:
                lines = page.read().decode().splitlines()
            (line,) = [line for line in lines if line.startswith("inferswarm_requests_total")]
            last[:] = [time.monotonic(), float(line.split()[1])]
        return int(last[1])

    return seen


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    for option in ("--service", "--at"):
        parser.add_argument(option, default="")
    parser.add_argument("--lag-s", type=float, default=2)
    parser.add_argument("--no-autoscaler", action="store_true")
    options = parser.parse_args()
    steps = {int(least): int(n) for least, n in (p.split(":") for p in options.at.split(",") if p)}
    cluster = Cluster(steps, options.lag_s, requests_of(options.service))
    cluster.autoscaler = not options.no_autoscaler
    WSGIServer(("127.0.0.1", options.port), cluster, log=None).serve_forever()


if __name__ == "__main__":
    main()
