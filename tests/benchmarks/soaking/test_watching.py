"""A soak looks at processes and files from outside."""

import subprocess
import sys
from pathlib import Path

from benchmarks.soaking.watching import Size, Track, Watcher, role_of, sizes_of
from reports.ledger.ledger import FILE_NAME

MB = 1_000_000


def test_roles_are_told_by_command_lines() -> None:
    python = "/somewhere/.venv/bin/python"
    lines = {
        "supervisor": f"{python} -I -S swarm/launcher/supervisor.py --patience=9 -- locust --master",
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


def test_sizes_are_of_the_files_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("no")
    (tmp_path / "step7" / "logs").mkdir(parents=True)
    (tmp_path / "step7" / FILE_NAME).write_text("12345")
    assert list(sizes_of(tmp_path, 3.0)) == [(FILE_NAME, Size(3.0, 5))]
