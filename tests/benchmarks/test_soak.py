"""A soak watches processes, reads the ledger, and judges both together; doubt is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import soak as program
from benchmarks.bounds import Bounds
from benchmarks.soak import CELLS, EVERY_CELL, command, length, main, parsed, result_of
from benchmarks.soaking.figures import judge
from benchmarks.soaking.measured import Cell, Soak, soak_of
from benchmarks.soaking.validity import Validity, validity_of
from benchmarks.soaking.watching import Look, Size, Track, Watcher, role_of, sizes_of
from reports.doubt.caveat import caveat
from reports.ledger import FILE_NAME
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, window

MB = 1_000_000
MS = 1_000_000


def test_roles_are_told_by_command_lines() -> None:
    python = "/somewhere/.venv/bin/python"
    lines = {
        "leash": f"{python} -I -S /x/swarm/hosts/leash.py --patience=90 -- {python} -m locust --master",
        "master": f"{python} -m locust -f locustfiles/step7.py --headless --master --master-bind-port 1",
        "worker": f"{python} -m locust -f locustfiles/step7.py --worker --master-port 1",
        "servers": f"{python} -m server up --json --until-stdin-closes",
        "tritonserver": "/x/tritonserver --model-repository /y",
        "stub": "/x/triton_python_backend_stub /y/model.py",
        "report": f"{python} -m reports show results",
        "other": "sleep 9",
    }
    assert {role: role_of(line.split()) for role, line in lines.items()} == {role: role for role in lines}


GROWING = """
import sys, time
kept, files = [], []
print("there", flush=True)
while sys.stdin.readline():
    kept.append(bytearray(b"x") * 4_000_000)
    files.append(open("/dev/null"))
    print("grown", flush=True)
"""


def test_a_process_and_its_children_are_seen_as_they_are() -> None:
    starter = (
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    )
    command = [sys.executable, "-c", starter, GROWING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdout.readline()
        watcher = Watcher(started.pid)
        for _ in range(3):
            watcher.look()
            started.stdin.write("more\n")
            started.stdin.flush()
            started.stdout.readline()
        started.stdin.close()
    watcher.look()
    launcher, child = sorted(watcher.tracks.values(), key=lambda track: track.role)
    assert (launcher.role, child.role) == ("launcher", "other 1")
    assert (launcher.ours, Track("stub 2").ours) == (True, False)
    first, _, last = child.looks
    assert last.fds == first.fds + 2
    assert 7 * MB < last.rss_bytes - first.rss_bytes < 12 * MB
    assert 0 < last.pss_bytes <= last.rss_bytes
    assert last.threads == 1


BECOMING = """
import os, sys
print("there", flush=True)
sys.stdin.readline()
said = "import sys; print('there', flush=True); sys.stdin.readline()"
os.execv(sys.executable, [sys.executable, "-c", said, "--wor" + "ker"])
"""


def test_a_process_is_called_by_what_it_has_become() -> None:
    starter = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    command = [sys.executable, "-c", starter, BECOMING]
    roles = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        watcher = Watcher(started.pid)
        for _ in range(2):
            started.stdout.readline()
            watcher.look()
            roles.append(sorted(track.role for track in watcher.tracks.values()))
            started.stdin.write("on\n")
            started.stdin.flush()
    assert roles == [["launcher", "other 1"], ["launcher", "worker 1"]]


def ledger(folder: Path, seconds: int, failures: int = 0, others: tuple[str, ...] = ()) -> None:
    """A study of one cell of so long, whose latencies come to 2 ms and more with every minute; the `others`
    were planned, and never measured.
    """
    tag: dict[str, Any] = {"cell": "a-floor/b1/r50", "repeat": 1}
    began = FIRST_SECOND
    phase = {"kind": "phase", **tag, "phase": "measure", "utc": utc(began)}
    plan = [{"cell": cell, "repeat": 1} for cell in (tag["cell"], *others)]
    lines: list[dict[str, Any]] = [{"kind": "header", "plan": plan}, phase]
    for second in range(seconds):
        made = window(tag, "w0", [(2 + second // 60) * MS] * 5, 1)
        lines.append(made | {"second": began + second, "failures": {"timeout": failures} if failures else {}})
    lines += [
        {"kind": "phase", **tag, "phase": "drain", "utc": utc(began + seconds)},
        {"kind": "drained", **tag, "phase": "measure", "abandoned": 1, "dropped": 2},
        {"kind": "drained", **tag, "phase": "measure", "error": "its disk is full"},
        {"kind": "footer", "status": "complete"},
    ]
    (folder / FILE_NAME).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def utc(second: int) -> str:
    """As ledgers write the time."""
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


def test_a_ledger_tells_of_minutes_and_losses(tmp_path: Path) -> None:
    ledger(tmp_path, 320, failures=1)
    soak = soak_of(tmp_path)
    (cell,) = soak.cells
    assert (soak.status, cell.ok, cell.lost) == ("complete", 320 * 5, 320 + 3)
    assert cell.minutes == pytest.approx(320 / 60)
    per_minute = cell.by_minute(60)
    assert [minute[0] for minute in per_minute] == pytest.approx([3.0, 4.0, 5.0, 6.0], rel=0.001)
    assert 100 < cell.ledger_bytes / 320 < 2_000


def test_a_ledger_that_was_cut_off_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    ledger(tmp_path, 100)
    path = tmp_path / FILE_NAME
    path.write_text(path.read_text()[:-9])
    soak = soak_of(tmp_path)
    assert (soak.status, [cell.ok for cell in soak.cells], soak.unmeasured) == ("", [500], [])


ALL = ("master", "worker", "worker")
SOUND = Validity(0, 0)


def soaked(per_min: float, kinds: tuple[str, ...] = ALL, until: int = 100) -> list[Track]:
    """A process of each kind that grows by so much, looked at until this second of 100."""
    looks = [
        Look(FIRST_SECOND + at, round((100 + per_min * at / 60) * MB), 0, 20, 4, at / 10)
        for at in range(until)
    ]
    return [Track(f"{kind} {number}", looks) for number, kind in enumerate(kinds, 1)]


def measured(folder: Path, *others: str) -> Soak:
    """A study of 100 s that lost nothing."""
    ledger(folder, 100, others=others)
    soak = soak_of(folder)
    soak.cells[0].lost = 0
    return soak


def judged(
    soak: Soak, validity: Validity = SOUND, tracks: list[Track] | None = None, quick: bool = True
) -> tuple[int, str]:
    """The exit code of a soak, and its tables."""
    bounds = Bounds("test")
    sizes = {FILE_NAME: [Size(0.0, MB)]}
    shown = judge(bounds, soak, validity, soaked(0.2) if tracks is None else tracks, sizes, 25.0, quick)
    return bounds.exit_code(), shown


@pytest.mark.parametrize(
    ("tracks", "code"),
    [
        (soaked(0.2), 0),
        (soaked(3.0), 1),
        (soaked(0.2, ("master", "worker")), 1),
        (soaked(0.2, ("worker", "worker")), 1),
        (soaked(0.2, (*ALL, "worker")), 1),
        (soaked(0.2, ("master", "worker")) + soaked(0.2, ("worker",), until=60), 1),
        (soaked(0.2) + soaked(0.2, ("worker",), until=60), 1),
        (soaked(0.2) + soaked(0.2, ("servers",), until=60), 0),
        (soaked(0.2) + soaked(9.0, ("stub",)), 0),
        (soaked(0.2) + soaked(9.0, ("servers",)), 1),
        ([], 1),
    ],
)
def test_a_soak_is_judged_by_its_processes(
    tracks: list[Track], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, shown = judged(measured(tmp_path), tracks=tracks)
    assert found == code
    lived = sorted(track.role for track in tracks if len(track.looks) == 100)
    assert sorted(line.split(" | ")[1] for line in shown.splitlines()[2:]) == lived
    assert "ledger.jsonl at its end" in capsys.readouterr().out


def test_losses_and_a_study_that_was_cut_off_break_it(tmp_path: Path) -> None:
    ledger(tmp_path, 100)
    for spoilt in (soak_of(tmp_path), Soak([Cell("a", 1.0, 2.0)], "failed"), Soak([], "complete")):
        assert judged(spoilt)[0] == 1


def test_a_cell_that_was_planned_and_not_measured_breaks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soak = measured(tmp_path, "b-floor/b1/r50")
    assert soak.unmeasured == ["b-floor/b1/r50"]
    assert judged(soak)[0] == 1
    assert "b-floor/b1/r50: its measure phase" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "expected", "doubt", "of_quick", "of_hour"),
    [
        (0, 0, "", 0, 3),
        (3, 3, "", 0, 3),
        (3, 0, "", 1, 1),
        (0, 3, "", 1, 1),
        (-9, 0, "", 1, 1),
        (3, 3, "client-bound", 0, 3),
        (3, 3, "worker-lost", 1, 1),
        (3, 3, "rate-missed", 1, 1),
    ],
)
def test_what_a_study_says_of_itself_is_judged(
    code: int, expected: int, doubt: str, of_quick: int, of_hour: int, tmp_path: Path
) -> None:
    soak = measured(tmp_path)
    doubts = {soak.cells[0].name: [caveat(doubt, "so it was")]} if doubt else {}
    validity = Validity(code, expected, doubts)
    assert judged(soak, validity)[0] == of_quick
    assert judged(soak, validity, quick=False)[0] == of_hour


def test_a_client_bound_hour_cannot_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soak = measured(tmp_path)
    validity = Validity(3, 3, {soak.cells[0].name: [caveat("client-bound", "it was busy")]})
    assert judged(soak, validity, quick=False)[0] == 3
    said = capsys.readouterr().out
    assert re.search(r"client-bound +not there +cannot be told", said)
    assert "it was busy" in said


def test_a_ledger_tells_what_disqualifies_and_which_exit_code_it_explains(tmp_path: Path) -> None:
    book = Book()
    floor = book.add("onnx-grpc-floor", 1, 1, {"w0": [MS] * 400})
    model = book.add("onnx-grpc", 1, 1, {"w0": [MS] * 400})
    book.footer()
    sound = validity_of(book.write(tmp_path / "sound"), 0)
    assert sound.doubts == {floor["cell"]: [], model["cell"]: []}
    assert (sound.code, sound.expected) == (0, 0)
    book.caveat(floor, "worker-lost", "worker w1 was lost")
    book.caveat(floor, "unsteady", "it warmed up for too short a time")
    spoilt = validity_of(book.write(tmp_path / "spoilt"), 0)
    assert [doubt.code for doubt in spoilt.doubts[floor["cell"]]] == ["worker-lost"]
    assert spoilt.expected == 0
    only = Book()
    only.add("onnx-grpc-floor", 1, 1, {"w0": [MS] * 400})
    only.footer()
    assert validity_of(only.write(tmp_path / "only"), 3).expected == 3


def test_an_hour_too_short_for_its_percentiles_is_inconclusive(tmp_path: Path) -> None:
    assert judged(measured(tmp_path), quick=False)[0] == 3


@pytest.mark.parametrize("more", ["--quick", "--only=grpc"])
def test_the_page_takes_no_part_for_the_whole(more: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--write", more])
    assert ended.value.code == 2
    assert "leave out --only and --quick" in capsys.readouterr().err
    assert parsed(["--write"]).write


def test_a_study_that_was_refused_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [sys.executable, "-c", "import sys; print('no port is free'); sys.exit(2)"]
    monkeypatch.setattr(program, "command", lambda *_: refused)
    assert main(["--quick"]) == 2
    said = capsys.readouterr().out
    assert "there was no study to judge (exit code 2)" in said
    assert "no port is free" in said


def test_a_result_is_where_the_ledger_is(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    assert result_of(tmp_path) is None
    (tmp_path / "step7").mkdir()
    (tmp_path / "step7" / FILE_NAME).touch()
    assert result_of(tmp_path) == tmp_path / "step7"


def test_how_long_a_soak_takes() -> None:
    hour, quick = length(60, "", quick=False), length(60, "", quick=True)
    assert (hour.cells, hour.seconds, hour.skipped_s, hour.every_s) == (EVERY_CELL, 1_200, 180, 5)
    assert (quick.cells, quick.seconds, quick.skipped_s, quick.every_s) == (CELLS["http"], 100, 25, 1)
    assert (hour.seconds - hour.skipped_s) // 60 // 3 >= 5


def test_it_runs_the_command_that_a_user_would(tmp_path: Path) -> None:
    words = command(tmp_path, length(60, "", quick=True), 50.0, 0.0)
    assert words[1:8] == ["-m", "swarm", "run", "-f", "locustfiles/step7.py", "--workers", "2"]
    assert words[words.index("--rates") + 1] == "50"
    assert "benchmarks/studies/leaking.py" in command(tmp_path, length(60, "", quick=True), 50.0, 50.0)
    with pytest.raises(SystemExit):
        parsed(["--minutes", "2"])


def test_sizes_are_of_the_files_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("no")
    (tmp_path / "step7" / "logs").mkdir(parents=True)
    (tmp_path / "step7" / FILE_NAME).write_text("12345")
    assert list(sizes_of(tmp_path, 3.0)) == [(FILE_NAME, Size(3.0, 5))]
