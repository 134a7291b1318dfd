"""The pods of a study: what they may do, what they may use, and where they go."""

from __future__ import annotations

from collections.abc import Sequence

from swarm.hosts.k8s import Labels
from swarm.hosts.k8s_study import ClusterStudy, Object, TokenSecret, labels

NOBODY = 65532
"""The user and group that every container runs as; the Dockerfile makes it."""
GRACE_S = 60
"""A study that is deleted may end in order: requests in flight finish, its files are written."""


def spread(pods: Labels) -> Object:
    """As even over the nodes as there is room: a full node must not keep the study from starting."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": pods},
    }


def pod(study: ClusterStudy, component: str, containers: list[Object]) -> Object:
    """A pod's template: no rights in the cluster, no root, and no eviction when nodes are given back."""
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers,
        "volumes": [{"name": "study", "configMap": {"name": study.name}}, {"name": "tmp", "emptyDir": {}}],
    }
    keep = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    return {"metadata": {"labels": labels(study, component), "annotations": keep}, "spec": spec}


def locust(study: ClusterStudy, name: str, arguments: list[str], env: Sequence[Object] = ()) -> Object:
    """A container that runs Locust on the mounted locustfile, with these variables and the study's tokens."""
    words = ["python", "-m", "locust", "-f", f"/study/{study.file}", *arguments]
    # Kubernetes replaces $(NAME) in commands; a doubled $ is one that means itself.
    command = [word.replace("$", "$$") for word in words]
    running = container(study, name, command, {"cpu": str(study.cpu), "memory": study.memory})
    return {**running, "env": env} if (env := [*env, *map(token, study.tokens)]) else running


def token(held: TokenSecret) -> Object:
    """A variable that the cluster fills from its Secret; what is in there never stands in a manifest."""
    key = {"name": held.secret, "key": held.variable}
    return {"name": held.variable, "valueFrom": {"secretKeyRef": key}}


def container(study: ClusterStudy, name: str, command: list[str], size: dict[str, str]) -> Object:
    """A container whose limits are its requests, so that the node has promised all that it may use.

    With whole cores, such a pod gets cores of its own where the kubelet's CPU manager is `static`.
    """
    return {
        "name": name,
        "image": study.image,
        "command": command,
        "resources": {"requests": dict(size), "limits": dict(size)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "study", "mountPath": "/study", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
