"""`python -m swarm run|probe|hosts|link|trace`: studies, endpoints, client hosts, emulated links, traces."""

import importlib
import sys

from reports.entry import INTERRUPTED, leaving_at_interrupt, outlast_output
from reports.format import one_line
from swarm.errors import SwarmError

COMMANDS = {
    "run": "swarm.launcher.command",
    "probe": "swarm.targets.probe",
    "hosts": "swarm.hosts.command",
    "link": "swarm.links.command",
    "trace": "swarm.traces.command",
}
STUDY = "run"
USAGE, INCONCLUSIVE = 2, 3


def main(argv: list[str]) -> int:
    """One of the commands: its exit code; 2 for a wrong command line."""
    module = COMMANDS.get(argv[0]) if argv else None
    if module is None:
        print(f"usage: python -m swarm {'|'.join(COMMANDS)} [--help]", file=sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else USAGE
    outlast_output()
    stopped = INCONCLUSIVE if argv[0] == STUDY else INTERRUPTED
    try:
        with leaving_at_interrupt(stopped):
            clean_up()
            command = importlib.import_module(module)
        code: int = command.main(argv[1:])
        return code
    except KeyboardInterrupt:
        return stopped
    except SwarmError as error:
        print(f"inferswarm: {error}", file=sys.stderr, flush=True)
        return USAGE
    except OSError as error:
        say(str(error))
        return USAGE


def clean_up() -> None:
    """What a study that was killed has left: processes, namespaces and devices, temporary folders."""
    from swarm.launcher.orphans import end_left_behind, remove_folders
    from swarm.links.namespace import remove_orphans

    end_left_behind(say)
    remove_orphans()
    remove_folders()


def say(text: str) -> None:
    """A line for the person."""
    print(f"inferswarm: {one_line(text)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
