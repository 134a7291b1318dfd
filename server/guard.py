"""`guard.py COMMAND...`: becomes a command that does not outlive the process at the other end of its stdin.

A fork stays behind in the command's process group and reads stdin, which ends however that process does.
Then it stops the whole group, helpers included: while they start, tritonserver's notice nothing themselves.
"""

import os
import signal
import sys
import time

STOP_S = 4.0


def main(argv: list[str]) -> None:
    """Become the command; run it as the leader of its process group."""
    leader = os.getpid()
    if os.fork() == 0:
        watch(leader)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execvp(argv[0], argv)


def watch(leader: int) -> None:
    """Wait for stdin to end, then ask the group to stop, and end what has not after 4 s."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    # We are the leader's child for as long as it lives.
    while os.getppid() == leader and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
