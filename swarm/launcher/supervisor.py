"""`supervisor.py [OPTIONS] [KEY=VALUE ...] -- COMMAND...`: a command that never outlives its starter.

The command runs with these variables until it ends by itself; its exit code is passed on. When standard input
closes, however the process at its other end came to its end, or on SIGINT, SIGTERM or SIGHUP, the command's
process group gets SIGTERM, then 10 s or its patience, then SIGKILL. On Linux it also dies when this process
is killed.

`--far`: the command is an ssh that leads to another supervisor. Closing its standard input stops what runs
there, while the connection lasts until that has said its last. `--tell=KEY,KEY` writes these of our own
variables to its standard input, and `--told` on the other one takes them from there for its command: no
command line, so no list of processes, ever shows them. `--patience=S` is in seconds.

Started by its file's name, on hosts with Pythons of their own: standard library and Python 3.8 only.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Callable, Sequence  # noqa: UP035 (as Python 3.8 has them)

STDIN = 0
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP_S = 10.0
FAR_S = STOP_S + 3.0
"""How long the other supervisor, and the connection to it, may take."""
PR_SET_PDEATHSIG = 1
USAGE, NOT_RUN = 2, 127
SWITCHES = ("--far", "--told")
MOST_TOLD = 65536
"""Bytes of the line with variables, at most."""


def main(argv: list[str]) -> int:
    """Run the command; its exit code, or 128 + the signal that ended it."""
    head, command = split(argv)
    words = [word.partition("=") for word in head if word not in SWITCHES]
    if not command or not all(key and equals for key, equals, _ in words):
        print("usage: supervisor.py [OPTIONS] [KEY=VALUE ...] -- COMMAND...", file=sys.stderr)
        return USAGE
    settings = {key: value for key, _, value in words}
    patience_s = float(settings.pop("--patience", STOP_S))
    secrets = settings.pop("--tell", "")
    environ = {**os.environ, **settings, **(told(STDIN) if "--told" in head else {})}
    woken = wake_on_signals()
    try:
        process = start(command, environ)
    except OSError as error:
        print(f"supervisor: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_RUN
    if secrets:
        tell(process, {name: os.environ[name] for name in secrets.split(",")})
    if not until_end(process, woken, STDIN):
        stop(process, woken, "--far" in head, patience_s)
    # Helpers that it has left behind.
    send(process, signal.SIGKILL)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """What stands before the first `--`, and the command after it."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def tell(process: subprocess.Popen[bytes], variables: dict[str, str]) -> None:
    """Write variables to the other supervisor, on one line; it may have ended by then."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(variables).encode() + b"\n")
        process.stdin.flush()


def told(descriptor: int) -> dict[str, str]:
    """The variables that the other supervisor tells; none where it ends before it has told them."""
    line = b""
    # Byte by byte: what comes after the line is not ours to read yet.
    while not line.endswith(b"\n") and len(line) < MOST_TOLD:
        more = os.read(descriptor, 1)
        if not more:
            return {}
        line += more
    variables: dict[str, str] = json.loads(line)
    return variables


def wake_on_signals() -> int:
    """A descriptor that gives the number of every signal we get, as a byte."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (*STOPPING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return woken


def start(command: Sequence[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start it in a session of its own; its standard input stays open, and empty, as long as we live."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        env=environ,
        start_new_session=True,
        preexec_fn=dying_with(os.getpid()),
    )


def dying_with(parent: int) -> Callable[[], None] | None:
    """What the command does first, so that the kernel kills it when `parent` dies; Linux alone can."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # It died before the kernel was asked.
            os.kill(os.getpid(), signal.SIGKILL)

    return ask_kernel


def until_end(
    process: subprocess.Popen[bytes], woken: int, held: int | None = None, patience_s: float | None = None
) -> bool:
    """Wait until it ends: True. False once `held` closes or a signal asks to stop, or after the patience.

    Without `held`, signals to stop are not heeded: that is under way.
    """
    deadline = None if patience_s is None else time.monotonic() + patience_s
    sources = [woken] if held is None else [woken, held]
    while process.poll() is None:
        left_s = None if deadline is None else deadline - time.monotonic()
        if left_s is not None and left_s <= 0:
            return False
        ready = select.select(sources, [], [], left_s)[0]
        signals = os.read(woken, 512) if woken in ready else b""
        if held is None:
            continue
        if any(number in signals for number in STOPPING) or (held in ready and closed(held)):
            return False
    return True


def closed(descriptor: int) -> bool:
    """Whether it has come to its end; what else it has to say is dropped."""
    try:
        return not os.read(descriptor, 65536)
    except OSError:
        return True


def stop(process: subprocess.Popen[bytes], woken: int, far: bool, patience_s: float) -> None:
    """End the command's whole group: gently first."""
    if far and process.stdin:
        process.stdin.close()
        if until_end(process, woken, None, FAR_S):
            return
    send(process, signal.SIGTERM)
    if not until_end(process, woken, None, patience_s):
        send(process, signal.SIGKILL)
        process.wait()


def send(process: subprocess.Popen[bytes], number: int) -> None:
    """A signal to all that is left of the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
