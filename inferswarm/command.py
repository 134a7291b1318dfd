"""`inferswarm COMMAND`: every command of the suite under one name."""

import importlib
import sys

from inferswarm import with_locust
from reports.entry import INTERRUPTED, leave_at_interrupt, leaving_at_interrupt, outlast_output

COMMANDS = {
    "run": ("swarm", "run a study: master, workers on one or more hosts, emulated links"),
    "locust": ("inferswarm", "Locust itself: -f takes a study's name, or a file"),
    "probe": ("swarm", "show what an endpoint is, how it would be asked, and what it answers"),
    "up": ("server", "start the embedded servers, and keep them up until Ctrl-C"),
    "report": ("reports", "make a study's report again, and print its tables"),
    "compare": ("reports", "compare studies with a base, cell by cell"),
    "gate": ("reports", "judge a study by thresholds: exit code 0, 1 or 3"),
    "baseline": ("reports", "make a baseline for gates of past studies"),
    "calibrate": ("reports", "see how much a study's cells vary, and so what a gate can see"),
    "history": ("reports", "follow each cell over many studies: change points, and what else changed then"),
    "doctor": ("server", "say what this machine can run, and what is missing"),
    "export": ("server", "write model repositories for Triton"),
    "profile": ("server", "time the operators of the ONNX model"),
    "hosts": ("swarm", "check client hosts, prepare those reached by ssh"),
    "link": ("swarm", "list emulated links, or measure one"),
    "trace": ("swarm", "make traces of requests, convert access logs to them, show one"),
}
"""By name the room whose `__main__` takes it, and what it does."""
STUDIES = ("run", "locust")
USAGE, INCONCLUSIVE = 2, 3


def main(argv: list[str] | None = None) -> int:
    """Run one command: its exit code; 2 for a wrong command line."""
    outlast_output()
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: inferswarm COMMAND …, each with its own --help\n")
        print("\n".join(f"  {name:9}  {about}" for name, (_, about) in COMMANDS.items()))
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"inferswarm {version('inferswarm')}")
        return 0
    if words[0] not in COMMANDS:
        from reports.format import one_line

        why = one_line(f"{words[0]} is not a command: give one of {', '.join(COMMANDS)}")
        print(f"inferswarm: {why}", file=sys.stderr)
        return USAGE
    if words[0] == "locust":
        leave_at_interrupt(INCONCLUSIVE)
        return with_locust.main(words[1:])
    room, _ = COMMANDS[words[0]]
    with leaving_at_interrupt(INCONCLUSIVE if words[0] in STUDIES else INTERRUPTED):
        command = importlib.import_module(f"{room}.__main__")
    code: int = command.main(words)
    return code
