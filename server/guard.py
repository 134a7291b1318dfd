"""`guard.py PARENT COMMAND...`: a command that is told to stop when its parent dies, however that dies.

A script of its own: Linux ties the promise to the process that asked for it and keeps it across exec.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Become the command in argv[1:], unless the parent, argv[0], is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(argv[0]):
            sys.exit(1)
    os.execvp(argv[1], argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
