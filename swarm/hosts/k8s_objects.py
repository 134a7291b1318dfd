"""The Kubernetes objects of one study, each made by a pure function."""

from __future__ import annotations

from swarm.hosts.k8s import MASTER_PORT, deny_all, into_master, to_master, to_targets
from swarm.hosts.k8s_pods import container, locust, pod, spread
from swarm.hosts.k8s_study import ClusterStudy, Object, head, labels

WORKERS_WAIT_S = 600
"""A master whose workers cannot be scheduled gives up after this, rather than never."""
UNTIL_FETCHED = "trap 'exit 0' TERM; until [ -e /tmp/fetched ]; do sleep 1; done"
RESULTS_SIZE = {"cpu": "100m", "memory": "128Mi"}


def objects(study: ClusterStudy) -> list[Object]:
    """All of them, in the order in which they are to be made: nothing runs before its policies are there."""
    master, workers = labels(study, "master"), labels(study, "worker")
    return [
        namespace(study),
        policy(study, "default-deny", deny_all()),
        policy(study, study.name, to_targets(labels(study), study.targets)),
        policy(study, study.master, into_master(master, workers)),
        policy(study, f"{study.name}-worker", to_master(master, workers)),
        config_map(study),
        service(study),
        master_job(study),
        worker_job(study),
    ]


def namespace(study: ClusterStudy) -> Object:
    """The study's own namespace; the cluster refuses pods in it that do not meet the restricted standard."""
    marks = {"app.kubernetes.io/name": "inferswarm", "pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": study.namespace, "labels": marks}}


def policy(study: ClusterStudy, name: str, spec: Object) -> Object:
    """A NetworkPolicy."""
    return {**head(study, "networking.k8s.io/v1", "NetworkPolicy", name), "spec": spec}


def config_map(study: ClusterStudy) -> Object:
    """The locustfile. Its options stand in the command, so that ledger and `kubectl describe` show them."""
    return {**head(study, "v1", "ConfigMap", study.name), "data": {study.file: study.text}}


def service(study: ClusterStudy) -> Object:
    """A name for the master's pod, which workers may use before the master is ready."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels(study, "master"),
        "ports": [{"name": "locust", "protocol": "TCP", "port": MASTER_PORT, "targetPort": MASTER_PORT}],
    }
    return {**head(study, "v1", "Service", study.master, "master"), "spec": spec}


def master_job(study: ClusterStudy) -> Object:
    """The study runs once; beside it, an idle container keeps the results until they have been fetched."""
    results = {"name": "results", "mountPath": "/results"}
    arguments = [
        "--headless",
        "--master",
        # For the workers' pods; the policies above keep all others out.
        "--master-bind-host=*",
        f"--expect-workers={study.workers}",
        f"--expect-workers-max-wait={WORKERS_WAIT_S}",
        "--results-dir=/results",
        *study.options,
    ]
    running = locust(study, "study", arguments)
    running["volumeMounts"].append(results)
    keeping = container(study, "results", ["sh", "-c", UNTIL_FETCHED], RESULTS_SIZE)
    keeping["volumeMounts"].append(results)
    template = pod(study, "master", [running, keeping])
    template["spec"]["volumes"].append({"name": "results", "emptyDir": {}})
    return {
        **head(study, "batch/v1", "Job", study.master, "master"),
        "spec": {"backoffLimit": 0, "template": template},
    }


def worker_job(study: ClusterStudy) -> Object:
    """The workers, spread over the nodes; one that is lost is replaced once, and takes no other with it."""
    node = {"name": "INFERSWARM_HOST", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    running = locust(study, "worker", ["--worker", f"--master-host={study.master}"], [node])
    template = pod(study, "worker", [running])
    template["spec"]["topologySpreadConstraints"] = [spread(labels(study, "worker"))]
    counts = {"completions": study.workers, "parallelism": study.workers}
    return {
        **head(study, "batch/v1", "Job", f"{study.name}-worker", "worker"),
        "spec": {"completionMode": "Indexed", **counts, "backoffLimitPerIndex": 1, "template": template},
    }
