"""A study as a cluster is told of it, and what all its objects have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swarm.hosts.k8s import Labels, Target

Object = dict[str, Any]


@dataclass(frozen=True)
class TokenSecret:
    """The Secret that holds a token, under the name of the variable that both processes read it from."""

    variable: str
    secret: str


@dataclass(frozen=True)
class ClusterStudy:
    """A study as a cluster is told of it.

    `name` begins the objects' names; `file` is the locustfile's name, `text` what is in it; `options` are the
    study's, as typed; `cpu` is whole cores and `memory` such as `1Gi`, of each worker and of the master.
    """

    name: str
    namespace: str
    image: str
    file: str
    text: str
    options: tuple[str, ...]
    targets: tuple[Target, ...]
    workers: int
    cpu: int
    memory: str
    tokens: tuple[TokenSecret, ...] = ()

    @property
    def master(self) -> str:
        """The name of the master's Job, and of the Service by which workers find it."""
        return f"{self.name}-master"


def labels(study: ClusterStudy, component: str = "") -> Labels:
    """The recommended labels: of one component, or what all of them share."""
    shared = {"app.kubernetes.io/name": "inferswarm", "app.kubernetes.io/instance": study.name}
    return {**shared, "app.kubernetes.io/component": component} if component else shared


def head(study: ClusterStudy, version: str, kind: str, name: str, component: str = "") -> Object:
    """What every object in the namespace begins with."""
    metadata = {"name": name, "namespace": study.namespace, "labels": labels(study, component)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
