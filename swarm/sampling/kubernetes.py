"""Kubernetes' view of the service under test, once a second: its replicas, its autoscaler, its pods.

Plain HTTP to `kubectl proxy`, which keeps the credentials; three small answers need no client library.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from swarm.errors import UsageError
from swarm.options.addresses import place_of
from swarm.options.model import Options, flag
from users.errors import ErrorKind, RequestError
from users.transport.admin_connection import PATIENCE_S, AdminConnection, Read

PROXY = "run `kubectl proxy` and give its address, e.g. http://127.0.0.1:8001"
NO_COUNTERS = "the URL is a Service of several pods, and each pod counts only its own requests"
MILLI = {"n": 1e-6, "u": 1e-3, "m": 1.0, "": 1e3, "k": 1e6}
"""Thousandths per unit of a quantity."""


@dataclass(frozen=True)
class Cluster:
    """The Deployment to watch, and what belongs to it, by the paths of the API at `address`.

    `autoscaler` and `pods` are empty where there is nothing to be read.
    """

    address: str
    deployment: str
    autoscaler: str = ""
    pods: str = ""

    @contextmanager
    def reads(self, timeout_s: float) -> Iterator[dict[str, Read]]:
        """What to read each second, by name, over a connection each: one must not wait for another."""
        parses: dict[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
            "deployment": (self.deployment, deployment_reading),
            "autoscaler": (self.autoscaler, autoscaler_reading),
            "pods": (self.pods, pods_reading),
        }
        with ExitStack() as stack:
            yield {
                name: reader(
                    stack.enter_context(closing(AdminConnection(self.address, timeout_s))), path, parse
                )
                for name, (path, parse) in parses.items()
                if path
            }


def reader(
    connection: AdminConnection, path: str, parse: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> Read:
    """Asks for one object. Readings raise RequestError, or what an answer of another form leads to."""
    return lambda: parse(connection.get_json(path))


def no_counters() -> dict[str, Any]:
    """In place of a server's counters, which only one server can tell."""
    raise RequestError(ErrorKind.OTHER, NO_COUNTERS)


def cluster_of(options: Options, say: Callable[[str], None]) -> Cluster | None:
    """The Deployment that the options name, found and readable; None where they name no API.

    Raises UsageError with one sentence. What is missing beside it is said, and the study goes on.
    """
    if not options.kube_url:
        return None
    address = plain_address(options.kube_url)
    core, apps = (
        f"/{group}/namespaces/{quote(options.kube_namespace)}" for group in ("api/v1", "apis/apps/v1")
    )
    found = deployment_of(address, core, f"{apps}/deployments", options)
    scaling = f"/apis/autoscaling/v2/namespaces/{quote(options.kube_namespace)}/horizontalpodautoscalers"
    autoscaler = autoscaler_of(address, scaling, options.kube_deployment)
    if not autoscaler:
        say(f"--kube-deployment {options.kube_deployment}: has no autoscaler; only its replicas are recorded")
    path = f"{apps}/deployments/{quote(options.kube_deployment)}"
    return Cluster(address, path, autoscaler, pods_path(core, found))


def plain_address(url: str) -> str:
    """`host:port` of `kubectl proxy`. Raises UsageError; credentials are never taken, and so never kept."""
    if url.startswith("https:") or "@" in url or "?" in url or "token" in url.lower():
        raise UsageError(f"--kube-url: takes neither https nor credentials; {PROXY}")
    try:
        return place_of("--kube-url", url).address
    except UsageError:
        raise UsageError(f"--kube-url {url!r}: {PROXY}") from None


def deployment_of(address: str, core: str, path: str, options: Options) -> Mapping[str, Any]:
    """The Deployment. Raises UsageError where it, its namespace or the API is not there."""
    name, namespace = options.kube_deployment, options.kube_namespace
    status, found = ask(address, f"{path}/{quote(name)}")
    if status == 200 and found.get("kind") == "Deployment":
        return found
    if status in (401, 403):
        raise UsageError(
            f"--kube-url {options.kube_url}: `kubectl proxy` may not read deployments in {namespace};"
            " run it as a user with that right"
        )
    if status != 404 or found.get("kind") != "Status":
        raise UsageError(f"--kube-url {options.kube_url}: answers, but not as a Kubernetes API; {PROXY}")
    if ask(address, core)[0] == 404:
        raise UsageError(
            f"--kube-namespace {namespace}: there is no such namespace; see `kubectl get namespaces`"
        )
    names = sorted(item["metadata"]["name"] for item in items(ask(address, path)[1]))
    held = f"it has {', '.join(names)}" if names else "it has none"
    raise UsageError(f"--kube-deployment {name}: namespace {namespace} has no such deployment ({held})")


def autoscaler_of(address: str, path: str, deployment: str) -> str:
    """The path of the autoscaler whose target the Deployment is; empty where there is none to be seen."""
    for item in items(ask(address, path)[1]):
        target = item["spec"]["scaleTargetRef"]
        if (target["kind"], target["name"]) == ("Deployment", deployment):
            return f"{path}/{quote(item['metadata']['name'])}"
    return ""


def pods_path(core: str, deployment: Mapping[str, Any]) -> str:
    """Where the Deployment's pods are listed; empty where labels alone do not choose them."""
    selector = deployment["spec"]["selector"]
    if selector.get("matchExpressions") or not selector.get("matchLabels"):
        return ""
    labels = ",".join(f"{name}={value}" for name, value in sorted(selector["matchLabels"].items()))
    return f"{core}/pods?{urlencode({'labelSelector': labels})}"


def ask(address: str, path: str) -> tuple[int, Mapping[str, Any]]:
    """Status and object of one answer, once, before any load. Raises UsageError where nobody answers."""
    try:
        with closing(AdminConnection(address, PATIENCE_S)) as connection:
            answer = connection.ask("GET", path)
    except RequestError as error:
        why = "no answer in time" if error.kind == ErrorKind.TIMEOUT else "nothing answers there"
        raise UsageError(
            f"{flag('kube_url')} http://{address}: cannot be reached ({why}); {PROXY}"
        ) from error
    try:
        found = answer.json()
    except ValueError:
        found = {}
    return answer.status, found if isinstance(found, dict) else {}


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
        raise ValueError(f"{quantity!r} is not a CPU quantity")
    return round(float(parts[1]) * MILLI[parts[2]], 6)
