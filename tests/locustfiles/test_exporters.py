"""Exporters in real studies: what they tell equals timeline.csv, and nothing of theirs breaks a study."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from benchmarks.stand_in import receiver
from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import LOCUST, ONCE, few_pictures
from tests.processes import free_port, is_listening, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow]

SIZE = ("--iterations", "3", "--seconds", "2.5", "--warm-up", "1", "--cells", "*/b1/c1", *ONCE)
WHOLE = (0, 3)
"""Exit codes of a study that came to its end: 3 where this machine had too little time for it."""
OF_RUN = ("t_s", "utc", "cell", "repeat", "phase", "endpoint")
Seconds = dict[int, dict[str, float]]


def words(folder: Path, service: int, *options: str) -> list[str]:
    target = ("--pytorch-url", f"127.0.0.1:{service}", *few_pictures())
    return [*LOCUST, "--headless", "--results-dir", str(folder), *target, *SIZE, *options]


def timeline(folder: Path) -> Seconds:
    """Its known figures by Unix time, in the units and by the names of events."""
    with (folder / "timeline.csv").open(newline="") as lines:
        return {
            int(datetime.fromisoformat(row["utc"]).timestamp()): {
                name.replace("_ms", "_ns"): float(text) * (1e6 if name.endswith("_ms") else 1)
                for name, text in row.items()
                if text and name not in OF_RUN
            }
            for row in csv.DictReader(lines)
        }


def assert_equal(told: Mapping[int, Mapping[str, Any]], folder: Path) -> None:
    """All that timeline.csv knows of each second, and nothing that it does not."""
    wanted = timeline(folder)
    names = {name for row in wanted.values() for name in row}
    assert len(wanted) >= 3
    assert {"requests_per_s", "latency_p50_ns", "worker_cpu_pct", "host_cpu_pct"} <= names
    known = {
        second: {name: values[name] for name in names if values.get(name) is not None}
        for second, values in told.items()
    }
    assert known.keys() == wanted.keys()
    for second, values in wanted.items():
        assert known[second] == pytest.approx(values, rel=1e-6, abs=1)


@contextmanager
def influxdb(folder: Path) -> Iterator[str]:
    """A real one with a database `load`, on a free port; its address."""
    port, path = free_port(), shutil.which("influxd")
    if path is None:
        pytest.skip("needs influxd (Debian's package influxdb)")
    places = {"META": "meta", "DATA": "data", "DATA_WAL": "wal"}
    variables = {f"INFLUXDB_{name}_DIR": str(folder / place) for name, place in places.items()}
    variables |= {"INFLUXDB_HTTP_BIND_ADDRESS": f"127.0.0.1:{port}", "INFLUXDB_REPORTING_DISABLED": "true"}
    variables["INFLUXDB_BIND_ADDRESS"] = f"127.0.0.1:{free_port()}"
    with (folder / "influxd.log").open("w") as log:
        server = subprocess.Popen(
            [path, "run"], env={**os.environ, **variables}, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: is_listening(port), 20)
        asked(f"http://127.0.0.1:{port}", "CREATE DATABASE load")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def asked(address: str, query: str) -> list[dict[str, Any]]:
    """The series of an answer of InfluxDB 1."""
    told = urlencode({"db": "load", "epoch": "s", "q": query}).encode()
    with urllib.request.urlopen(f"{address}/query", told, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["results"][0].get("series", [])
        return found


def read_back(address: str) -> dict[int, dict[str, Any]]:
    """What it has of each second, whatever the phase."""
    found: dict[int, dict[str, Any]] = {}
    for name in ("inferswarm_client", "inferswarm_server"):
        (series,) = asked(address, f"SELECT * FROM {name}")
        for values in series["values"]:
            row = dict(zip(series["columns"], values, strict=True))
            found.setdefault(row["time"], {}).update(row)
    return found


def test_json_lines_and_influxdb_have_the_figures_of_the_timeline(
    start_service: StartService, tmp_path: Path
) -> None:
    service, errors = start_service("--delay-ms", "20"), tmp_path / "stderr.log"
    with influxdb(tmp_path) as address, errors.open("w") as stderr:
        exporters = ("--json-lines", "-", "--influx-url", f"{address}/write?db=load")
        command = words(tmp_path / "results", service, *exporters)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, timeout=90, check=False)
        assert done.returncode in WHOLE, errors.read_text()
        stored = read_back(address)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (folder,) = (tmp_path / "results").iterdir()
    lines: dict[int, dict[str, Any]] = {}
    for one in events:
        if one["event"] in ("window", "sample"):
            lines.setdefault(one["second"], {}).update(one)
    assert_equal(lines, folder)
    assert_equal(stored, folder)
    assert (events[0]["event"], events[-1]["event"]) == ("study_started", "study_ended")
    assert events[-1]["folder"] == str(folder)
    assert "Report: " in errors.read_text()
    assert "missed" not in errors.read_text()


def test_a_closed_pipe_and_a_dead_receiver_leave_a_whole_study_that_is_stopped(
    start_service: StartService, tmp_path: Path
) -> None:
    service, errors, (read, write) = start_service("--delay-ms", "20"), tmp_path / "stderr.log", os.pipe()
    with receiver() as url, errors.open("w") as stderr:
        exporters = ("--json-lines", "-", "--influx-url", f"{url}/write?db=load", "--seconds", "60")
        command = words(tmp_path / "results", service, *exporters)
        process = subprocess.Popen(command, stdout=write, stderr=stderr)
        os.close(write)
        assert os.read(read, 65_536).startswith(b'{"event":"study_started",')
        os.close(read)
        (ledger,) = (tmp_path / "results").glob("*/ledger.jsonl")
        wait_until(lambda: ledger.read_text().count('"kind":"sample"') >= 4, 30, errors.read_text)
    wait_until(lambda: "--influx-url: " in errors.read_text(), 30, errors.read_text)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 3, errors.read_text()
    footer = json.loads(ledger.read_text().splitlines()[-1])
    assert footer["status"] == "interrupted"
    lines, influx = footer["events"]
    assert re.fullmatch(r"--json-lines: \d+ of \d+ events not written \(broken pipe\)\.", lines)
    assert re.fullmatch(r"--influx-url: \d+ of \d+ points not written \(.*refused.*\)\.", influx)
    # When it begins, and at the end, since the event of that was not written either.
    assert errors.read_text().count("inferswarm: --json-lines: ") == 2
    about = json.loads((ledger.parent / "study.json").read_text())
    for lost in (lines, influx):
        assert any(notice.startswith(lost) for notice in about["notices"])
    assert (ledger.parent / "report.html").is_file()
    (row,) = csv.DictReader((ledger.parent / "cells.csv").read_text().splitlines())
    assert int(row["requests"]) > 0
    assert row["failures"] == "0"
