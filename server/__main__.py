"""`python -m server up | export | doctor | profile | service`."""

import sys
from collections.abc import Callable

from server.errors import SetUpError


def main(argv: list[str]) -> int:
    """Run one command; 2 and one sentence on stderr where the machine or the command line will not do."""
    command = _commands().get(argv[0]) if argv else None
    if command is None:
        print("usage: python -m server up|export|doctor|profile|service [--help]", file=sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else 2
    try:
        return command(argv[1:])
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _commands() -> dict[str, Callable[[list[str]], int]]:
    from server.embedded import up
    from server.hardware import doctor
    from server.models import export, profile
    from server.service import command

    return {
        "up": up.main,
        "export": export.main,
        "doctor": doctor.main,
        "profile": profile.main,
        "service": command.main,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
