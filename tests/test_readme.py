"""Every command of the README is run, as it stands there but for host names and shorter cells."""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import csv
import os
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm.option_table import NUMBERS, SWITCHES, TEXTS, URLS, flag
from tests.locustfiles.console import (
    ENDPOINTS,
    ROOT,
    Console,
    few_pictures,
    free_port,
    is_listening,
    wait_until,
)
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd
from tests.swarm.links.means import real

pytestmark = pytest.mark.system

SHORT = ["--iterations", "2", "--seconds", "0.1", "--warm-up", "0.5", *few_pictures()]
EIGHT = ["--cells", "*/b1/c8"]
COMPILED = ["--trt-model", "openclip_vit_b32_openvino"]
"""The embedded servers that stand for the README's gpu-host have OpenVINO's model in the compiled slot."""


def commands() -> list[str]:
    """The lines after `$` in the README's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def command(*parts: str) -> list[str]:
    """The one README command that has all these parts, its host names replaced by this machine's."""
    (found,) = [line for line in commands() if all(part in line for part in parts)]
    return shlex.split(found.replace("gpu-host", "127.0.0.1").replace("load-master", "127.0.0.1"))


def toml_block(start: str) -> str:
    """The README's one TOML file that begins so."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(start)]
    return str(found)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """`make servers`, on the ports that the README names."""
    console = Console(command("make servers"), tmp_path_factory.mktemp("servers"))
    try:
        console.wait_for("Ctrl-C stops them", 240)
        for port in ("8002", "8010", "8011", "8020", "8021"):
            assert f"127.0.0.1:{port}" in console.text, "the README's ports are taken by something else"
        yield console
    finally:
        if console.process.poll() is None:
            os.killpg(console.process.pid, signal.SIGINT)
        console.wait(15)
        console.end()


def run(arguments: list[str], folder: Path, seconds: float = 240) -> Console:
    """To its end, which must be a good one."""
    console = Console(arguments, folder)
    try:
        assert console.wait(seconds) == 0, console.text
    finally:
        console.end()
    return console


def test_no_command_is_left_out() -> None:
    known = {
        "make step7", "make test", "make web", "make servers", "server doctor", "--trt-http-url",
        "--processes", "--master ", "--worker", "reports show", "--arrivals", "--find-rate",
        "--prometheus-port", "benchmarks/accuracy.py", "--emulate", "swarm run", "hosts prepare",
        "hosts check", "swarm link wan-a100", "reports compare", "--gate", "reports gate", "reports baseline",
        "reports calibrate",
    }  # fmt: skip
    assert len(commands()) == len(known) + 1, "and `swarm link`, which another one begins with"
    assert all(sum(part in line for line in commands()) == 1 for part in known)


def test_every_option_is_explained() -> None:
    rows = re.findall(r"^\| (`--[^|]*) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    explained = sorted(name for row in rows for name in re.findall(r"--[a-z0-9-]+", row))
    launchers = ["--workers", "--hosts", "--link", "--links", "--web"]
    assert explained == sorted(["--study", *launchers, *map(flag, (*URLS, *NUMBERS, *TEXTS, *SWITCHES))])


def test_make_test_runs_this_file() -> None:
    """`make test` is what runs this; that it names every test folder is what can be asked here."""
    makefile = (ROOT / "Makefile").read_text()
    assert "pytest tests/server $(BROWSER)\n" in makefile
    assert "pytest tests/reports --ignore=$(BROWSER)\n" in makefile
    assert "test-studies test-parts test-reports test-calm\n" in makefile
    assert "pytest tests/swarm/links --confcutdir=tests/swarm/links\n" in makefile
    assert "pytest tests/locustfiles $(addprefix --ignore=,$(ALONE) $(CALM))\n" in makefile
    assert "pytest $(CALM)\n" in makefile
    assert "pytest tests --ignore=tests/server --ignore=tests/reports --ignore=tests/locustfiles" in makefile
    assert "pytest $(ALONE)" in makefile
    assert command("make test") == ["make", "test"]


def check_row(row: dict[str, str]) -> None:
    """One cell of five real endpoints: nothing failed, and what the server counted fits what was sent."""
    assert (row["failures"], row["abandoned"]) == ("0", "0")
    assert int(row["requests"]) >= 5
    assert float(row["server_compute_ms"]) > 1
    assert float(row["images_per_s"]) * float(row["measure_s"]) == pytest.approx(int(row["images"]), rel=1e-3)
    assert float(row["worker_cpu_pct"]) > 0
    assert not {"counts-mismatch", "probe-gap"} & set(row["caveats"].split(";"))
    if row["backend"] != "pytorch":
        assert float(row["executed_batch"]) >= int(row["batch"])
        assert float(row["request_bytes"]) > 602_112 * int(row["batch"])


@pytest.mark.timeout(580)
def test_make_step7(tmp_path: Path) -> None:
    shorter = ["--iterations", "5", "--seconds", "1", "--warm-up", "2"]
    console = run([*command("make step7"), f"ARGS={' '.join(shorter)}"], tmp_path, 540)
    (folder,) = re.findall(r"results in (results/\S+)/", console.text)
    assert "[20/20]" in console.text
    for table in (
        "Serial latency, p50",
        "Serial throughput",
        "gRPC over HTTP",
        "Concurrent",
        "Server compute",
    ):
        assert table in console.text
    rows = list(csv.DictReader((ROOT / folder / "cells.csv").read_text().splitlines()))
    assert {row["endpoint"] for row in rows} == set(ENDPOINTS)
    assert len(rows) == 5 * 4
    for row in rows:
        check_row(row)
    assert "random (seed 0)" in (ROOT / folder / "report.html").read_text()
    shown = command("reports show")
    again = run([*shown[:-1], folder], tmp_path, 60)
    assert "Serial throughput" in again.text
    beside = command("reports compare")
    compared = run([*beside[:-1], folder, "--out", str(tmp_path / "beside")], tmp_path, 60)
    assert "Base A: step7-a100" in compared.text
    assert (tmp_path / "beside" / "compare.html").stat().st_size > 0


def test_make_web(tmp_path: Path) -> None:
    console = Console(command("make web"), tmp_path)
    try:
        wait_until(lambda: is_listening(8089), 240, lambda: console.text)
        os.killpg(console.process.pid, signal.SIGINT)
        console.wait(15)
    finally:
        console.end()
    assert not is_listening(8089)


@pytest.mark.usefixtures("servers")
def test_open_load(tmp_path: Path) -> None:
    short = [
        *few_pictures(),
        "--seconds",
        "2",
        "--warm-up",
        "1",
        "--rates",
        "2,4",
        "--results-dir",
        str(tmp_path),
    ]
    rows = run([*command("--arrivals"), *short], tmp_path).cells()
    assert {(row["load"], row["level"]) for row in rows} == {("open", "2.0"), ("open", "4.0")}


@pytest.mark.usefixtures("servers")
def test_the_search(tmp_path: Path) -> None:
    """To its second step, at which it is stopped: on this machine's processor a search takes minutes."""
    short = ["--iterations", "5", "--warm-up", "1", "--rates", "0.5", "--results-dir", str(tmp_path)]
    short += few_pictures()
    console = Console([*command("--find-rate"), *short], tmp_path)
    try:
        console.wait_for("[  2]", 60)
        console.signal(signal.SIGINT)
        assert console.wait(15) == 3
    finally:
        console.end()
    first, second, *_ = [float(row["level"]) for row in console.cells()]
    assert first == 0.5
    assert second in (0.25, 1.0)


@pytest.mark.usefixtures("servers")
def test_prometheus(tmp_path: Path) -> None:
    short = [*SHORT, "--cells", "*/b1/c1", "--results-dir", str(tmp_path)]
    assert len(run([*command("--prometheus-port"), *short], tmp_path).cells()) == 2


def test_emulated_servers_and_their_floors(tmp_path: Path) -> None:
    rows = run([*command("--emulate"), *SHORT, *EIGHT, "--results-dir", str(tmp_path)], tmp_path).cells()
    seen = {row["endpoint"]: row["tcp_connections"] for row in rows}
    assert seen == {
        "emulated-http": "1",
        "emulated-grpc": "1",
        "emulated-http-floor": "1",
        "emulated-grpc-floor": "1",
    }
    assert all(row["limit"] and row["failures"] == "0" for row in rows)


def test_a_benchmark(tmp_path: Path) -> None:
    assert "every bound holds" in run(command("benchmarks/accuracy.py"), tmp_path, 120).text


def test_doctor(tmp_path: Path) -> None:
    assert "tritonserver" in run(command("server doctor"), tmp_path, 60).text


@pytest.mark.usefixtures("servers")
def test_your_own_servers(tmp_path: Path) -> None:
    arguments = [*command("--trt-http-url"), *SHORT, *COMPILED, "--results-dir", str(tmp_path)]
    cells = run([*arguments, "--cells", "*/b1/c1"], tmp_path).cells()
    assert len({row["endpoint"] for row in cells}) == len(cells) == 5


@pytest.mark.usefixtures("servers")
def test_gates(tmp_path: Path) -> None:
    """A study with few results, judged when it ends, again later, and by itself as a baseline: no pass."""
    whole, own = toml_block("[[threshold]]"), tmp_path / "own.toml"
    of_baseline = whole.index('[[threshold]]\nrequire = "latency_p95_ms / baseline')
    own.write_text(whole[:of_baseline])
    given = [str(own) if word == "thresholds.toml" else word for word in command("--gate")]
    short = [*SHORT, "--cells", "*/b1/c8", "--repeats", "1", "--results-dir", str(tmp_path / "results")]
    gated = Console([*given, *short], tmp_path)
    assert gated.wait(120) == 3, gated.text
    (folder,) = map(str, (tmp_path / "results").iterdir())
    assert '<testcase classname="step7' in Path(folder, "junit.xml").read_text()
    kept = tmp_path / "main.baseline.json"
    made = Console([*command("reports baseline")[:4], folder, "--out", str(kept)], tmp_path, "baseline")
    assert made.wait(60) == 0, made.text
    (tmp_path / "thresholds.toml").write_text(whole)
    judged = [*command("reports gate")[:-1], folder, "--thresholds", str(tmp_path / "thresholds.toml")]
    later = Console(judged, tmp_path, "later")
    assert later.wait(60) == 2, later.text
    assert "holds the same study" in later.text, "a study is no baseline of itself"
    again = Console([*command("reports gate")[:-1], folder], tmp_path, "again")
    assert again.wait(60) == 3, again.text
    tried = Console([*command("reports calibrate")[:-1], folder], tmp_path, "calibrate")
    assert tried.wait(60) == 3, tried.text


@pytest.mark.usefixtures("servers")
def test_processes(tmp_path: Path) -> None:
    console = run([*command("--processes"), *SHORT, *EIGHT, "--results-dir", str(tmp_path)], tmp_path)
    assert {row["workers"] for row in console.cells()} == {"2"}


@pytest.mark.usefixtures("servers")
def test_master_and_workers(tmp_path: Path) -> None:
    port = str(free_port())
    ways = ["--results-dir", str(tmp_path), "--master-bind-port", port]
    master = [*command("--master "), *SHORT, *EIGHT, *ways]
    workers = [
        Console([*command("--worker"), "--master-port", port], tmp_path, f"worker-{number}")
        for number in range(2)
    ]
    try:
        console = run(master, tmp_path)
        assert [worker.wait(20) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.end()
    assert {row["endpoint"] for row in console.cells()} == {"onnx-http", "onnx-grpc"}


@real
def test_links(tmp_path: Path) -> None:
    listed = run([*command("swarm link wan-a100")[:-1]], tmp_path, 60).text
    assert all(name in listed for name in ("lan", "wan-a100", "wan-rtx4090", "home", "clean-long"))
    # A busy machine may not keep up: then it says so, by the exit code, too.
    measured = Console(command("swarm link wan-a100"), tmp_path)
    assert measured.wait(60) in (0, 3), measured.text
    assert "round trip, median ms" in measured.text


@real
def test_what_slows_grpc(tmp_path: Path) -> None:
    short = ["--repeats", "1", "--seconds", "1", "--warm-up", "1", "--results-dir", str(tmp_path)]
    console = run([*command("swarm run"), *short, "--cells", "*/per-user"], tmp_path)
    rows = {row["endpoint"]: row for row in console.cells()}
    assert set(rows) == {"emulated-http", "emulated-grpc"}
    for row in rows.values():
        assert (row["link"], row["tcp_connections"], row["workers"]) == ("wan-a100", "16", "1")
    (link,) = console.ledger()[0]["links"]
    assert link["measured"]["h1"]["rtt_ms"] > 14


@needs_sshd
def test_hosts(tmp_path: Path) -> None:
    """The README's hosts, of which the one by ssh is this machine, with a git checkout of its own."""
    text = toml_block("[[host]]")
    with Sshd(tmp_path) as sshd:
        there = checkout_at(tmp_path / "load-2")
        (there / ".git").symlink_to(ROOT / ".git")
        (there / "requirements-client.txt").symlink_to(ROOT / "requirements-client.txt")
        assert 'address = "bench@load-2"\n' in text
        near = text.partition('[[host]]\nname = "far"')[0]
        hosts = tmp_path / "hosts.toml"
        hosts.write_text(near + sshd.host_entry("far", there, workers=8))
        for part in ("hosts prepare", "hosts check"):
            words = [str(hosts) if word == "hosts.toml" else word for word in command(part)]
            said = run(words, tmp_path, 120).text
            assert re.search(r"far +ssh +yes", said), said
            assert re.search(r"near +netns +made when it runs", said), said
