"""`python -m swarm run|hosts|link`: studies on several client hosts, the hosts, and emulated links."""

from __future__ import annotations

import importlib
import sys

from swarm.errors import SwarmError
from swarm.links.namespace import remove_orphans
from swarm.orphans import end_left_behind

COMMANDS = {
    "run": ("swarm.run", "run a study: master here, workers on hosts, emulated links where asked"),
    "hosts": ("swarm.hosts.command", "check client hosts, prepare those reached by ssh, print manifests"),
    "link": ("swarm.links.command", "list emulated links, measure one, or run a command over it"),
}
USAGE = 2


def main(argv: list[str]) -> int:
    """One of the commands: its exit code; 2 for a wrong command line."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: python -m swarm COMMAND …, each with a --help of its own\n")
        print("\n".join(f"  {name:6} {text}" for name, (_, text) in COMMANDS.items()))
        return 0 if argv else USAGE
    if argv[0] not in COMMANDS:
        print(f"inferswarm: {argv[0]} is no command: give one of {', '.join(COMMANDS)}", file=sys.stderr)
        return USAGE
    try:
        end_left_behind(lambda text: print(f"inferswarm: {text}", file=sys.stderr, flush=True))
        remove_orphans()
    except SwarmError as error:
        print(f"inferswarm: {error}", file=sys.stderr)
        return USAGE
    module = importlib.import_module(COMMANDS[argv[0]][0])
    code: int = module.main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
