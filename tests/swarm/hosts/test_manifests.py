"""The manifests of a study: what they allow, what they promise, and that Kubernetes knows every field."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from swarm.hosts.k8s_network import Target, target_of, targets_of
from swarm.hosts.k8s_yaml import MARK, document
from swarm.hosts.manifests import main
from swarm.option_table import URLS, flag

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "k8s" / "step7.yaml"
STEP7 = ROOT / "locustfiles" / "step7.py"
VERSIONS = ("1.29", "1.33", "1.37")
"""The oldest that the manifests need (`backoffLimitPerIndex` by default), and later ones."""
GIVEN = ["-f", str(STEP7), "--image", "client:1", "--workers", "4"]
URL = ["--onnx-http-url", "gpu-host:8010"]

Made = dict[tuple[str, str], Any]
Make = Callable[..., Made]
Sentence = Callable[..., str]


def by_name(text: str) -> Made:
    """Every object of a page, by kind and name."""
    return {(made["kind"], made["metadata"]["name"]): made for made in yaml.safe_load_all(text)}


@pytest.fixture
def make(capsys: pytest.CaptureFixture[str]) -> Make:
    """Runs the command, which must succeed."""

    def run(*arguments: str) -> Made:
        assert main([*arguments]) == 0
        return by_name(capsys.readouterr().out)

    return run


@pytest.fixture
def sentence(capsys: pytest.CaptureFixture[str]) -> Sentence:
    """Runs the command, which must refuse with one line and print nothing else."""

    def run(*arguments: str) -> str:
        assert main([*arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err.strip()

    return run


def pods(made: Made) -> dict[str, Any]:
    """The specs of master and worker pods, by component."""
    jobs = [one for (kind, _), one in made.items() if kind == "Job"]
    return {
        job["metadata"]["labels"]["app.kubernetes.io/component"]: job["spec"]["template"]["spec"]
        for job in jobs
    }


def command(spec: Any, name: str) -> list[str]:
    """What the container of this name runs."""
    (found,) = [one["command"] for one in spec["containers"] if one["name"] == name]
    return list(found)


def check(made: Made, version: str) -> None:
    for one in made.values():
        kubernetes_validate.validate(one, version, strict=True)


# Tokens


def test_tokens_come_from_secrets_and_no_manifest_holds_them(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERSWARM_TOKEN", "the-secret")
    made = make(
        *GIVEN, *URL, "--token-secret", "targets", "--token-secret", "INFERSWARM_ONNX_TOKEN=triton.prod"
    )
    assert "the-secret" not in str(made)
    expected = {
        "INFERSWARM_TOKEN": {"secretKeyRef": {"name": "targets", "key": "INFERSWARM_TOKEN"}},
        "INFERSWARM_ONNX_TOKEN": {"secretKeyRef": {"name": "triton.prod", "key": "INFERSWARM_ONNX_TOKEN"}},
    }
    for spec in pods(made).values():
        running = spec["containers"][0]
        told = {one["name"]: one["valueFrom"] for one in running["env"] if one["name"] != "INFERSWARM_HOST"}
        assert told == expected
    assert "env" not in pods(made)["master"]["containers"][1]
    for version in VERSIONS:
        check(made, version)


@pytest.mark.parametrize(
    "typed", ["S3cr-et!", "INFERSWARM_TOKEN=", "PATH=x", "a" * 254, "-x", "$(id)", "a b"]
)
def test_what_names_no_secret_is_refused_and_not_repeated(sentence: Sentence, typed: str) -> None:
    said = sentence(*GIVEN, *URL, f"--token-secret={typed}")
    assert said.startswith("--token-secret: name a Secret")
    assert len(typed) < 2 or typed not in said


def test_a_master_in_a_pod_lets_the_workers_in(make: Make) -> None:
    assert "--master-bind-host=*" in command(pods(make(*GIVEN, *URL))["master"], "study")


# What Kubernetes makes of it


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


def test_every_url_option_of_a_study_is_a_target() -> None:
    typed = [word for name in URLS for word in (flag(name), "gpu:9000")]
    assert [target.option for target in targets_of(typed)] == [flag(name) for name in URLS]


def test_a_target_without_a_port_has_its_schemes() -> None:
    assert target_of("--a-url", "http://gpu/metrics") == Target("--a-url", "gpu", 80)
    assert target_of("--a-url", "https://gpu").port == 443


# What is refused


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([*GIVEN], "no server is named, and the client image starts none: give --pytorch-url"),
        ([*GIVEN, "--onnx-metrics-url", "gpu:8012"], "no server is named"),
        ([*GIVEN, "--onnx-http-url", "gpu"], "--onnx-http-url 'gpu': give host:port"),
        ([*GIVEN, "--onnx-http-url"], "--onnx-http-url '': give host:port"),
        ([*GIVEN, "--onnx-http-url", "gpu:99999"], "--onnx-http-url 'gpu:99999': give host:port"),
        ([*GIVEN, "--onnx-http-url", "127.0.0.1:8010"], "in a pod, 127.0.0.1 is the pod itself"),
        ([*GIVEN, "--onnx-http-url", "localhost:8010"], "in a pod, localhost is the pod itself"),
        ([*GIVEN, *URL, "--workers", "0"], "--workers 0: give 1 or more"),
        ([*GIVEN, *URL, "--workers", "few"], "argument --workers: invalid int value: 'few'"),
        ([*GIVEN, *URL, "--image", ""], "--image: name the client's image"),
        (["-f", str(STEP7), *URL], "--image: name the client's image"),
        ([*GIVEN, *URL, "--namespace", "My_Space"], "--namespace My_Space: give the study one of its own"),
        ([*GIVEN, *URL, "--namespace", "default"], "--namespace default: give the study one of its own"),
        ([*GIVEN, *URL, "--namespace", "kube-system"], "--namespace kube-system: give the study one"),
        ([*GIVEN, *URL, "--namespace", "a" * 64], "(at most 63)"),
        ([*GIVEN, *URL, "--cpu", "0.5"], "--cpu 0.5: give whole cores"),
        ([*GIVEN, *URL, "--memory", "lots"], "--memory lots: give a quantity such as 512Mi"),
        ([*GIVEN, *URL, "--results-dir", "/tmp"], "--results-dir: is set by the manifests; leave it out"),
        ([*GIVEN, "--onnx-http-url", "http://me:secret@gpu:1"], "--onnx-http-url: has a name, a password"),
        ([*GIVEN, *URL, "--tls-ca", "ca.pem"], "--tls-ca: the client image has no such file"),
        ([*GIVEN, *URL, "--emulate=a100"], "--emulate: is of embedded servers"),
        ([*GIVEN, "hosts.toml", *URL], "hosts.toml: belongs to no option; a hosts file comes first"),
        (["--image", "client:1", *URL], "the following arguments are required: -f/--locustfile"),
        (["-f", "no-such.py", "--image", "client:1", *URL], "-f no-such.py: cannot be read"),
        (["-f", "my study.py", "--image", "client:1", *URL], "-f my study.py: objects are named after it"),
        (["-f", "7.py", "--image", "client:1", *URL], "a letter first"),
        (["-f", "a" * 41 + ".py", "--image", "client:1", *URL], "(at most 40)"),
    ],
)
def test_one_sentence_for_what_cannot_be(sentence: Sentence, arguments: list[str], expected: str) -> None:
    assert expected in sentence(*arguments)


def test_an_underscore_becomes_a_hyphen_and_the_longest_name_still_fits(make: Make, tmp_path: Path) -> None:
    file = tmp_path / f"{'a_' * 19}bc.py"
    file.write_text("pass\n")
    made = make("-f", str(file), "--image", "client:1", *URL)
    assert ("Job", f"{'a-' * 19}bc-worker") in made
    check(made, VERSIONS[-1])


# A hosts file


def hosts(folder: Path, *entries: str) -> str:
    """A hosts file of these entries."""
    file = folder / "hosts.toml"
    file.write_text("\n".join(f"[[host]]\n{entry}" for entry in entries))
    return str(file)


CLUSTER = 'name = "c"\nkind = "k8s"\nimage = "client:2"\nnamespace = "load"\nworkers = 3\nmemory = "2Gi"\n'


def test_a_hosts_file_says_what_the_command_line_does_not(make: Make, tmp_path: Path) -> None:
    table = hosts(tmp_path, CLUSTER, 'name = "h"\nkind = "process"\n')
    made = make(table, "-f", str(STEP7), "--workers", "5", *URL)
    assert ("Namespace", "load") in made
    assert made["Job", "step7-worker"]["spec"]["parallelism"] == 5
    container = pods(made)["worker"]["containers"][0]
    assert container["image"] == "client:2"
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}


def test_a_hosts_file_without_a_cluster_is_refused(sentence: Sentence, tmp_path: Path) -> None:
    table = hosts(tmp_path, 'name = "h"\nkind = "process"\n')
    assert 'has 0 hosts of kind = "k8s", and manifests need one' in sentence(table, *GIVEN, *URL)


# YAML


@pytest.mark.parametrize(
    "text", ["1e3", "on", "0x10", "12:30", "~", "a: b", "# no", "two\nlines", "t\t\n x \n", "…"]
)
def test_a_text_stays_what_it_is(text: str) -> None:
    assert yaml.safe_load(document({"key": [text], text: 1})) == {"key": [text], text: 1}


def test_a_number_to_some_reader_is_quoted() -> None:
    assert document({"key": "1e3"}) == 'key: "1e3"\n'
    shared = {"a": "b"}
    assert document({"x": shared, "y": copy.copy(shared), "z": shared}).count("a: b") == 3


# A folder


def test_a_folder_gets_one_file_an_object_and_can_be_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "k8s"
    assert main([*GIVEN, *URL, "--output", str(folder)]) == 0
    assert capsys.readouterr().out == ""
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "00-namespace-inferswarm.yaml"
    assert names[-1] == "08-job-step7-worker.yaml"
    assert len(names) == 9
    for path in folder.iterdir():
        check(by_name(path.read_text()), VERSIONS[-1])
    assert main([*GIVEN, *URL, "--namespace", "load", "--output", str(folder)]) == 0
    assert len(list(folder.iterdir())) == 9
    assert (folder / "00-namespace-load.yaml").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["k8s"]


def test_a_folder_with_anything_else_in_it_is_left_alone(sentence: Sentence, tmp_path: Path) -> None:
    (tmp_path / "notes.yaml").write_text("mine: 1\n")
    assert "holds other files; name a new or empty folder" in sentence(
        *GIVEN, *URL, "--output", str(tmp_path)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["notes.yaml"]
    assert "holds other files" in sentence(*GIVEN, *URL, "--output", str(tmp_path / "notes.yaml"))
    assert "cannot be written" in sentence(*GIVEN, *URL, "--output", str(tmp_path / "notes.yaml" / "x"))
