"""The manifests of a study: what they allow, what they promise, and that Kubernetes knows every field."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from swarm.hosts.k8s import MARK
from swarm.hosts.k8s_command import main
from tests.swarm.hosts.clusters import (
    GIVEN,
    ROOT,
    STEP7,
    URL,
    VERSIONS,
    Made,
    Make,
    by_name,
    check,
    command,
    pods,
)

EXAMPLE = ROOT / "examples" / "k8s" / "step7.yaml"


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(version: str) -> None:
    made = by_name(EXAMPLE.read_text())
    assert len(made) == 9
    check(made, version)


def spelt_wrong(made: Made) -> None:
    made["Job", "step7-worker"]["spec"]["paralellism"] = 4


def of_another_type(made: Made) -> None:
    made["NetworkPolicy", "step7"]["spec"]["egress"][0]["ports"][0]["port"] = ["53"]


def left_out(made: Made) -> None:
    del made["Job", "step7-master"]["spec"]["template"]["spec"]["containers"][0]["name"]


def in_the_wrong_place(made: Made) -> None:
    worker = made["Job", "step7-worker"]["spec"]["template"]["spec"]
    worker["securityContext"]["readOnlyRootFilesystem"] = True


@pytest.mark.parametrize("spoil", [spelt_wrong, of_another_type, left_out, in_the_wrong_place])
def test_the_check_can_fail(spoil: Callable[[Made], None]) -> None:
    made = by_name(EXAMPLE.read_text())
    spoil(made)
    with pytest.raises(kubernetes_validate.ValidationError):
        check(made, VERSIONS[-1])


def test_the_example_is_what_its_own_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = EXAMPLE.read_text()
    first = text.partition("\n")[0]
    assert first.startswith(MARK)
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(first.removeprefix(MARK))) == 0
    assert capsys.readouterr().out == text, f"make it again: {first[2:]} > examples/k8s/step7.yaml"


def test_the_objects_and_nothing_that_grants_rights(make: Make) -> None:
    made = make(*GIVEN, *URL)
    assert list(made) == [
        ("Namespace", "inferswarm"),
        ("NetworkPolicy", "default-deny"),
        ("NetworkPolicy", "step7"),
        ("NetworkPolicy", "step7-master"),
        ("NetworkPolicy", "step7-worker"),
        ("ConfigMap", "step7"),
        ("Service", "step7-master"),
        ("Job", "step7-master"),
        ("Job", "step7-worker"),
    ]
    assert {spec["automountServiceAccountToken"] for spec in pods(made).values()} == {False}
    assert not any("serviceAccountName" in spec for spec in pods(made).values())


# What runs


def test_the_locustfile_travels_and_runs_from_where_it_is_mounted(make: Make) -> None:
    made = make(*GIVEN, *URL)
    assert made["ConfigMap", "step7"]["data"] == {"step7.py": STEP7.read_text()}
    for spec, name in ((pods(made)["master"], "study"), (pods(made)["worker"], "worker")):
        assert {"name": "study", "configMap": {"name": "step7"}} in spec["volumes"]
        (mount,) = [m for m in spec["containers"][0]["volumeMounts"] if m["name"] == "study"]
        assert mount == {"name": "study", "mountPath": "/study", "readOnly": True}
        assert command(spec, name)[:5] == ["python", "-m", "locust", "-f", "/study/step7.py"]


def test_the_master_gets_the_studys_options_as_they_were_typed(make: Make) -> None:
    odd = ["--find-rate", "p99<=100", "--seconds", "1e3", "--cells=$(onnx)*", "--floor"]
    made = make(*GIVEN, *URL, *odd)
    assert command(pods(made)["master"], "study")[5:] == [
        "--headless", "--master", "--master-bind-host=*", "--expect-workers=4",
        "--expect-workers-max-wait=600", "--results-dir=/results", *URL, "--find-rate", "p99<=100",
        "--seconds", "1e3", "--cells=$$(onnx)*", "--floor",
    ]  # fmt: skip
    assert command(pods(made)["worker"], "worker")[5:] == ["--worker", "--master-host=step7-master"]


def test_workers_find_the_master_and_are_spread_over_the_nodes(make: Make) -> None:
    made = make(*GIVEN, *URL)
    job = made["Job", "step7-worker"]["spec"]
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 4, 4)
    service = made["Service", "step7-master"]["spec"]
    labels = made["Job", "step7-master"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"] == labels
    assert service["clusterIP"] == "None"
    assert [port["port"] for port in service["ports"]] == [5557]
    (spread,) = pods(made)["worker"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"]["matchLabels"] == job["template"]["metadata"]["labels"]
    assert pods(made)["worker"]["containers"][0]["env"] == [
        {"name": "INFERSWARM_HOST", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    ]


def test_the_study_runs_once_and_its_results_are_kept(make: Make) -> None:
    made = make(*GIVEN, *URL)
    assert made["Job", "step7-master"]["spec"]["backoffLimit"] == 0
    master = pods(made)["master"]
    assert [one["name"] for one in master["containers"]] == ["study", "results"]
    assert {"name": "results", "emptyDir": {}} in master["volumes"]
    for one in master["containers"]:
        assert {"name": "results", "mountPath": "/results"} in one["volumeMounts"]
    assert "until [ -e /tmp/fetched ]" in command(master, "results")[2]


def test_what_a_generator_is_promised_is_all_that_it_gets(make: Make) -> None:
    made = make(*GIVEN, *URL, "--cpu", "2", "--memory", "3Gi")
    worker = pods(made)["worker"]["containers"][0]["resources"]
    assert worker["requests"] == worker["limits"] == {"cpu": "2", "memory": "3Gi"}
    for spec in pods(made).values():
        for one in spec["containers"]:
            assert one["resources"]["requests"] == one["resources"]["limits"]


def test_no_container_may_do_more_than_it_must(make: Make) -> None:
    for spec in pods(make(*GIVEN, *URL)).values():
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 65532
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {"name": "tmp", "emptyDir": {}} in spec["volumes"]
        for one in spec["containers"]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
    assert "USER 65532:65532" in (EXAMPLE.parent / "Dockerfile").read_text().splitlines()


# Who may talk to whom


def test_everything_is_closed_but_for_what_the_study_needs(make: Make) -> None:
    made = make(
        *GIVEN,
        "--onnx-http-url", "http://gpu-host:8010", "--onnx-grpc-url=gpu-host:8011",
        "--pytorch-url", "10.20.0.5:8002", "--trt-grpc-url", "[fd00::7]:8021",
        "--onnx-metrics-url", "http://10.20.0.5:8012/metrics",
    )  # fmt: skip
    deny = made["NetworkPolicy", "default-deny"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    dns, *targets = made["NetworkPolicy", "step7"]["spec"]["egress"]
    assert dns == {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
    found = {rule["to"][0]["ipBlock"]["cidr"] if "to" in rule else "any": ports(rule) for rule in targets}
    assert found == {"any": [8010, 8011], "10.20.0.5/32": [8002, 8012], "fd00::7/128": [8021]}


def ports(rule: Any) -> list[int]:
    """The TCP ports of a rule, which has no others."""
    assert {port["protocol"] for port in rule["ports"]} == {"TCP"}
    return [port["port"] for port in rule["ports"]]


def test_only_workers_reach_the_master_and_only_at_its_port(make: Make) -> None:
    made = make(*GIVEN, *URL)
    master = made["Job", "step7-master"]["spec"]["template"]["metadata"]["labels"]
    worker = made["Job", "step7-worker"]["spec"]["template"]["metadata"]["labels"]
    inward, outward = (made["NetworkPolicy", name]["spec"] for name in ("step7-master", "step7-worker"))
    assert inward["podSelector"]["matchLabels"] == master
    (rule,) = inward["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": worker}}]
    assert ports(rule) == [5557]
    assert outward["podSelector"]["matchLabels"] == worker
    (rule,) = outward["egress"]
    assert rule["to"] == [{"podSelector": {"matchLabels": master}}]
    assert ports(rule) == [5557]
    both = made["NetworkPolicy", "step7"]["spec"]["podSelector"]["matchLabels"].items()
    assert both <= master.items()
    assert both <= worker.items()
    assert [name for (kind, name), one in made.items() if "ingress" in one.get("spec", {})] == [
        "step7-master"
    ]


def test_an_underscore_becomes_a_hyphen_and_the_longest_name_still_fits(make: Make, tmp_path: Path) -> None:
    file = tmp_path / f"{'a_' * 19}bc.py"
    file.write_text("pass\n")
    made = make("-f", str(file), "--image", "client:1", *URL)
    assert ("Job", f"{'a-' * 19}bc-worker") in made
    check(made, VERSIONS[-1])
