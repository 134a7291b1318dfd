"""The manifests' command line: tokens, a hosts file, the folder to write, and what one sentence refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm.hosts.k8s import Target, target_of, targets_of
from swarm.hosts.k8s_command import main
from swarm.options.table import URLS, flag
from tests.swarm.hosts.clusters import (
    GIVEN,
    STEP7,
    URL,
    VERSIONS,
    Make,
    Sentence,
    by_name,
    check,
    command,
    pods,
)


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


def test_every_url_option_of_a_study_is_a_target() -> None:
    typed = [word for name in URLS for word in (flag(name), "gpu:9000")]
    assert [target.option for target in targets_of(typed)] == [flag(name) for name in URLS]


def test_a_target_without_a_port_has_its_schemes() -> None:
    assert target_of("--a-url", "http://gpu/metrics") == Target("--a-url", "gpu", 80)
    assert target_of("--a-url", "https://gpu").port == 443


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
