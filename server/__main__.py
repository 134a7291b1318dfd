"""`python -m server up | export | doctor | profile | service`."""

import errno
import importlib
import os
import sys

from server.errors import SetUpError
from server.hardware.packages import INSTALL

COMMANDS = {
    "up": "server.embedded.up",
    "export": "server.models.export",
    "doctor": "server.hardware.doctor",
    "profile": "server.models.profile",
    "service": "server.service.command",
}


def main(argv: list[str]) -> int:
    """Run one command; 2 and one sentence on stderr where the machine or the command line is not valid."""
    module = COMMANDS.get(argv[0]) if argv else None
    if module is None:
        print(f"usage: python -m server {'|'.join(COMMANDS)} [--help]", file=sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else 2
    code = 0
    try:
        code = int(importlib.import_module(module).main(argv[1:]))
        print(end="", flush=True)
        return code
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # The reader has left, or a disk is full. Python flushes again when it ends: into what takes all.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return code
        print(f"{error.strerror}: free some, and try again.", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: {INSTALL}.", file=sys.stderr)
        return 2
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
