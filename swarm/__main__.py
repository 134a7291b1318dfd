"""`python -m swarm run|probe|hosts|link|trace`: studies, endpoints, client hosts, emulated links, traces."""

import importlib
import sys

from reports.format import one_line
from swarm.errors import SwarmError
from swarm.launcher.orphans import end_left_behind, remove_folders
from swarm.links.namespace import remove_orphans

COMMANDS = {
    "run": (
        "swarm.launcher.command",
        "run a study: master here, workers on hosts, emulated links where asked",
    ),
    "probe": (
        "swarm.targets.probe",
        "show what an endpoint is, how a study would call it, and what it answers",
    ),
    "hosts": ("swarm.hosts.command", "check client hosts, prepare those reached by ssh"),
    "link": ("swarm.links.command", "list emulated links, measure one, or run a command over it"),
    "trace": ("swarm.traces.command", "make traces of requests, convert access logs to them, show one"),
}
USAGE, INTERRUPTED = 2, 130


def main(argv: list[str]) -> int:
    """One of the commands: its exit code; 2 for a wrong command line."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: inferswarm COMMAND …, each with its own --help\n")
        print("\n".join(f"  {name:6} {text}" for name, (_, text) in COMMANDS.items()))
        return 0 if argv else USAGE
    if argv[0] not in COMMANDS:
        say(f"{argv[0]} is not a command: give one of {', '.join(COMMANDS)}")
        return USAGE
    try:
        clean_up()
        module = importlib.import_module(COMMANDS[argv[0]][0])
        code: int = module.main(argv[1:])
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except SwarmError as error:
        print(f"inferswarm: {error}", file=sys.stderr, flush=True)
        return USAGE
    except OSError as error:
        say(str(error))
        return USAGE


def clean_up() -> None:
    """What a study that was killed has left: processes, namespaces and devices, temporary folders."""
    end_left_behind(say)
    remove_orphans()
    remove_folders()


def say(text: str) -> None:
    """A line for the person."""
    print(f"inferswarm: {one_line(text)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
