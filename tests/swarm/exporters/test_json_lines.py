"""JSON lines: what a line has, and what becomes of those that cannot be written."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.os import make_nonblocking, nb_read

from swarm.errors import UsageError
from swarm.events import HOOKS, PhaseStarted, StudyEnded
from swarm.exporters.json_lines import JsonLines, line_of, open_json_lines
from tests.swarm.followed import Followed, Heard
from tests.swarm.output.test_dispatch import BOOK, TAG, a_run, ended
from users import redact


def phase(number: int = 0) -> PhaseStarted:
    return PhaseStarted(cell="c", repeat=number, phase="measure", utc="2026-11-21T11:00:00Z")


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_a_line_with_the_fields_of_the_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    heard, lines = Heard(), open_json_lines(str(path))
    study = Followed(BOOK.header, heard, lines)
    study.tell(*a_run(2))
    assert study.dispatcher.finish() == []
    study.dispatcher.ended(ended(tmp_path))
    found = told(path)
    second = ["window", "health", "sample"]
    assert [one["event"] for one in found] == [
        *("study_started", "run_started", "phase_started"),
        *(*second, *second, "run_ended", "study_ended"),
    ]
    by_name = {one.pop("event"): one for one in found}
    (_, window), *_ = [(name, one) for name, one in reversed(heard.told) if name == "window"]
    line = by_name["window"]
    assert vars(window).keys() - line.keys() == {"results"}
    assert {name: line[name] for name in ("ok", "failures", "latency_p50_ns", "latency_p99_ns")} == {
        "ok": 20, "failures": {"timeout": 2}, "latency_p50_ns": window.latency_p50_ns, "latency_p99_ns": None,
    }  # fmt: skip
    assert line["percentiles"]["latency"] == vars(window.percentiles["latency"])
    assert by_name["health"]["workers"]["w1"]["cpu_pct"] == 50.0
    (run,) = heard.of("run_ended")
    assert by_name["run_ended"]["summary"]["latency"]["p50_ns"] == run.summary.latency.p50_ns
    assert by_name["run_ended"]["summary"]["counts"]["requests"] == run.summary.counts.requests == 44
    assert by_name["study_started"]["plan"] == [dict(entry) for entry in BOOK.header["plan"]]
    assert by_name["study_ended"] == {
        **{"name": "step7", "folder": str(tmp_path), "status": "complete", "reason": "", "code": 0},
        "operators": {},
    }


def test_every_event_has_a_listener_and_numbers_that_are_none_are_null() -> None:
    lines = JsonLines(os.open(os.devnull, os.O_WRONLY))
    assert all(getattr(lines, f"on_{name}").__self__ is lines for name in HOOKS)
    over = StudyEnded("s", Path("f"), "complete", "", 0, operators={"ms": float("nan"), "most": float("inf")})
    assert json.loads(line_of("study_ended", over))["operators"] == {"ms": None, "most": None}


def test_a_file_is_appended_to_and_holds_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSWARM_TOKEN", "s3cret-token")
    redact.spellings.cache_clear()
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "before"}\n')
    over = StudyEnded("s", Path("f"), "failed", "401 for s3cret-token", 3)
    open_json_lines(str(path)).write("study_ended", over)
    redact.spellings.cache_clear()
    assert [one.get("reason") for one in told(path)] == [None, "401 for [INFERSWARM_TOKEN]"]


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_costs_whole_lines_is_told_once_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    study = Followed(BOOK.header, open_json_lines(str(path)))
    study.tell()
    size, first, *others = path.stat().st_size, *a_run(3)
    with disk_of(size + 400):
        study.tell(first, *others[:-1])
    study.tell(others[-1])
    why = os.strerror(errno.EFBIG).lower()
    names = [one["event"] for one in told(path)]
    assert (names[0], names[-1]) == ("study_started", "run_ended"), "it goes on once there is room"
    given = 1 + 1 + 1 + 3 * 3 + 1
    lost = f"--json-lines: {given - len(names)} of {given} events not written ({why})."
    assert study.dispatcher.finish() == [lost]
    assert len(study.said) == 1
    assert study.said[0].startswith("inferswarm: --json-lines: 1 of ")


def test_after_a_full_disk_a_file_that_a_shell_has_opened_has_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = JsonLines(os.open(path, os.O_WRONLY | os.O_CREAT))
    lines.write("phase_started", phase(1))
    with disk_of(path.stat().st_size + 20):
        lines.write("phase_started", phase(2))
    lines.write("phase_started", phase(3))
    assert [one["repeat"] for one in told(path)] == [1, 3]


def test_a_pipe_that_nobody_reads_any_more_is_told_once_and_not_tried_again() -> None:
    read, write = os.pipe()
    lines, heard = JsonLines(write), Heard()
    study = Followed(BOOK.header, lines, heard)
    study.tell()
    os.close(read)
    study.tell(*a_run(3))
    assert study.dispatcher.finish() == ["--json-lines: 12 of 13 events not written (broken pipe)."]
    assert study.said == ["inferswarm: --json-lines: 1 of 2 events not written (broken pipe)."]
    assert len(heard.windows) == 3
    os.close(write)


def test_a_slow_reader_of_a_pipe_blocks_nobody_else_and_gets_every_line() -> None:
    read, write = os.pipe()
    lines, got = JsonLines(write), b""
    writing = gevent.spawn(lambda: [lines.write("phase_started", phase(number)) for number in range(2_000)])
    writing.link(lambda _: os.close(write))
    gevent.sleep(0.005)
    assert not writing.ready(), "the pipe is full, and this greenlet runs"
    make_nonblocking(read)
    while part := nb_read(read, 65_536):
        got += part
    os.close(read)
    assert [json.loads(line)["repeat"] for line in got.splitlines()] == list(range(2_000))
    assert lines.missed() == ""


def test_lines_of_two_studies_are_not_mixed_by_a_slow_reader() -> None:
    read, write = os.pipe()
    lines, got = JsonLines(write), b""
    long = StudyEnded("s", Path("f"), "failed", "x" * 100_000, 3)
    gevent.joinall([gevent.spawn(lines.write, "study_ended", long) for _ in range(2)], timeout=0.05)
    make_nonblocking(read)
    while got.count(b"\n") < 2:
        got += nb_read(read, 65_536)
        gevent.sleep(0)
    assert [json.loads(line)["reason"] for line in got.splitlines()] == ["x" * 100_000] * 2
    os.close(read)
    os.close(write)


def test_losses_are_of_one_study() -> None:
    lines = JsonLines(os.open("/dev/full", os.O_WRONLY))
    for _ in range(2):
        study = Followed(BOOK.header, lines)
        study.tell({**a_run(1)[0], **TAG})
        lost = "--json-lines: 2 of 2 events not written (no space left on device)."
        assert study.dispatcher.finish() == [lost]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        open_json_lines("\0")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is a pipe that nobody reads; start its reader first"):
        open_json_lines(str(tmp_path / "pipe"))
    with pytest.raises(UsageError) as caught:
        open_json_lines(str(tmp_path / "none" / "events.jsonl"))
    assert str(caught.value) == (
        f"--json-lines {tmp_path}/none/events.jsonl: cannot be written (no such file or directory); "
        "name a file in a folder that is there"
    )
