"""The manifests of the service: what they promise each other, and what the service itself has."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import PREFIX, Settings

K8S = Path(__file__).parents[2] / "server" / "k8s"
OVERLAYS = ("kind", "gpu")
KUBECTL = shutil.which("kubectl")
KUSTOMIZATION = {"apiVersion", "kind", "resources", "patches"}
"""Of a kustomization, what ours use."""


def read(path: str) -> dict[str, Any]:
    return yaml.safe_load((K8S / path).read_text(encoding="utf-8"))


def base() -> dict[str, dict[str, Any]]:
    """The objects of the base by kind, of which there is one each."""
    objects = [read(f"base/{name}") for name in read("base/kustomization.yaml")["resources"]]
    by_kind = {made["kind"]: made for made in objects}
    assert len(by_kind) == len(objects)
    return by_kind


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found


def cores(quantity: str) -> float:
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def test_every_object_is_in_the_namespace_and_every_file_in_the_kustomization() -> None:
    objects = base()
    namespace = objects.pop("Namespace")["metadata"]["name"]
    assert {made["metadata"]["namespace"] for made in objects.values()} == {namespace}
    files = {path.name for path in (K8S / "base").glob("*.yaml")} - {"kustomization.yaml"}
    assert set(read("base/kustomization.yaml")["resources"]) == files


def test_probes_ask_paths_and_ports_that_the_service_has() -> None:
    source = (K8S.parent / "service" / "app.py").read_text(encoding="utf-8")
    service = container(base()["Deployment"])
    (port,) = service["ports"]
    probes = {name: service[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert [probe["path"] for probe in probes.values()] == ["/readyz", "/readyz", "/healthz"]
    assert all(f'@app.get("{probe["path"]}"' in source for probe in probes.values())
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert str(port["containerPort"]) == base()["ConfigMap"]["data"]["INFERSWARM_PORT"]


def test_settings_are_those_that_the_service_reads() -> None:
    data = base()["ConfigMap"]["data"] | read("overlays/gpu/config.yaml")["data"]
    known = set(Settings().to_env())
    assert set(data) <= known
    assert all(isinstance(value, str) for value in data.values())
    made = Settings.from_env(base()["ConfigMap"]["data"])
    assert (made.host, made.port, made.device, made.threads) == ("0.0.0.0", 8002, "cpu", 2)
    assert Settings.from_env(data).device == "cuda"
    assert {name.removeprefix(PREFIX) for name in data} >= {"PORT", "HOST", "THREADS"}
    (source,) = container(base()["Deployment"])["envFrom"]
    assert source["configMapRef"]["name"] == base()["ConfigMap"]["metadata"]["name"]


def test_the_token_is_a_secrets_and_may_be_missing() -> None:
    (variable,) = container(base()["Deployment"])["env"]
    assert variable["name"] == "INFERSWARM_TOKEN"
    assert variable["valueFrom"]["secretKeyRef"]["optional"] is True
    assert "INFERSWARM_TOKEN" not in base()["ConfigMap"]["data"]


def test_all_that_may_wait_fits_into_a_pod() -> None:
    objects = base()
    made = Settings.from_env(objects["ConfigMap"]["data"])
    each_bytes = max(made.max_body_bytes, made.max_batch * 3 * 224 * 224 * 4)
    assert container(objects["Deployment"])["resources"]["limits"]["memory"] == "2Gi"
    assert (made.at_once + made.max_queue) * each_bytes < 2**30


def test_the_autoscaler_is_as_published_and_scales_this_deployment() -> None:
    objects = base()
    scaler, deployment = objects["HorizontalPodAutoscaler"]["spec"], objects["Deployment"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert (scaler["minReplicas"], scaler["maxReplicas"], deployment["spec"]["replicas"]) == (2, 6, 2)
    (metric,) = scaler["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 180
    assert objects["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    assert container(deployment)["resources"]["requests"]["cpu"] == "500m"
    assert container(deployment)["resources"]["limits"]["cpu"] == "2000m"


def test_the_quota_has_room_for_all_replicas_and_one_that_surges() -> None:
    """The published one had not: limits.cpu 8 is four pods of 2000m."""
    objects = base()
    hard, deployment = objects["ResourceQuota"]["spec"]["hard"], objects["Deployment"]
    most = objects["HorizontalPodAutoscaler"]["spec"]["maxReplicas"]
    pods = most + deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    resources = container(deployment)["resources"]
    assert (hard["pods"], hard["requests.cpu"]) == ("10", "4")
    assert pods <= int(hard["pods"])
    assert pods * cores(resources["requests"]["cpu"]) <= cores(hard["requests.cpu"])
    assert pods * cores(resources["limits"]["cpu"]) <= cores(hard["limits.cpu"])
    assert most * cores(resources["limits"]["cpu"]) > 8
    gpus = read("overlays/gpu/quota.yaml")["spec"]["hard"]["requests.nvidia.com/gpu"]
    assert int(gpus) >= most


def test_labels_and_ports_meet() -> None:
    objects = base()
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "Deployment"):
        selector = objects[kind]["spec"]["selector"]
        assert (selector.get("matchLabels") or selector).items() <= labels.items(), kind
    (port,) = objects["Service"]["spec"]["ports"]
    assert (port["nodePort"], port["port"], port["targetPort"]) == (30092, 8002, "http")
    (node,) = read("overlays/kind/cluster.yaml")["nodes"]
    (mapping,) = node["extraPortMappings"]
    assert (mapping["containerPort"], mapping["hostPort"]) == (30092, 8092)
    assert mapping["listenAddress"] == "127.0.0.1"


def test_pods_may_do_nothing_but_serve() -> None:
    pod = base()["Deployment"]["spec"]["template"]["spec"]
    service = container(base()["Deployment"])
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert service["securityContext"]["readOnlyRootFilesystem"] is True
    assert service["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounted = {mount["name"] for mount in service["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_images_are_those_that_the_dockerfiles_say_how_to_build() -> None:
    deployments = base()["Deployment"], read("overlays/gpu/deployment.yaml")
    kinds = (("cpu", "Dockerfile"), ("cuda", "Dockerfile.cuda"))
    for deployment, (kind, dockerfile) in zip(deployments, kinds, strict=True):
        image = container(deployment)["image"]
        assert image == f"inferswarm-pytorch:0.1.0-{kind}"
        text = (K8S.parent / dockerfile).read_text(encoding="utf-8")
        assert f"docker build -f server/{dockerfile} -t {image} ." in text
        assert "USER 65532:65532" in text


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_patch_is_of_an_object_of_the_base(overlay: str) -> None:
    kustomization = read(f"overlays/{overlay}/kustomization.yaml")
    assert set(kustomization) <= KUSTOMIZATION
    assert kustomization["resources"] == ["../../base"]
    objects = base()
    for patch in kustomization["patches"]:
        made = read(f"overlays/{overlay}/{patch['path']}")
        target = objects[made["kind"]]
        assert made["apiVersion"] == target["apiVersion"]
        assert all(made["metadata"][name] == target["metadata"][name] for name in ("name", "namespace"))
        if made["kind"] == "Deployment":
            assert container(made)["name"] == container(target)["name"]


@pytest.mark.skipif(KUBECTL is None, reason="no kubectl on the path: its kustomize builds the overlays")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlays_build_to_what_they_say(overlay: str) -> None:
    command = [str(KUBECTL), "kustomize", str(K8S / "overlays" / overlay)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    objects = {made["kind"]: made for made in yaml.safe_load_all(built.stdout)}
    assert set(objects) == set(base())
    service = container(objects["Deployment"])
    assert service["resources"]["limits"]["cpu"] == "2000m"
    if overlay == "kind":
        assert service["imagePullPolicy"] == "Never"
    else:
        assert service["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert objects["ConfigMap"]["data"]["INFERSWARM_DEVICE"] == "cuda"
        assert objects["ConfigMap"]["data"]["INFERSWARM_PORT"] == "8002"
        assert objects["ResourceQuota"]["spec"]["hard"]["limits.cpu"] == "14"
