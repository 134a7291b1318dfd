"""Every command of the README and its pages is run somewhere in this folder; here, those without servers."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.locustfiles.console import ROOT
from tests.readme.commands import EIGHT, SHORT, command, commands, run

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_no_command_is_left_out() -> None:
    known = {
        "make step7", "make test", "make web", "make servers", "inferswarm doctor", "--trt-http-url",
        "--processes", "--master ", "--worker", "inferswarm report results", "--arrivals", "--find-rate",
        "--prometheus-port", "benchmarks.accuracy", "--emulate", "inferswarm run", "hosts prepare",
        "hosts check", "inferswarm link wan-a100", "inferswarm compare", "--gate thresholds.toml",
        "inferswarm gate", "inferswarm baseline", "inferswarm calibrate", "inferswarm profile",
        "inferswarm history",
        "--endpoints onnx-grpc", "inferswarm probe",
        "--endpoints pytorch-http", "--together", "--split", "--compression", "--replay burst.csv",
        "inferswarm trace make", "inferswarm trace show", "inferswarm trace convert",
        "--endpoint siglip=", "--endpoint mine=", "--endpoint old=",
    }  # fmt: skip
    assert len(commands()) == len(known) + 1, "and `swarm link`, which another one begins with"
    assert all(sum(part in line for line in commands()) == 1 for part in known)


def test_every_test_is_run_by_one_target() -> None:
    """By `make test` or `make test-slow`: a file whole, or its slow tests by one, the rest by the other."""
    parts = "slow-links slow-alone test-patched test-studies test-unpatched test-reports slow-studies"
    told = subprocess.run(
        ["make", "-n", *parts.split(), "slow-readme", "slow-patched", "slow-unpatched"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [shlex.split(line)[3:] for line in told.stdout.splitlines() if " -m pytest " in line]
    assert len(lines) == 10
    run_with: dict[Path, list[str]] = {path: [] for path in ROOT.glob("tests/**/test_*.py")}
    for words in lines:
        for path in asked(words):
            how = words[words.index("-m") + 1] if "-m" in words else "all"
            if how != "not slow" or "all" not in run_with[path] or not ALL_SLOW.search(path.read_text()):
                run_with[path].append(how)
    assert {str(path): how for path, how in run_with.items() if sorted(how) not in HOW} == {}
    assert command("make test") == ["make", "test"]


HOW = (["all"], ["not slow", "slow"])
ALL_SLOW = re.compile(r"^pytestmark = .*mark\.slow", re.MULTILINE)


def asked(words: list[str]) -> set[Path]:
    """The files with tests that pytest would look into."""
    left = [ROOT / word.partition("=")[2] for word in words if word.startswith("--ignore=")]
    places = [ROOT / word for word in words if word.startswith("tests")]
    files = {file for place in places for file in (place.glob("**/test_*.py") if place.is_dir() else [place])}
    return {file for file in files if not any(file.is_relative_to(place) for place in left)}


def test_emulated_servers_and_their_floors(tmp_path: Path) -> None:
    rows = run([*command("--emulate"), *SHORT, *EIGHT, "--results-dir", str(tmp_path)], tmp_path).cells()
    seen = {row["endpoint"]: row["tcp_connections"] for row in rows}
    names = ("emulated-http", "emulated-grpc", "emulated-http-floor", "emulated-grpc-floor")
    assert seen == dict.fromkeys(names, "1")
    assert all(row["limit"] and row["failures"] == "0" for row in rows)


def test_payloads(tmp_path: Path) -> None:
    arguments = [*command("--endpoints onnx-grpc"), *SHORT, "--cells", "*/b1/c1"]
    found = run([*arguments, "--results-dir", str(tmp_path)], tmp_path).cells()
    rows = {row["endpoint"]: row for row in found}
    assert set(rows) == {"onnx-grpc", "onnx-jpeg-grpc", "onnx-uint8-grpc", "gateway-http"}
    assert all((row["failures"], row["batch"]) == ("0", "1") for row in rows.values())
    sizes = {name: float(row["request_bytes"]) for name, row in rows.items()}
    assert 5_000 < sizes["onnx-jpeg-grpc"] < sizes["gateway-http"] < 25_000
    assert 150_528 < sizes["onnx-uint8-grpc"] < 151_000
    assert sizes["onnx-grpc"] > 602_112


def test_compression_and_shared_memory(tmp_path: Path) -> None:
    arguments = [*command("--compression"), *SHORT, "--cells", "onnx-*/b1/c1/*"]
    found = run([*arguments, "--results-dir", str(tmp_path)], tmp_path).cells()
    assert all(row["failures"] == "0" for row in found)
    assert len(found) == 8
    for protocol in ("http", "grpc"):
        own = {row["cell"]: float(row["request_bytes"]) for row in found if row["protocol"] == protocol}
        sizes = {cell.partition("/c1/")[2]: size for cell, size in own.items()}
        assert sizes["uncompressed/shm-system"] < 400
        assert 10_000 < min(sizes["gzip"], sizes["deflate"]) < max(sizes["gzip"], sizes["deflate"]) < 300_000
        assert sizes["uncompressed/shm-none"] > 602_112


def test_pytorch_alone(tmp_path: Path) -> None:
    arguments = [*command("--endpoints pytorch-http"), *SHORT, "--cells", "*/b1/c1"]
    rows = run([*arguments, "--results-dir", str(tmp_path)], tmp_path).cells()
    assert {row["endpoint"] for row in rows} == {"pytorch-http", "torch-http", "torch-grpc"}
    assert all((row["failures"], row["batch"]) == ("0", "1") for row in rows)


def test_the_operators_of_the_model(tmp_path: Path) -> None:
    assert "MatMul" in run(command("inferswarm profile"), tmp_path, 120).text


def test_a_benchmark(tmp_path: Path) -> None:
    assert "every bound holds" in run(command("benchmarks.accuracy"), tmp_path, 120).text


def test_doctor(tmp_path: Path) -> None:
    assert "tritonserver" in run(command("inferswarm doctor"), tmp_path, 60).text
