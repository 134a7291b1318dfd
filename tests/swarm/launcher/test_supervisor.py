"""A supervised command ends with whoever started it, whatever ends that, and passes on what it has to say."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarm.launcher import supervisor
from tests.processes import alive, children, eventually

pytestmark = pytest.mark.system

SCRIPT = Path(supervisor.__file__)
SUPERVISOR = [sys.executable, "-I", "-S", str(SCRIPT)]
HURRIED = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import supervisor
supervisor.STOP_S = supervisor.FAR_S = 0.2
sys.exit(supervisor.main(sys.argv[1:]))
"""
# Says its number, then waits; cleans up when it is asked to end.
TIDY = "trap 'echo cleaned; exit 5' TERM; echo $$; while :; do sleep 0.05; done"
DEAF = "trap '' TERM; echo $$; while :; do sleep 0.05; done"
# A launcher that keeps a supervisor, and tells its number.
LAUNCHER = """
import subprocess, sys, time
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
print(process.pid, flush=True)
time.sleep(100)
"""


def started(*command: str, by: list[str] = SUPERVISOR) -> subprocess.Popen[str]:
    return subprocess.Popen([*by, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def number_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def output_at_end(process: subprocess.Popen[str]) -> str:
    """What it still says, once it has ended by itself."""
    assert process.stdout is not None
    with process.stdout as out:
        said = out.read()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
    return said


def test_output_variables_and_exit_code_come_through() -> None:
    told = 'echo "$HOST $ODD"; echo oh >&2; exit 7'
    read, write = os.pipe()
    command = [*SUPERVISOR, "HOST=near", "ODD=a=b c", "--", "sh", "-c", told]
    done = subprocess.run(command, stdin=read, capture_output=True, text=True)
    os.close(read)
    os.close(write)
    assert (done.returncode, done.stdout, done.stderr) == (7, "near a=b c\n", "oh\n")


def test_secrets_go_to_a_far_supervisor_and_stand_on_no_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = {"INFERSWARM_TOKEN": "a secret 'of' \"this\" $(test)", "INFERSWARM_TRT_TOKEN": "another"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    # The far supervisor inherits nothing here, as by ssh.
    shell = 'echo $$; echo "$INFERSWARM_TOKEN|$INFERSWARM_TRT_TOKEN|$HOST"; read forever'
    far = ["env", "-i", *SUPERVISOR, "--told", "HOST=far", "--", "/bin/sh", "-c", shell]
    process = started("--far", f"--tell={','.join(secrets)}", "--", *far)
    pid = number_of(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "|".join([*secrets.values(), "far\n"])
    for each in (process.pid, *children(process.pid), pid):
        line = Path(f"/proc/{each}/cmdline").read_text()
        assert not any(value in line for value in secrets.values())
    process.communicate()
    assert eventually(lambda: not alive(pid))


@pytest.mark.parametrize("said", ["", "{", '{"A": "b"'])
def test_a_supervisor_that_is_told_nothing_ends(said: str) -> None:
    done = subprocess.run([*SUPERVISOR, "--told", "--", "sleep", "100"], input=said, text=True, check=False)
    assert done.returncode == 143


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGTERM, 143)])
def test_a_signal_that_ended_the_command_is_told_as_shells_do(number: int, code: int) -> None:
    process = started("--", "sh", "-c", f"kill -{int(number)} $$; sleep 100")
    output_at_end(process)
    assert process.returncode == code


def test_when_standard_input_closes_the_command_may_clean_up() -> None:
    process = started("--", "sh", "-c", TIDY)
    pid = number_of(process)
    said, _ = process.communicate()
    assert (said, process.returncode) == ("cleaned\n", 5)
    assert not alive(pid)


@pytest.mark.parametrize("number", supervisor.STOPPING)
def test_a_signal_to_the_supervisor_ends_the_command_the_same_way(number: signal.Signals) -> None:
    process = started("--", "sh", "-c", TIDY)
    number_of(process)
    process.send_signal(number)
    assert output_at_end(process) == "cleaned\n"
    assert process.returncode == 5


@pytest.mark.parametrize("far", [[], ["--far"]])
def test_a_deaf_command_is_killed(far: list[str]) -> None:
    process = started(*far, "--", "sh", "-c", DEAF, by=[sys.executable, "-I", "-c", HURRIED])
    pid = number_of(process)
    process.communicate()
    assert process.returncode == 137
    assert not alive(pid)


def test_what_it_leaves_behind_is_killed() -> None:
    process = started("--", "sh", "-c", "sleep 100 >/dev/null & echo $!; exit 3")
    helper = number_of(process)
    output_at_end(process)
    assert process.returncode == 3
    assert eventually(lambda: not alive(helper))


def test_the_command_dies_with_a_supervisor_that_is_killed() -> None:
    process = started("--", "sleep", "100")
    assert eventually(lambda: children(process.pid))
    (pid,) = children(process.pid)
    process.kill()
    assert eventually(lambda: not alive(pid))
    output_at_end(process)


def test_the_command_ends_when_its_launcher_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"trap 'echo cleaned > {note}; exit' TERM; while :; do sleep 0.05; done"
    command = [*SUPERVISOR, "--", "sh", "-c", script]
    with subprocess.Popen([sys.executable, "-c", LAUNCHER, *command], stdout=-1, text=True) as launcher:
        holder = number_of(launcher)
        assert eventually(lambda: children(holder))
        (pid,) = children(holder)
        # The shell has set its trap before it sleeps.
        assert eventually(lambda: children(pid))
        launcher.kill()
    assert eventually(lambda: not alive(pid) and not alive(holder))
    assert note.read_text() == "cleaned\n"


FAR = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("signalled", flush=True))
print(0, flush=True)
rest = sys.stdin.read()
print("closed", repr(rest), flush=True)
"""


def test_a_far_command_is_stopped_by_closing_its_standard_input() -> None:
    process = started("--far", "--", sys.executable, "-c", FAR)
    number_of(process)
    said, _ = process.communicate("what is said to the supervisor goes no further")
    assert (said, process.returncode) == ("closed ''\n", 0)


@pytest.mark.parametrize("words", [[], ["--"], ["sleep", "1"], ["HOST", "--", "true"], ["=x", "--", "true"]])
def test_a_wrong_command_line_is_told(words: list[str]) -> None:
    done = subprocess.run([*SUPERVISOR, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "usage: supervisor.py [OPTIONS] [KEY=VALUE ...] -- COMMAND...\n"


def test_a_command_that_is_not_there() -> None:
    command = [*SUPERVISOR, "--", "/no/such/command"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 127
    assert done.stderr == "supervisor: cannot run /no/such/command: No such file or directory\n"


def test_older_pythons_can_read_it() -> None:
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
