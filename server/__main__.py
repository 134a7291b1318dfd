"""`python -m server up | export | doctor | profile | service`."""

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
    except BrokenPipeError:
        # The reader has left. Python flushes again when it ends, which must find something to write to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
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
