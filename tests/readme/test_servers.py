"""The commands that ask servers of one's own: those of `make servers`, on the ports in docs/run.md."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import os
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.locustfiles.console import ONCE, ROOT, Console, few_pictures
from tests.processes import free_port
from tests.readme.commands import EIGHT, SHORT, command, run, toml_block

pytestmark = [pytest.mark.system, pytest.mark.slow]

COMPILED = ["--trt-model", "openclip_vit_b32_openvino"]
"""The embedded servers that stand for gpu-host have OpenVINO's model in the compiled slot."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """`make servers`, on the ports in docs/run.md."""
    console = Console(command("make servers"), tmp_path_factory.mktemp("servers"))
    try:
        console.wait_for("Ctrl-C stops them", 240)
        for port in ("8002", "8010", "8011", "8020", "8021"):
            assert f"127.0.0.1:{port}" in console.text, "its ports are taken by something else"
        yield console
    finally:
        if console.process.poll() is None:
            os.killpg(console.process.pid, signal.SIGINT)
        console.wait(15)
        console.end()


@pytest.mark.usefixtures("servers")
def test_open_load(tmp_path: Path) -> None:
    amounts = ["--seconds", "2", "--warm-up", "1", "--rates", "2,4", *ONCE]
    short = [*few_pictures(), *amounts, "--results-dir", str(tmp_path)]
    rows = run([*command("--arrivals"), *short], tmp_path).cells()
    assert {(row["load"], row["level"]) for row in rows} == {("open", "2.0"), ("open", "4.0")}


@pytest.mark.usefixtures("servers")
def test_endpoints_beside_each_other(tmp_path: Path) -> None:
    amounts = ["--seconds", "2", "--warm-up", "1", *ONCE, *few_pictures(), "--results-dir", str(tmp_path)]
    console = run([*command("--together"), *amounts], tmp_path)
    assert {row["cell"] for row in console.cells()} == {
        *("onnx-http/b1/r4", "onnx-http/b1/r4/with-pytorch-http-c2"),
        *("pytorch-http/b1/c2", "pytorch-http/b1/c2/with-onnx-http-r4"),
    }
    assert "Interference" in console.text


@pytest.mark.usefixtures("servers")
def test_a_schedule_that_is_split(tmp_path: Path) -> None:
    amounts = ["--seconds", "4", "--warm-up", "1", *ONCE, *few_pictures(), "--results-dir", str(tmp_path)]
    console = run([*command("--split"), *amounts], tmp_path)
    shares = {row["endpoint"]: (row["split"], row["level"]) for row in console.cells()}
    assert shares == {"onnx-http": ("0.8", "4.0"), "onnx-grpc": ("0.2", "1.0")}
    assert "Traffic split" in console.text


@pytest.mark.usefixtures("servers")
def test_the_search(tmp_path: Path) -> None:
    """To its second step, at which it is stopped: on this machine's processor a search takes minutes."""
    own = command("--find-rate")
    own[own.index("--find-rate") + 1] = "p50<=100"
    short = ["--iterations", "20", "--warm-up", "1", "--rates", "2", "--results-dir", str(tmp_path)]
    short += few_pictures()
    console = Console([*own, *short], tmp_path)
    try:
        console.wait_for("[  2]", 60)
        console.signal(signal.SIGINT)
        assert console.wait(15) == 3
    finally:
        console.end()
    first, second, *_ = [float(row["level"]) for row in console.cells()]
    assert first == 2
    assert second in (1.0, 4.0)


@pytest.mark.usefixtures("servers")
def test_prometheus(tmp_path: Path) -> None:
    short = [*SHORT, "--cells", "*/b1/c1", "--results-dir", str(tmp_path)]
    assert len(run([*command("--prometheus-port"), *short], tmp_path).cells()) == 2


@pytest.mark.usefixtures("servers")
def test_your_own_servers(tmp_path: Path) -> None:
    arguments = [*command("--trt-http-url"), *SHORT, *COMPILED, "--results-dir", str(tmp_path)]
    console = run([*arguments, "--cells", "*/b1/c1"], tmp_path)
    cells = console.cells()
    assert len({row["endpoint"] for row in cells}) == len(cells) == 5
    # They say so themselves: the study has not started them.
    told = console.ledger()[0]["endpoints"].values()
    assert {(about["embedded"], about["weights"]) for about in told} == {(False, "random (seed 0)")}
    assert "Random weights: timings are real, embeddings mean nothing." in console.text


@pytest.mark.usefixtures("servers")
def test_gates(tmp_path: Path) -> None:
    """A study with few results, judged when it ends, again later, and by itself as a baseline: no pass."""
    whole, own = toml_block("[[threshold]]"), tmp_path / "own.toml"
    of_baseline = whole.index('[[threshold]]\nrequire = "latency_p95_ms / baseline')
    own.write_text(whole[:of_baseline])
    given = [str(own) if word == "thresholds.toml" else word for word in command("--gate thresholds.toml")]
    short = [*SHORT, "--cells", "*/b1/c8", "--results-dir", str(tmp_path / "results")]
    gated = Console([*given, *short], tmp_path)
    assert gated.wait(120) == 3, gated.text
    (folder,) = map(str, (tmp_path / "results").iterdir())
    assert '<testcase classname="step7' in Path(folder, "junit.xml").read_text()
    kept = tmp_path / "main.baseline.json"
    made = Console([*command("inferswarm baseline")[:2], folder, "--out", str(kept)], tmp_path, "baseline")
    assert made.wait(60) == 0, made.text
    (tmp_path / "thresholds.toml").write_text(whole)
    judged = [*command("inferswarm gate")[:-1], folder, "--thresholds", str(tmp_path / "thresholds.toml")]
    later = Console(judged, tmp_path, "later")
    assert later.wait(60) == 2, later.text
    assert "holds the same study" in later.text, "a study is no baseline of itself"
    again = Console([*command("inferswarm gate")[:-1], folder], tmp_path, "again")
    assert again.wait(60) == 3, again.text
    tried = Console([*command("inferswarm calibrate")[:-1], folder], tmp_path, "calibrate")
    assert tried.wait(60) == 3, tried.text
    told = Console([*command("inferswarm history")[:-1], folder, "--out", str(tmp_path)], tmp_path, "history")
    assert told.wait(60) == 0, told.text
    assert "Not known yet." in told.text


@pytest.mark.usefixtures("servers")
def test_processes(tmp_path: Path) -> None:
    console = run([*command("--processes"), *SHORT, *EIGHT, "--results-dir", str(tmp_path)], tmp_path)
    assert {row["workers"] for row in console.cells()} == {"2"}


@pytest.mark.usefixtures("servers")
def test_master_and_workers_which_something_else_starts(tmp_path: Path) -> None:
    port = str(free_port())
    ways = ["--results-dir", str(tmp_path), "--master-bind-port", port]
    master = [*command("--master "), *SHORT, *EIGHT, *ways]
    page = (ROOT / "docs/run.md").read_text(encoding="utf-8")
    (start,) = re.findall(r"^\| this machine \| `(.+)` \|$", page, re.MULTILINE)
    assert start.count("1 2 3 4") == start.count("WORKER") == 1
    worker = shlex.join([*command("--worker"), "--master-port", port])
    script = start.replace("1 2 3 4", "1 2").replace("WORKER", worker)
    with Console(["sh", "-c", script], tmp_path, "workers", INFERSWARM_HOST="node-7") as workers:
        console = run(master, tmp_path)
        assert workers.wait(20) == 0, workers.text
    starts = [record for record in console.ledger() if record.get("event") == "start"]
    assert {(*record["places"],) for record in starts} == {("node-7", "node-7")}
    assert {row["endpoint"] for row in console.cells()} == {"onnx-http", "onnx-grpc"}
