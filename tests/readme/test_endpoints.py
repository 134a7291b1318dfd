"""The commands that ask endpoints of any model: a Triton that others made, and an HTTP service."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.strange_servers.tritonserver import triton
from server.models.export import export, onnx_path, weights_folder
from server.spec import ModelSpec
from tests.locustfiles.console import ROOT, Console
from tests.readme.commands import SHORT, command, run, toml_block
from tests.stand_ins import stand_in

pytestmark = [pytest.mark.system, pytest.mark.slow]

PLACES = ("127.0.0.1:8001", "127.0.0.1:9001")
"""Where README and docs/results.md have their Tritons."""
ENDPOINTS = (ROOT / "docs/endpoints.md").read_text(encoding="utf-8")
MS = re.compile(r"\d+\.\d ms")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The gRPC address of a tritonserver with the model that the README measures."""
    export(ModelSpec(), weights_folder())
    with triton(onnx_path(ModelSpec())) as found:
        yield found.grpc


def at(words: list[str], address: str) -> list[str]:
    """A command with that address in place of the written one."""
    for place in PLACES:
        words = [word.replace(place, address) for word in words]
    return words


def measured(words: list[str], folder: Path, *more: str) -> Console:
    """A short study by a command: its failures are none, whatever else a busy machine leaves open."""
    with Console([*words, *SHORT, "--results-dir", str(folder / "results"), *more], folder) as console:
        assert console.wait(120) in (0, 3), console.text
    console.folder = folder / "results"
    assert {row["failures"] for row in console.cells()} == {"0"}
    assert (console.result() / "report.html").stat().st_size > 0
    return console


def test_the_probe_prints_what_docs_endpoints_shows(tmp_path: Path, address: str) -> None:
    asked = command("inferswarm probe")
    assert " ".join(asked[1:]) in ENDPOINTS.replace("gpu-host", "127.0.0.1")
    said = run(at(asked, address), tmp_path, 60).text.replace(address, "gpu-host:8001")
    (shown,) = re.findall(r"```text\n(siglip: .*?)```", ENDPOINTS, re.DOTALL)
    assert len(shown.splitlines()) == 10
    assert MS.sub("ms", said).startswith(MS.sub("ms", shown))


def test_a_triton(tmp_path: Path, address: str) -> None:
    console = measured(at(command("--endpoint siglip="), address), tmp_path)
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == {"siglip/b1/c1", "siglip/b1/c8"}
    assert {(row["payload"], row["model"], row["codec"]) for row in rows.values()} == {
        ("fp16", "siglip_fp16", "v2-grpc")
    }


def test_an_http_service(tmp_path: Path) -> None:
    text = toml_block('url = "http://gpu-host')
    assert len(text.splitlines()) <= 15
    same = tomllib.loads((ROOT / "examples/endpoints/infinity.toml").read_text())
    assert tomllib.loads(text.replace("gpu-host", "127.0.0.1")) == same
    with stand_in("any_server.py") as address:
        (tmp_path / "mine.toml").write_text(text.replace("gpu-host:7997", address))
        words = [
            word.replace("mine.toml", str(tmp_path / "mine.toml")) for word in command("--endpoint mine=")
        ]
        console = measured(words, tmp_path)
    assert {row["cell"] for row in console.cells()} == {
        f"mine/b{batch}/c{users}" for batch in (1, 8) for users in (1, 16)
    }


def test_an_old_and_a_new_one(tmp_path: Path, address: str) -> None:
    (tmp_path / "new.toml").write_text(toml_block("# new.toml"))
    words = at(command("--endpoint old="), address)
    words = [str(tmp_path / "new.toml") if word == "new.toml" else word for word in words]
    console = measured(words, tmp_path)
    judged = json.loads((console.result() / "gates.json").read_text())["verdicts"]
    assert {(one["cell"], one["outcome"]) for one in judged if one["require"] == "new / old >= 0.95"} == {
        (f"new/b1/c{users} / old/b1/c{users}", "inconclusive") for users in (1, 8)
    }
    assert "a ratio takes 3" in console.text
