"""`python -m swarm run|probe|hosts|link|trace`: studies, endpoints, client hosts, emulated links, traces."""

import importlib
import sys

from reports.format import one_line
from swarm.errors import SwarmError
from swarm.launcher.orphans import end_left_behind, remove_folders
from swarm.links.namespace import remove_orphans

COMMANDS = {
    "run": "swarm.launcher.command",
    "probe": "swarm.targets.probe",
    "hosts": "swarm.hosts.command",
    "link": "swarm.links.command",
    "trace": "swarm.traces.command",
}
USAGE, INTERRUPTED = 2, 130


def main(argv: list[str]) -> int:
    """One of the commands: its exit code; 2 for a wrong command line."""
    module = COMMANDS.get(argv[0]) if argv else None
    if module is None:
        print(f"usage: python -m swarm {'|'.join(COMMANDS)} [--help]", file=sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else USAGE
    try:
        clean_up()
        code: int = importlib.import_module(module).main(argv[1:])
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
