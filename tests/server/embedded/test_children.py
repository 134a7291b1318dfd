"""How the processes of `up` end: with their helpers, with their parent, and only once."""

import os
import signal
import subprocess
import sys
import time

import pytest

from server.embedded.events import Events
from server.embedded.fleet import Fleet, ServerProcess, stop_all
from server.errors import SetUpError
from server.spec import ROOT
from tests.processes import alive

pytestmark = pytest.mark.system

DEADLINE_S = 20


def test_a_stopped_child_takes_its_helpers_along_even_if_it_is_deaf(tmp_path, until):
    script = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '100']).pid, flush=True)\n"
        "time.sleep(100)\n"
    )
    child = ServerProcess("deaf", [sys.executable, "-c", script], os.environ, tmp_path)
    until(lambda: child.log_tail())
    helper = int(child.log_tail())
    started = time.monotonic()
    stop_all([child])
    assert time.monotonic() - started < 6
    assert child.exit_code() == -signal.SIGKILL
    until(lambda: not alive(helper))


def test_a_child_and_its_helpers_end_when_its_parent_is_killed(tmp_path, until):
    script = (
        "import os, pathlib, sys, time\n"
        "from server.embedded.fleet import ServerProcess\n"
        "command = ['sh', '-c', 'nohup sleep 100 & echo $!; wait']\n"
        "child = ServerProcess('orphan', command, os.environ, pathlib.Path(sys.argv[1]))\n"
        "while not child.log_tail(): time.sleep(0.01)\n"
        "print(child.pid, child.log_tail().split()[0], flush=True)\n"
        "time.sleep(100)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        orphans = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(orphans) == 2
        parent.kill()
    until(lambda: not any(alive(pid) for pid in orphans))


def test_a_buried_child_is_not_signalled_again(tmp_path, monkeypatch):
    fleet = Fleet(tmp_path, Events(as_json=True), lambda: time.sleep(0.01))
    fleet.run("export", ["true"], os.environ)
    sent = []
    monkeypatch.setattr(os, "killpg", lambda *signal: sent.append(signal))
    child = ServerProcess("ended", ["true"], os.environ, tmp_path)
    assert child.wait(DEADLINE_S)
    child.bury()
    assert sent == [(child.pid, signal.SIGKILL)]
    child.signal(signal.SIGTERM)
    stop_all([child, *fleet._children])
    assert sent == [(child.pid, signal.SIGKILL)]


def test_a_failed_command_gives_its_last_line(tmp_path):
    fleet = Fleet(tmp_path, Events(as_json=True), lambda: time.sleep(0.01))
    with pytest.raises(SetUpError, match=r"^no such model\.$"):
        fleet.run("export", ["sh", "-c", "echo trying; echo no such model.; exit 2"], os.environ)


def test_tritonservers_tables_stay_out_of_a_log_tail(tmp_path):
    child = ServerProcess("tables", ["printf", "one\\n+--+\\n| a |\\n+--+\\n\\ntwo\\n"], os.environ, tmp_path)
    assert child.wait(DEADLINE_S)
    assert child.log_tail() == "one\ntwo"
    child.bury()
