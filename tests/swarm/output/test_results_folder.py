"""A study's folder, and what its ledger's header says of the study and of each endpoint."""

from locust.argument_parser import get_empty_argument_parser

import json
import os
import resource
import stat
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.ledger.ledger import VERSION
from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.options.parse import add_options, resolve
from swarm.output import results_folder
from swarm.output.results_folder import about, header, new_folder, open_ledger, remove_if_refused
from swarm.plan.cell import Cell, PlannedRun
from swarm.targets.endpoints import FIVE, chosen, endpoints_from_ready
from swarm.targets.servers import Servers
from tests.pictures import image_set
from users.backends.registry import FLOOR, backend_of
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.preparation import PRESETS

READY: dict[str, Any] = {
    "model": "ViT-B-32",
    "weights": "random, seed 0",
    "endpoints": {
        "pytorch": {"url": "http://127.0.0.1:8002", "started_ns": 3, "loaded_ns": 2},
        "onnx": {"http": "127.0.0.1:8010", "grpc": "127.0.0.1:8011", "model": "clip", "started_ns": 5},
    },
}
EMULATED: dict[str, Any] = {
    "endpoints": {
        "emulated": {
            "http": "127.0.0.1:8030",
            "grpc": "127.0.0.1:8031",
            "model": "emulated",
            "started_ns": 7,
            "loaded_ns": None,
            "emulated": "a100: 3.11 ms + 1.29 ms an image",
        },
    },
}


SPACE = {"space": "openclip_vit_b32", "dimension": 512}
FILES = {"codec": "embed", "server": "pytorch", "inputs": ["images BYTES [1] jpeg"], "output": "embeddings"}
FILES |= SPACE
PICTURE = "input FP32 [3, 224, 224] picture"
TENSORS = {"codec": "v2-binary", "inputs": [PICTURE], "prepare": "clip", "output": "embedding", **SPACE}


def options(*arguments: str) -> Options:
    parser = get_empty_argument_parser(default_config_files=[])
    add_options(parser)
    return resolve(parser.parse_args(list(arguments)))


FIVE_WAYS = chosen(FIVE, options())


def told(ready: dict[str, Any], name: str) -> dict[str, Any]:
    (endpoint,) = [e for e in endpoints_from_ready(ready, FIVE_WAYS) if e.name == name]
    return about(endpoint, options(), ready, {})


def of(url: str, model: str, weights: str, embedded: bool = True) -> dict[str, Any]:
    """What is told of every endpoint."""
    return {"url": url, "model": model, "weights": weights, "embedded": embedded}


RANDOM = "random, seed 0"


@pytest.mark.parametrize(
    ("ready", "name", "expected"),
    [
        (
            READY,
            "pytorch-http",
            of("127.0.0.1:8002", "ViT-B-32", RANDOM) | FILES | {"started_ns": 3, "loaded_ns": 2},
        ),
        (
            READY,
            "onnx-grpc",
            of("127.0.0.1:8011", "clip", RANDOM)
            | TENSORS
            | {"codec": "v2-grpc", "server": "onnx", "started_ns": 5},
        ),
        (
            EMULATED,
            "emulated-http",
            of("127.0.0.1:8030", "emulated", "none")
            | TENSORS
            | {"server": "emulated", "started_ns": 7, "emulated": "a100: 3.11 ms + 1.29 ms an image"},
        ),
    ],
)
def test_what_embedded_servers_tell(ready: dict[str, Any], name: str, expected: dict[str, Any]) -> None:
    assert told(ready, name) == expected


def test_a_floor_says_whose_it_is_and_nothing_of_its_servers_model() -> None:
    pytorch, onnx, _ = endpoints_from_ready(READY, FIVE_WAYS)
    for endpoint, asked in ((pytorch, FILES), (onnx, {**TENSORS, "server": "onnx"})):
        expected = of(endpoint.address, "null", "none") | asked | {"floor_of": endpoint.name}
        assert about(endpoint.floor(), options(), READY, {}) == expected
    (emulated, _) = endpoints_from_ready(EMULATED, FIVE_WAYS)
    assert "emulated" not in about(emulated.floor(), options(), EMULATED, {})


def test_a_server_by_url_need_not_tell() -> None:
    (endpoint,) = endpoints_from_ready({"endpoints": {"pytorch": {"url": "http://gpu:8002"}}}, FIVE_WAYS)

    def by_url(stated: dict[str, str]) -> dict[str, Any]:
        return about(endpoint, options("--pytorch-url", "gpu:8002"), {}, stated)

    assert by_url({}) == of("gpu:8002", "", "unknown", embedded=False) | FILES
    more = {"emulated": "a100", "server_version": "2.51.0"}
    stated = {"model": "ViT-B-32", "weights": RANDOM, **more}
    expected = of("gpu:8002", "ViT-B-32", RANDOM, embedded=False) | FILES | more
    assert by_url(stated) == expected


def test_an_endpoint_of_any_model_says_what_it_takes_and_what_was_guessed() -> None:
    contract = Contract(
        (Input("pixel_values", "FP16", (384, 384, 3), "picture", "NHWC"),),
        PRESETS["siglip"],
        "image_embeds",
        768,
        max_batch=8,
        guesses=("prepared as siglip",),
    )
    endpoint = Endpoint(
        "new", "triton", "grpc", "fp16", "gpu:1", "siglip", codec="mine.py", codec_sha256="ab",
        contract=contract, server="new server", space="siglip", stands_for="trt",
        settings={"body": {"fetched_by_server": True}},
    )  # fmt: skip
    given = options("--endpoint", "new=triton+grpc://gpu:1/siglip")
    assert about(endpoint, given, {}, {}) == of("gpu:1", "siglip", "unknown", embedded=False) | {
        "codec": "mine.py", "codec_sha256": "ab", "server": "new server", "space": "siglip",
        "inputs": ["pixel_values FP16 [384, 384, 3] picture"], "prepare": "siglip",
        "output": "image_embeds", "dimension": 768, "max_batch": 8, "guesses": ["prepared as siglip"],
        "stands_for": "trt", "fetched_by_server": True,
    }  # fmt: skip


def test_the_header_says_what_the_study_is_and_ran_on() -> None:
    servers, images, study = Servers(print), image_set(3), SimpleNamespace(name="s", title="A study")
    _, onnx, _ = endpoints_from_ready(READY, FIVE_WAYS)
    tls = replace(onnx, name="secured", tls=True)
    servers.endpoints, servers.ready = [onnx, onnx.floor(), tls], READY
    servers.targets, servers.here = {"onnx": {"found": "here"}}, {onnx.name: False}
    runs = [PlannedRun(Cell(onnx, 1, 2, 10, 30), repeat) for repeat in (1, 2)]
    given = options("--batches", "1")
    head = header(study, given, ["locust", "-f", "a b.py"], runs, images, servers)  # type: ignore[arg-type]
    about_it = ("header", VERSION, "s", "A study", given.size)
    assert tuple(head[name] for name in ("kind", "version", "study", "title", "size")) == about_it
    assert head["plan"] == [run.to_record() for run in runs]
    assert head["options"] == {**given.to_record(), "command": "locust -f 'a b.py'"}
    sizes = list(map(len, images.jpegs))
    assert head["images"] == {
        "count": 3, "source": "test", "jpeg_bytes_mean": sum(sizes) / 3, "sha256": images.sha256,
    }  # fmt: skip
    assert head["backends"] == {"onnx": asdict(backend_of(onnx).facts), "null": asdict(FLOOR)}
    told = {
        name: [one.get(key) for key in ("local", "floor_of", "tls")]
        for name, one in head["endpoints"].items()
    }
    floor = {onnx.floor().name: [None, onnx.name, None]}
    assert told == {onnx.name: [False, None, None], **floor, "secured": [None, None, True]}
    assert head["fingerprint"]["targets"] == servers.targets
    assert head["fingerprint"]["cores"] == os.cpu_count()
    assert head["fingerprint"].keys() >= {"python", "packages", "system", "cpu"}
    assert ("onnxruntime" in head["fingerprint"]["packages"]) == given.embedded


def test_a_ledger_begins_with_its_header(tmp_path: Path) -> None:
    open_ledger(tmp_path, {"kind": "header", "study": "s"}).close()
    (line,) = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line).items() >= {"kind": "header", "study": "s"}.items()
    with pytest.raises(
        UsageError, match=r"none cannot be written \(No such file or directory\); name another"
    ):
        open_ledger(tmp_path / "none", {})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python closes the ledger
def test_a_study_that_a_full_disk_refuses_leaves_no_folder(tmp_path: Path) -> None:
    folder = new_folder(tmp_path, "step7")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(UsageError, match="File too large"), remove_if_refused(folder):
            open_ledger(folder, {"kind": "header"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_each_study_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noon = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
    monkeypatch.setattr(results_folder, "datetime", SimpleNamespace(now=lambda zone: noon))
    made = [new_folder(tmp_path / "results", "step7") for _ in range(3)]
    first = "step7-20261121T120005Z"
    assert [folder.name for folder in made] == [first, f"{first}-2", f"{first}-3"]
    assert [stat.S_IMODE((folder / "logs").stat().st_mode) for folder in made] == [0o700] * 3
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--results-dir: cannot make .*file/x \(Not a directory\)"):
        new_folder(tmp_path / "file" / "x", "step7")
