"""The Kubernetes objects of one study, each made by a pure function, and their YAML."""

from __future__ import annotations

import ipaddress
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from swarm.errors import UsageError
from swarm.options.addresses import check_secrets

Labels = dict[str, str]
MASTER_PORT = 5557
DNS = {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}
"""To any address: clusters differ in where their DNS lives (a pod, the node, the cloud's metadata server)."""
_URL_OPTION = re.compile(r"--[a-z0-9-]+-url")
_SCHEME_PORTS = {"http": 80, "https": 443}
WORKERS_WAIT_S = 600
"""A master whose workers cannot be scheduled gives up after this, rather than never."""
UNTIL_FETCHED = "trap 'exit 0' TERM; until [ -e /tmp/fetched ]; do sleep 1; done"
RESULTS_SIZE = {"cpu": "100m", "memory": "128Mi"}
NOBODY = 65532
"""The user and group that every container runs as; the Dockerfile makes it."""
GRACE_S = 60
"""A study that is deleted may end in order: requests in flight finish, its files are written."""
Object = dict[str, Any]
MARK = "# python -m swarm hosts manifests "
"""How every file of ours begins."""
_IN_BLOCKS = str.maketrans("", "", "\n\t")
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?\d")


@dataclass(frozen=True)
class Target:
    """A server that the study was given: the option that named it, its host and TCP port."""

    option: str
    host: str
    port: int

    @property
    def network(self) -> str:
        """`10.0.0.7/32` where the host is an address; empty for a name, which the cluster looks up."""
        address = as_address(self.host)
        return f"{address}/{address.max_prefixlen}" if address else ""


def targets_of(options: Sequence[str]) -> list[Target]:
    """The servers that a study's `--…-url` options name. Raises UsageError where one is unfit, or none is."""
    found = [target_of(option, url) for option, url in url_options(options)]
    if all(target.option.endswith("-metrics-url") for target in found):
        raise UsageError(
            "no server is named, and the client image starts none: give --pytorch-url, --onnx-http-url"
            " or another target"
        )
    return found


def url_options(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each `--…-url` with its value, whether typed `--x-url URL` or `--x-url=URL`."""
    for index, word in enumerate(options):
        option, equals, url = word.partition("=")
        if _URL_OPTION.fullmatch(option):
            yield option, url if equals else "".join(options[index + 1 : index + 2])


def target_of(option: str, url: str) -> Target:
    """The host and port of a URL, with or without its scheme. Raises UsageError."""
    check_secrets(option, url)
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        host, port = parts.hostname, parts.port or _SCHEME_PORTS.get(parts.scheme)
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise UsageError(f"{option} {url!r}: give host:port or http://host:port")
    address = as_address(host)
    if host == "localhost" or (address and (address.is_loopback or address.is_unspecified)):
        raise UsageError(
            f"{option} {url}: in a pod, {host} is the pod itself; name the server as pods reach it"
        )
    return Target(option, host, port)


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an address, or None where it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def deny_all() -> dict[str, Any]:
    """The spec that closes every pod of the namespace, both ways; the others open what is needed."""
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def to_targets(pods: Labels, targets: Iterable[Target]) -> dict[str, Any]:
    """The spec that lets `pods` out to DNS and the targets' ports, and nowhere else."""
    ports: dict[str, set[int]] = {}
    for target in targets:
        ports.setdefault(target.network, set()).add(target.port)
    rules = [to_network(network, sorted(numbers)) for network, numbers in sorted(ports.items())]
    return {"podSelector": {"matchLabels": pods}, "policyTypes": ["Egress"], "egress": [DNS, *rules]}


def to_network(network: str, ports: Iterable[int]) -> dict[str, Any]:
    """An egress rule: these TCP ports of a network, or of any address where `network` is empty."""
    to = {"to": [{"ipBlock": {"cidr": network}}]} if network else {}
    return {**to, "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def into_master(master: Labels, workers: Labels) -> dict[str, Any]:
    """The spec that lets the workers, and nobody else, in to the master's port."""
    rule = {"from": [{"podSelector": {"matchLabels": workers}}], "ports": [master_port()]}
    return {"podSelector": {"matchLabels": master}, "policyTypes": ["Ingress"], "ingress": [rule]}


def to_master(master: Labels, workers: Labels) -> dict[str, Any]:
    """The spec that lets the workers out to the master's port."""
    rule = {"to": [{"podSelector": {"matchLabels": master}}], "ports": [master_port()]}
    return {"podSelector": {"matchLabels": workers}, "policyTypes": ["Egress"], "egress": [rule]}


def master_port() -> dict[str, Any]:
    """Locust's own port, as policies write it."""
    return {"protocol": "TCP", "port": MASTER_PORT}


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


class Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """What occurs twice is written twice."""
        return True


def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A text; quoted where some reader might take it for a number (`1e3`), or see a line end."""
    odd = _LIKE_A_NUMBER.match(text) or not text.translate(_IN_BLOCKS).isprintable()
    style = '"' if odd else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, represent)


def document(made: Mapping[str, Any]) -> str:
    """One object."""
    return yaml.dump(dict(made), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000)


def stream(made: Sequence[Mapping[str, Any]], origin: str) -> str:
    """All objects, under the comment that says what made them."""
    return f"{origin}\n" + "---\n".join(document(one) for one in made)


def write_folder(folder: Path, made: Sequence[Mapping[str, Any]], origin: str) -> None:
    """One file an object, numbered in their order, in place of any that we wrote before.

    Raises UsageError where the folder holds something else, or cannot be written.
    """
    folder = folder.resolve()
    try:
        if folder.exists() and not is_ours(folder):
            raise UsageError(f"--output {folder}: holds other files; name a new or empty folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".manifests-") as written:
            for number, one in enumerate(made):
                Path(written, file_name(number, one)).write_text(stream([one], origin), encoding="utf-8")
            move_into(folder, Path(written))
    except OSError as error:
        raise UsageError(f"--output {folder}: cannot be written ({error.strerror}); name another") from error


def move_into(folder: Path, written: Path) -> None:
    """The files of `written` in place of those of `folder`."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for new in written.iterdir():
        new.rename(folder / new.name)


def is_ours(folder: Path) -> bool:
    """A folder with nothing in it but files that we have written."""
    return folder.is_dir() and all(map(has_mark, folder.iterdir()))


def has_mark(file: Path) -> bool:
    """Did we write this file?"""
    mark = MARK.encode()
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(mark)) == mark


def file_name(number: int, one: Mapping[str, Any]) -> str:
    """`05-configmap-step7.yaml`: applied in the order of their names."""
    return f"{number:02d}-{one['kind'].lower()}-{one['metadata']['name']}.yaml"
