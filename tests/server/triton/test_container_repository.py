"""What a GPU host's containers are made of: configurations, model repositories, images, the compose file."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig, ModelInstanceGroup

from server.__main__ import COMMANDS, main
from server.embedded.plans import TRITON_PORTS
from server.models import export
from server.spec import ROOT
from server.triton.repository import CONTAINERS, TRITON_MODELS, container_files, lay_out
from tests.server.triton import check_configs
from tests.server.triton.check_configs import shapes

GPU = ROOT / "triton_repo" / "gpu"
BATCHES = [1, 4, 8, 16, 32]


def config_of(path):
    return text_format.Parse(path.read_text(), ModelConfig())


def accelerator(config):
    (only,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    return only


def pins(name):
    """The pinned versions of one requirements file, without what it includes."""
    return dict(re.findall(r"(?m)^([^#\s]+)==([^#;\s]+)", (ROOT / name).read_text()))


def test_every_configuration_is_as_triton_takes_it(capsys):
    assert check_configs.main([str(ROOT / "triton_repo")]) == 0
    found = len(list((ROOT / "triton_repo").rglob("config.pbtxt")))
    assert found >= 11
    assert capsys.readouterr().out == f"{found} configurations are as Triton takes them\n"


def test_a_configuration_that_triton_cannot_parse_is_named_with_its_line(tmp_path, capsys):
    (tmp_path / "config.pbtxt").write_text('name: "one"\nbackend: "python"\nmax_batch: 3\n')
    assert check_configs.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path}/config.pbtxt:3: 3:1 : ")
    assert 'no field named "max_batch"' in said
    (tmp_path / "config.pbtxt").unlink()
    assert check_configs.main([str(tmp_path)]) == 1
    assert check_configs.main([]) == 2


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('name: "openclip_vit_b32_trt"', 'name: "other"', "its name is 'other', and its folder's "),
        ("[ 4, 8, 16, 32 ]", "[ 4, 64 ]", "preferred_batch_size [64] is above max_batch_size 32"),
        ('backend: "onnxruntime"', "", "it has to name a backend or a platform"),
        ("max_batch_size: 32", "max_batch_size: 32 response_cache {enable: true}", "its response cache"),
        ('"tensorrt"', '"tensort"', "the onnxruntime backend knows no GPU accelerator 'tensort'"),
        ("trt_timing_cache_path", "trt_timing_path", "accelerator tensorrt takes no trt_timing_path"),
        ('"input:32x3', '"input:16x3', "the profile's batches 1, 8, 16 do not span 1 to 32"),
        ('"input:1x3', '"pixels:1x3', "the profile's shapes of input are not batches of its dims"),
        ("trt_profile_opt_shapes", "trt_engine_cache_prefix", "a TensorRT profile needs its min, opt and"),
        ("batch_size: 16\n", "batch_size: 64\n", "warm-up 'batch 16' has batch_size 64"),
        ("TYPE_FP32 dims: [ 3", "TYPE_FP16 dims: [ 3", "warm-up 'batch 1' gives other"),
    ],
)
def test_what_a_configuration_gets_wrong_is_said(old, new, fault, tmp_path):
    text = (GPU / "openclip_vit_b32_trt" / "config.pbtxt").read_text()
    assert old in text
    folder = tmp_path / "openclip_vit_b32_trt"
    folder.mkdir()
    (folder / "config.pbtxt").write_text(text.replace(old, new))
    said = check_configs.faults(folder / "config.pbtxt")
    assert said[0].startswith(f"{folder}/config.pbtxt: {fault}"), said


@pytest.mark.parametrize("model", ["openclip_vit_b32", "openclip_vit_b32_trt"])
def test_the_native_models_are_the_embedded_one_on_a_gpu(model):
    config = config_of(GPU / model / "config.pbtxt")
    embedded = config_of(ROOT / "triton_repo" / "onnx" / "openclip_vit_b32" / "config.pbtxt")
    assert (config.name, config.backend) == (model, "onnxruntime")
    for field in ("input", "output", "max_batch_size", "dynamic_batching"):
        assert getattr(config, field) == getattr(embedded, field)
    (group,) = config.instance_group
    assert (group.kind, group.count) == (ModelInstanceGroup.KIND_GPU, 1)
    assert [warm_up.batch_size for warm_up in config.model_warmup] == BATCHES
    assert not config.optimization.cuda.graphs


def test_no_batch_builds_the_engine_again():
    container = accelerator(config_of(GPU / "openclip_vit_b32_trt" / "config.pbtxt")).parameters
    assert (container["precision_mode"], container["trt_engine_cache_enable"]) == ("FP16", "1")
    embedded = config_of(ROOT / "triton_repo" / "trt" / "openclip_vit_b32_trt" / "config.pbtxt").parameters
    assert embedded["trt_fp16_enable"].string_value == "1"
    for key, batch in (("min", 1), ("opt", 8), ("max", 32)):
        name = f"trt_profile_{key}_shapes"
        assert shapes(container[name]) == {"input": [batch, 3, 224, 224]}
        assert embedded[name].string_value == container[name]
    assert [int(size) for size in embedded["warm_up"].string_value.split(",")] == BATCHES


def test_onnx_runtime_computes_in_full_float32():
    cuda = accelerator(config_of(GPU / "openclip_vit_b32" / "config.pbtxt"))
    assert (cuda.name, dict(cuda.parameters)) == ("cuda", {"use_tf32": "0"})


def test_repositories_are_laid_out_with_the_exported_model(tmp_path):
    onnx = tmp_path / "some.onnx"
    onnx.write_bytes(b"model")
    facts = {"model": "ViT-B-32", "weights": "my.pt", "weights_sha256": "ab"}
    for _ in range(2):
        lay_out(onnx, tmp_path / "repository", facts)
    for server in CONTAINERS:
        model = TRITON_MODELS[server]
        repository = tmp_path / "repository" / server
        models = {folder.name for folder in repository.iterdir()}
        assert models == {model, f"{model}_jpeg", f"{model}_uint8", "decode_jpeg", "normalise_uint8", "null"}
        assert all((repository / name / "1").is_dir() for name in models)
        assert (repository / model / "1" / "model.onnx").samefile(onnx)
        held = config_of(repository / model / "config.pbtxt").parameters
        assert {key: held[key].string_value for key in facts} == facts
        steps = config_of(repository / f"{model}_jpeg" / "config.pbtxt").ensemble_scheduling.step
        assert [step.model_name for step in steps] == ["decode_jpeg", model]
    assert check_configs.main([str(tmp_path / "repository")]) == 0


def test_what_the_configurations_say_is_laid_out(tmp_path, monkeypatch):
    """An edited delay is not set back to ours."""
    for name in ("payloads", "null"):
        (tmp_path / name).symlink_to(ROOT / "triton_repo" / name)
    text = (GPU / "openclip_vit_b32" / "config.pbtxt").read_text()
    edited = text.replace("microseconds: 10000", "microseconds: 2000").replace("count: 1", "count: 2")
    own = tmp_path / "gpu" / "openclip_vit_b32"
    own.mkdir(parents=True)
    (own / "config.pbtxt").write_text(edited)
    monkeypatch.setattr("server.triton.repository.SOURCE", tmp_path)
    made = container_files("openclip_vit_b32", {"weights": "w"})["openclip_vit_b32/config.pbtxt"].decode()
    assert made == edited + 'parameters { key: "weights" value { string_value: "w" } }\n'


def test_where_files_cannot_be_linked_they_are_copied(tmp_path, monkeypatch):
    onnx = tmp_path / "some.onnx"
    onnx.write_bytes(b"model")

    def refuse(*_):
        raise OSError("another file system")

    monkeypatch.setattr("os.link", refuse)
    lay_out(onnx, tmp_path / "repository", {})
    copy = tmp_path / "repository" / "onnx" / "openclip_vit_b32" / "1" / "model.onnx"
    assert copy.read_bytes() == b"model"
    assert not copy.samefile(onnx)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, capsys):
    taken = tmp_path / "taken"
    said = "cannot be written (not a directory): give a folder that you can write to.\n"
    taken.write_text("a file")
    assert main(["export", "--out", str(taken / "in")]) == 2
    assert capsys.readouterr().err == f"--out {taken}/in {said}"
    monkeypatch.setattr(export, "export", lambda *_: None)
    monkeypatch.setattr(export, "current_stamp", lambda *_: {"weights_sha256": "ab"})
    assert main(["export", "--repository", str(taken)]) == 2
    assert capsys.readouterr().err == f"--repository {taken} {said}"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "server" / "compose.yaml").read_text())


def test_the_containers_listen_where_studies_ask(compose):
    ports = {name: service["ports"] for name, service in compose["services"].items()}
    here = "${INFERSWARM_BIND:-127.0.0.1}"
    assert ports["pytorch"] == ports["pytorch-cpu"] == [f"{here}:8002:8002"]
    for server in CONTAINERS:
        inside = zip(TRITON_PORTS[server], (8000, 8001, 8002), strict=True)
        assert ports[f"triton-{server}"] == [f"{here}:{port}:{own}" for port, own in inside]
    assert ports["gateway"] == [f"{here}:8040:8002"]


def test_the_containers_have_few_rights_and_say_when_they_are_ready(compose):
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert service["image"].partition(":")[2] not in ("", "latest"), name
        reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
        gpus = [device["capabilities"] for device in reserved]
        assert gpus == ([["gpu"]] if name in ("pytorch", "triton-onnx", "triton-trt") else []), name
    only_cpu = [name for name, service in compose["services"].items() if service["profiles"] == ["cpu"]]
    assert only_cpu == ["pytorch-cpu"]


def test_the_engine_cache_is_a_volume_that_lasts_as_long_as_building_takes(compose):
    service = compose["services"]["triton-trt"]
    container = accelerator(config_of(GPU / "openclip_vit_b32_trt" / "config.pbtxt")).parameters
    folder = container["trt_engine_cache_path"]
    assert service["volumes"][-1] == f"engines:{folder}"
    assert "engines" in compose["volumes"]
    assert folder in (ROOT / "server" / "Dockerfile.triton").read_text()
    assert service["healthcheck"]["start_period"] == "900s"


def test_models_are_loaded_over_the_network_only_where_sweeps_are_asked_for(compose):
    closed = (ROOT / "server" / "Dockerfile.triton").read_text()
    assert "--model-control-mode" not in closed
    for option in ("http-restricted-api", "grpc-restricted-protocol"):
        assert f"--{option}=$apis:$secret" in closed
    assert not any("command" in service for service in compose["services"].values())
    sweep = yaml.safe_load((ROOT / "server" / "compose.sweep.yaml").read_text())["services"]
    assert set(sweep) == {"triton-onnx", "triton-trt"}
    for service in sweep.values():
        told = service["environment"]
        assert "--model-control-mode=explicit" in told["INFERSWARM_TRITON_OPTIONS"]
        # Docker Compose ends where it is not set.
        assert told["INFERSWARM_MODEL_CONTROL"].startswith("${INFERSWARM_MODEL_CONTROL:?")


def test_the_images_tritonserver_has_a_secret_in_any_case(tmp_path):
    """Its command, run by a shell with something in tritonserver's place."""
    written = (ROOT / "server" / "Dockerfile.triton").read_text().partition('CMD ["sh"')[2]
    command = json.loads('["sh"' + written.replace("\\\n", ""))
    stand_in = tmp_path / "tritonserver"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)

    def words(**environ):
        environ |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.split()

    assert words()[-1].startswith("--grpc-restricted-protocol=model-repository,shared-memory,trace,logging:")
    secrets = [word.partition("inferswarm-control=")[2] for word in words()[-2:]]
    assert secrets[0] == secrets[1] != words()[-1].partition("inferswarm-control=")[2]
    assert re.fullmatch("[0-9a-f]{64}", secrets[0])
    given = words(INFERSWARM_MODEL_CONTROL="a=b", INFERSWARM_TRITON_OPTIONS="--load-model=* --x")
    assert given[-4].endswith(":a=b")
    assert given[-2:] == ["--load-model=*", "--x"]


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.cuda", "Dockerfile.triton"])
def test_images_are_pinned_and_run_as_nobodys_root(name):
    lines = (ROOT / "server" / name).read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert bases
    assert all(any(digit.isdigit() for digit in base.partition(":")[2]) for base in bases)
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users[-1] in ("65532:65532", "1000:1000")
    assert any(line.strip().startswith("CMD [") for line in lines)


def test_pins_are_the_same_in_all_requirements():
    client, server = pins("requirements-client.txt"), pins("requirements-server.txt")
    shared = set(client) & set(server)
    assert {name: server[name] for name in shared} == {name: client[name] for name in shared}
    assert shared >= {"numpy", "pillow", "prometheus-client"}
    all_on_cpu, all_on_gpu = pins("requirements.txt"), pins("requirements-gpu.txt")
    assert all_on_gpu.pop("onnxruntime-gpu[cuda,cudnn]") == all_on_cpu.pop("onnxruntime")
    assert all_on_gpu == all_on_cpu
    assert f"pillow=={client['pillow']}" in (ROOT / "server" / "Dockerfile.triton").read_text()


def test_the_service_needs_nothing_that_its_image_lacks():
    lacking = "dict.fromkeys(('onnx', 'onnxruntime', 'openvino', 'pytriton', 'locust'))"
    modules = ", ".join([*COMMANDS.values(), "server.service.app", "server.models.triton_upstream"])
    code = f"import sys; sys.modules |= {lacking}; import {modules}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
