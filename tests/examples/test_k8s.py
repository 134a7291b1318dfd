"""A study in a cluster: what its manifests promise each other, allow, and give up to be edited."""

import itertools
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from swarm.options.model import flag
from users.backends.registry import url_options

ROOT = Path(__file__).parents[2]
K8S = ROOT / "examples" / "k8s"
VERSIONS = ("1.29", "1.33", "1.37")
"""The oldest that the manifests need (`backoffLimitPerIndex` by default), and later ones."""
KUBECTL = shutil.which("kubectl")
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((K8S / "kustomization.yaml").read_text())
POLICIES = ("default-deny", *(f"inferswarm-{name}" for name in ("dns", "master", "servers", "workers")))
NAMES = [
    *(("Namespace", "inferswarm"), ("Service", "inferswarm-master")),
    *(("NetworkPolicy", name) for name in POLICIES),
    *(("Job", "inferswarm-master"), ("Job", "inferswarm-workers")),
]

Made = dict[tuple[str, str], Any]
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="no kubectl, whose kustomize builds it")


def by_name(text: str) -> Made:
    """Every object of a page, by kind and name; of a generated name without its hash."""
    found = {}
    for made in yaml.safe_load_all(text):
        kind, name = made["kind"], made["metadata"]["name"]
        generated = kind in ("ConfigMap", "Secret")
        found[kind, re.sub("-[0-9a-z]{10}$", "", name) if generated else name] = made
    return found


def base() -> Made:
    """The objects as they stand in the files."""
    return by_name("---\n".join((K8S / name).read_text() for name in KUSTOMIZATION["resources"]))


def built(folder: Path) -> Made:
    """What kubectl makes of a folder."""
    assert KUBECTL
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=True)
    return by_name(done.stdout)


def edited(folder: Path, *edits: tuple[str, str]) -> Path:
    """A copy whose kustomization was edited; each text must be there."""
    shutil.copytree(K8S, folder, dirs_exist_ok=True)
    text = (K8S / "kustomization.yaml").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "kustomization.yaml").write_text(text)
    return folder


def patch_of(kind: str, name: str) -> Any:
    """The one value that the kustomization puts into an object."""
    patches = [one for one in KUSTOMIZATION["patches"] if one["target"] == {"kind": kind, "name": name}]
    ((found,),) = [yaml.safe_load(one["patch"]) for one in patches]
    return found["value"]


def pods(made: Made) -> dict[str, Any]:
    """The templates of master and worker pods, by component."""
    jobs = [one for (kind, _), one in made.items() if kind == "Job"]
    return {job["metadata"]["labels"]["app.kubernetes.io/component"]: job["spec"]["template"] for job in jobs}


def container(made: Made, component: str, name: str) -> Any:
    (found,) = [one for one in pods(made)[component]["spec"]["containers"] if one["name"] == name]
    return found


def variable(of: Any, name: str) -> Any:
    (found,) = [one for one in of["env"] if one["name"] == name]
    return found


def ports(rule: Any) -> list[int]:
    """The TCP ports of a rule, which has no others."""
    assert {port["protocol"] for port in rule["ports"]} == {"TCP"}
    return [port["port"] for port in rule["ports"]]


def check(made: Made, version: str) -> None:
    """Does Kubernetes know every field? Raises ValidationError."""
    for one in made.values():
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(version: str) -> None:
    made = base()
    assert len(made) == 9
    check(made, version)


def test_the_check_can_fail() -> None:
    made = base()
    made["Job", "inferswarm-workers"]["spec"]["paralellism"] = 4
    with pytest.raises(kubernetes_validate.ValidationError):
        check(made, VERSIONS[-1])


def test_the_objects_and_nothing_that_grants_rights() -> None:
    made = base()
    assert sorted(made) == sorted(NAMES)
    assert {pod["spec"]["automountServiceAccountToken"] for pod in pods(made).values()} == {False}
    assert not any("serviceAccountName" in pod["spec"] for pod in pods(made).values())


def test_every_object_is_in_the_namespace_and_every_file_in_the_kustomization() -> None:
    made = base()
    namespace = made.pop(("Namespace", "inferswarm"))
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {one["metadata"]["namespace"] for one in made.values()} == {KUSTOMIZATION["namespace"]}
    files = {path.name for path in K8S.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files


def test_the_image_is_the_one_that_the_containerfile_says_how_to_build() -> None:
    (image,) = KUSTOMIZATION["images"]
    used = {one["image"] for pod in pods(base()).values() for one in pod["spec"]["containers"]}
    assert used == {f"{image['name']}:{image['newTag']}"}
    text = (K8S / "Containerfile").read_text()
    assert f"docker build -f examples/k8s/Containerfile -t {image['newName']}:{image['newTag']} ." in text
    assert "USER 65532:65532" in text.splitlines()


def test_the_image_is_given_what_the_wheel_is_made_of() -> None:
    lines = [line.split() for line in (K8S / "Containerfile").read_text().splitlines()]
    copied = {word for words in lines if words[:1] == ["COPY"] for word in words[1:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hatch = project["tool"]["hatch"]
    pinned = hatch["metadata"]["hooks"]["requirements_txt"]
    files = {*pinned["files"], *itertools.chain(*pinned["optional-dependencies"].values())}
    assert {"inferswarm", *hatch["build"]["targets"]["wheel"]["sources"], *files} <= copied
    (build,) = [words for words in lines if any(word.startswith("names=") for word in words)]
    names = next(word for word in build if word.startswith("names=")).split("'")[1].split("|")
    assert {one.partition("==")[0] for one in project["build-system"]["requires"]} <= set(names)


def test_master_and_workers_run_the_same_locustfile_which_is_there() -> None:
    made = base()
    (study,) = KUSTOMIZATION["configMapGenerator"]
    (literal,) = study["literals"]
    assert (ROOT / "locustfiles" / f"{literal.removeprefix('locustfile=')}.py").is_file()
    for component, name in (("master", "study"), ("worker", "worker")):
        running, pod = container(made, component, name), pods(made)[component]["spec"]
        assert running["command"][:4] == ["inferswarm", "locust", "-f", "$(LOCUSTFILE)"]
        source = {"configMapKeyRef": {"name": study["name"], "key": "locustfile"}}
        assert variable(running, "LOCUSTFILE")["valueFrom"] == source
        assert {"name": "study", "configMap": {"name": study["name"]}} in pod["volumes"]
        assert {"name": "study", "mountPath": "/study", "readOnly": True} in running["volumeMounts"]


def test_the_studys_options_are_those_of_the_suite() -> None:
    options = [option.partition("=")[0] for option in patch_of("Job", "inferswarm-master")]
    assert set(options) <= {*map(flag, url_options()), "--study"}
    assert container(base(), "master", "study")["command"][4:] == [
        "--headless", "--master", "--master-bind-host=*", "--expect-workers=$(WORKERS)",
        "--expect-workers-max-wait=600", "--results-dir=/results",
    ]  # fmt: skip


def test_workers_find_the_master_and_are_spread_over_the_nodes() -> None:
    made = base()
    service = made["Service", "inferswarm-master"]
    place = f"--master-host={service['metadata']['name']}"
    assert container(made, "worker", "worker")["command"][4:] == ["--worker", place]
    assert service["spec"]["selector"] == pods(made)["master"]["metadata"]["labels"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    (spread,) = pods(made)["worker"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"]["matchLabels"] == pods(made)["worker"]["metadata"]["labels"]
    assert variable(container(made, "worker", "worker"), "INFERSWARM_HOST")["valueFrom"] == {
        "fieldRef": {"fieldPath": "spec.nodeName"}
    }


def numbers(made: Made) -> set[int]:
    """Of workers, wherever it stands."""
    job = made["Job", "inferswarm-workers"]["spec"]
    expected = variable(container(made, "master", "study"), "WORKERS")["value"]
    assert isinstance(expected, str)
    assert job["completionMode"] == "Indexed"
    return {job["completions"], job["parallelism"], int(expected)}


def test_all_numbers_of_workers_are_one() -> None:
    assert numbers(base()) == {1}
    (number,) = KUSTOMIZATION["replacements"]
    assert number["source"] == {"kind": "Job", "name": "inferswarm-workers", "fieldPath": "spec.parallelism"}
    told = {target["select"]["name"]: target["fieldPaths"] for target in number["targets"]}
    assert told == {
        "inferswarm-workers": ["spec.completions"],
        "inferswarm-master": ["spec.template.spec.containers.[name=study].env.[name=WORKERS].value"],
    }
    assert isinstance(patch_of("Job", "inferswarm-workers"), int)


def test_the_study_runs_once_and_its_results_are_kept() -> None:
    made = base()
    assert made["Job", "inferswarm-master"]["spec"]["backoffLimit"] == 0
    assert made["Job", "inferswarm-workers"]["spec"]["backoffLimitPerIndex"] == 1
    master = pods(made)["master"]["spec"]
    assert [one["name"] for one in master["containers"]] == ["study", "results"]
    assert {"name": "results", "emptyDir": {}} in master["volumes"]
    for one in master["containers"]:
        assert {"name": "results", "mountPath": "/results"} in one["volumeMounts"]
    assert "until [ -e /tmp/fetched ]" in container(made, "master", "results")["command"][2]


def test_what_a_generator_is_promised_is_all_that_it_gets() -> None:
    for pod in pods(base()).values():
        for one in pod["spec"]["containers"]:
            assert one["resources"]["requests"] == one["resources"]["limits"]
        assert re.fullmatch("[1-9][0-9]*", pod["spec"]["containers"][0]["resources"]["limits"]["cpu"])


def test_no_container_may_do_more_than_it_must() -> None:
    for pod in (pod["spec"] for pod in pods(base()).values()):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {"name": "tmp", "emptyDir": {}} in pod["volumes"]
        for one in pod["containers"]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            mounted = {mount["name"] for mount in one["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["volumes"]}


def test_tokens_come_from_a_secret_that_may_be_missing_and_results_has_none() -> None:
    made = base()
    for component, name in (("master", "study"), ("worker", "worker")):
        assert container(made, component, name)["envFrom"] == [
            {"secretRef": {"name": "tokens", "optional": True}}
        ]
    assert "envFrom" not in container(made, "master", "results")
    assert "examples/k8s/tokens.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_everything_is_closed_but_for_what_the_study_needs() -> None:
    made = base()
    deny = made["NetworkPolicy", "default-deny"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert made["NetworkPolicy", "inferswarm-dns"]["spec"]["egress"] == [
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
    ]
    assert made["NetworkPolicy", "inferswarm-servers"]["spec"]["egress"] == []
    for name in ("inferswarm-dns", "inferswarm-servers"):
        both = made["NetworkPolicy", name]["spec"]["podSelector"]["matchLabels"].items()
        assert all(both <= pod["metadata"]["labels"].items() for pod in pods(made).values())


def test_pods_may_reach_the_ports_of_the_studys_servers_and_no_others() -> None:
    urls = [option.partition("=")[2] for option in patch_of("Job", "inferswarm-master") if "-url=" in option]
    asked: dict[str, set[int | None]] = {}
    for parts in (urlsplit(url if "//" in url else f"//{url}") for url in urls):
        host = str(parts.hostname)
        network = f"{host}/32" if host.replace(".", "").isdigit() else "any"
        asked.setdefault(network, set()).add(parts.port)
    rules = patch_of("NetworkPolicy", "inferswarm-servers")
    open_ = {rule["to"][0]["ipBlock"]["cidr"] if "to" in rule else "any": set(ports(rule)) for rule in rules}
    assert open_ == asked == {"any": {8000, 8001, 8002}, "10.20.0.5/32": {8002}}


def test_only_workers_reach_the_master_and_only_at_its_port() -> None:
    made = base()
    master, worker = (pods(made)[name]["metadata"]["labels"] for name in ("master", "worker"))
    inward = made["NetworkPolicy", "inferswarm-master"]["spec"]
    outward = made["NetworkPolicy", "inferswarm-workers"]["spec"]
    assert inward["podSelector"]["matchLabels"] == master
    (entering,) = inward["ingress"]
    assert entering["from"] == [{"podSelector": {"matchLabels": worker}}]
    assert outward["podSelector"]["matchLabels"] == worker
    (leaving,) = outward["egress"]
    assert leaving["to"] == [{"podSelector": {"matchLabels": master}}]
    (service,) = made["Service", "inferswarm-master"]["spec"]["ports"]
    assert ports(entering) == ports(leaving) == [service["port"]] == [service["targetPort"]] == [5557]
    assert [key[1] for key, one in made.items() if "ingress" in one.get("spec", {})] == ["inferswarm-master"]


@needs_kubectl
def test_it_builds_to_what_the_kustomization_says() -> None:
    made = built(K8S)
    assert sorted(made) == sorted([*NAMES, ("ConfigMap", "study")])
    # Nothing runs before its policies are there.
    kinds = [kind for kind, _ in made]
    assert (kinds[0], kinds[-2:]) == ("Namespace", ["Job", "Job"])
    assert numbers(made) == {4}
    assert container(made, "master", "study")["args"] == patch_of("Job", "inferswarm-master")
    assert made["NetworkPolicy", "inferswarm-servers"]["spec"]["egress"] == patch_of(
        "NetworkPolicy", "inferswarm-servers"
    )
    images = {one["image"] for pod in pods(made).values() for one in pod["spec"]["containers"]}
    assert images == {"registry.example.com/inferswarm-client:0.1.0"}
    for version in VERSIONS:
        check(made, version)


@needs_kubectl
def test_what_is_edited_arrives_wherever_it_must_be_known(tmp_path: Path) -> None:
    made = built(edited(tmp_path, ("value: 4\n", "value: 7\n"), ("namespace: inferswarm", "namespace: load")))
    assert numbers(made) == {7}
    assert made.pop(("Namespace", "load"))
    assert {one["metadata"]["namespace"] for one in made.values()} == {"load"}
    study = made["ConfigMap", "study"]["metadata"]["name"]
    for component, name in (("master", "study"), ("worker", "worker")):
        source = variable(container(made, component, name), "LOCUSTFILE")["valueFrom"]["configMapKeyRef"]
        assert source == {"name": study, "key": "locustfile"}
        assert {"name": "study", "configMap": {"name": study}} in pods(made)[component]["spec"]["volumes"]


@needs_kubectl
def test_what_is_commented_out_builds_too(tmp_path: Path) -> None:
    text = (K8S / "kustomization.yaml").read_text()
    blocks = re.findall(r"(?m)^ *# (?:files:|secretGenerator:|- target:)\n(?: *#  .*\n)+", text)
    assert len(blocks) == 3
    own = ("locustfile=step7\n      # - locustfile", "locustfile")
    edits = [(block, re.sub(r"(?m)^( *)# ", r"\1", block)) for block in blocks]
    folder = edited(tmp_path, own, *edits)
    (folder / "my_study.py").write_text("pass\n")
    (folder / "tokens.env").write_text("INFERSWARM_TOKEN=the-secret\nINFERSWARM_ONNX_TOKEN=other\n")
    made = built(folder)
    assert made["ConfigMap", "study"]["data"] == {"locustfile": "/study/my_study.py", "my_study.py": "pass\n"}
    tokens = made["Secret", "tokens"]
    assert set(tokens["data"]) == {"INFERSWARM_TOKEN", "INFERSWARM_ONNX_TOKEN"}
    for component, name in (("master", "study"), ("worker", "worker")):
        running = container(made, component, name)
        assert running["envFrom"][0]["secretRef"]["name"] == tokens["metadata"]["name"]
        resources = {"cpu": "1", "memory": "2Gi"}
        assert running["resources"] == {"requests": resources, "limits": resources}
    assert "the-secret" not in str([one for (kind, _), one in made.items() if kind != "Secret"])
    check(made, VERSIONS[-1])
