"""A study by the Locust operator: what its resource may hold, and what its command lines do."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import csv
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.processes import free_port
from tests.stand_ins import stand_in

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/locust-operator"
SCHEMA = Path(__file__).parent / "locust_operator/locusttest-v2.json"
BIN = Path(sys.executable).parent
STUDY: dict[str, Any] = yaml.safe_load((EXAMPLE / "locusttest.yaml").read_text())
OTHERS = {
    (one["kind"], one["metadata"]["name"]): one
    for name in ("study", "network", "fetch")
    for one in yaml.safe_load_all((EXAMPLE / f"{name}.yaml").read_text())
}
SHORT = ("--study=quick", "--levels=2", "--seconds=1", "--warm-up=0.5", "--repeats=1")


def command_line(role: str) -> list[str]:
    """The words that the operator makes of the resource (2.4.1, internal/resources/command.go)."""
    spec, name = STUDY["spec"][role], STUDY["metadata"]["name"]
    words = spec["command"].split()
    if role == "worker":
        return [*words, "--worker", "--master-port=5557", f"--master-host={name}-master"]
    assert (spec["autostart"], spec["autoquit"]["enabled"]) == (False, False)
    own = ["--master", "--master-port=5557", f"--expect-workers={STUDY['spec']['worker']['replicas']}"]
    return [*words, *own, "--enable-rebalancing", "--only-summary", *spec["extraArgs"]]


def is_valid(resource: Path) -> bool:
    """As `make check` asks."""
    command = [str(BIN / "check-jsonschema"), "--schemafile", str(SCHEMA), str(resource)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "edit",
    [("autoquit:", "autoQuit:"), ("replicas: 4", "replicas: 0"), ("target: master", "target: server")],
    ids=["a field that is none", "no workers", "a value that is none"],
)
def test_the_schema_refuses_mistakes(edit: tuple[str, str], tmp_path: Path) -> None:
    text = (EXAMPLE / "locusttest.yaml").read_text()
    assert text.count(edit[0]) == 1
    (tmp_path / "wrong.yaml").write_text(text.replace(*edit))
    assert not is_valid(tmp_path / "wrong.yaml")


def test_the_schema_takes_the_resource_also_with_its_secret(tmp_path: Path) -> None:
    text = (EXAMPLE / "locusttest.yaml").read_text()
    secret = "    # secretRefs:\n    #   - name: tokens\n"
    assert text.count(secret) == 1
    (tmp_path / "secret.yaml").write_text(text.replace(secret, secret.replace("# ", "")))
    made = yaml.safe_load((tmp_path / "secret.yaml").read_text())["spec"]["env"]
    assert made["secretRefs"] == [{"name": "tokens"}]
    assert is_valid(EXAMPLE / "locusttest.yaml")
    assert is_valid(tmp_path / "secret.yaml")


def test_the_schema_says_where_it_is_from() -> None:
    told = json.loads(SCHEMA.read_text())["$comment"]
    assert "locust-k8s-operator at commit 623c518c40f1" in told
    assert "Apache-2.0" in told
    assert (SCHEMA.parent / "LICENSE").is_file()


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_kubernetes_knows_every_field_of_the_rest(version: str) -> None:
    assert len(OTHERS) == 4
    for one in OTHERS.values():
        kubernetes_validate.validate(one, version, strict=True)


def test_what_is_referred_to_is_there() -> None:
    spec, name = STUDY["spec"], STUDY["metadata"]["name"]
    files = OTHERS["ConfigMap", spec["testFiles"]["configMapRef"]]["data"]
    for role in ("master", "worker"):
        (file,) = [word for word in spec[role]["command"].split() if word.endswith(".py")]
        assert Path(file).parent == Path(spec["testFiles"]["srcMountPath"])
        assert Path(file).name in files
    claims = [one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"] if "emptyDir" not in one]
    assert [("PersistentVolumeClaim", claim) in OTHERS for claim in claims] == [True]
    policy = OTHERS["NetworkPolicy", f"{name}-master"]["spec"]
    label = "performance-test-pod-name"
    assert policy["podSelector"]["matchLabels"] == {label: f"{name}-master"}
    assert policy["ingress"] == [
        {
            "from": [{"podSelector": {"matchLabels": {label: f"{name}-worker"}}}],
            "ports": [{"protocol": "TCP", "port": 5557}],
        }
    ]


def test_pods_are_as_closed_as_those_of_the_plain_manifests() -> None:
    (job,) = [
        one
        for one in yaml.safe_load_all((ROOT / "examples/k8s/workers.yaml").read_text())
        if one["kind"] == "Job"
    ]
    pod = job["spec"]["template"]["spec"]
    security, fetch = STUDY["spec"]["security"], OTHERS["Pod", "fetch"]["spec"]
    for told in (security["podSecurityContext"], fetch["securityContext"]):
        assert told == pod["securityContext"]
    own = pod["containers"][0]["securityContext"]
    for told in (security["containerSecurityContext"], fetch["containers"][0]["securityContext"]):
        assert told == own
    (host,) = STUDY["spec"]["env"]["variables"]
    assert host in pod["containers"][0]["env"]


@pytest.mark.system
@pytest.mark.slow
def test_the_operators_command_lines_run_the_study(tmp_path: Path) -> None:
    """As the operator writes them, but for addresses, the number of workers and a short study."""
    (tmp_path / "my_study.py").write_text(OTHERS["ConfigMap", "study"]["data"]["my_study.py"])
    port = free_port()
    here = {
        "/study/my_study.py": "my_study.py",
        "--master-bind-host=*": f"--master-bind-port={port}",
        "--expect-workers=4": "--expect-workers=2",
        "--results-dir=/results": "--results-dir=results",
        "--master-port=5557": f"--master-port={port}",
        "--master-host=study-master": "--master-host=127.0.0.1",
    }
    master, worker = ([here.get(word, word) for word in command_line(role)] for role in ("master", "worker"))
    master = [word for word in master if "-url=" not in word and word != "--study=full"]
    with stand_in("fake_service.py", "--delay-ms", "5") as place, ExitStack() as stack:
        told = [*master, f"--pytorch-url=http://{place}", *SHORT]
        processes = [
            stack.enter_context(subprocess.Popen([BIN / "inferswarm", *words], cwd=tmp_path))
            for words in (told, worker, worker)
        ]
        codes = [process.wait(60) for process in processes]
    assert codes[1:] == [0, 0]
    assert codes[0] in (0, 3), "3 where the cores are not the test's alone"
    (cells,) = tmp_path.glob("results/*/cells.csv")
    (row,) = csv.DictReader(cells.read_text().splitlines())
    assert (row["workers"], row["failures"], row["study"]) == ("2", "0", "my-study")
