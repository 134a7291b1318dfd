"""`inferswarm COMMAND`: every command of the suite under one name."""

import importlib
import sys
from importlib.metadata import version
from typing import NamedTuple

from inferswarm import with_locust


class Command(NamedTuple):
    """Where a command is: the room whose `__main__` takes it, by which name, and what it does."""

    room: str
    name: str
    about: str


COMMANDS = {
    "run": Command("swarm", "run", "run a study: master, workers on one or more hosts, emulated links"),
    "locust": Command("inferswarm", "locust", "Locust itself: -f takes a study's name, or a file"),
    "probe": Command(
        "swarm", "probe", "show what an endpoint is, how it would be asked, and what it answers"
    ),
    "up": Command("server", "up", "start the embedded servers, and keep them up until Ctrl-C"),
    "report": Command("reports", "show", "make a study's report again, and print its tables"),
    "compare": Command("reports", "compare", "compare studies with a base, cell by cell"),
    "gate": Command("reports", "gate", "judge a study by thresholds: exit code 0, 1 or 3"),
    "baseline": Command("reports", "baseline", "make a baseline for gates of past studies"),
    "calibrate": Command(
        "reports", "calibrate", "see how much a study's cells vary, and so what a gate can see"
    ),
    "history": Command(
        "reports", "history", "follow each cell over many studies: change points, and what else changed then"
    ),
    "doctor": Command("server", "doctor", "say what this machine can run, and what is missing"),
    "export": Command("server", "export", "write model repositories for Triton"),
    "profile": Command("server", "profile", "time the operators of the ONNX model"),
    "hosts": Command("swarm", "hosts", "check client hosts, prepare those reached by ssh"),
    "link": Command("swarm", "link", "list emulated links, or measure one"),
    "trace": Command("swarm", "trace", "make traces of requests, convert access logs to them, show one"),
}
USAGE = 2


def main(argv: list[str] | None = None) -> int:
    """Run one command: its exit code; 2 for a wrong command line."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("usage: inferswarm COMMAND …, each with its own --help\n")
        print("\n".join(f"  {name:9} {command.about}" for name, command in COMMANDS.items()))
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        print(f"inferswarm {version('inferswarm')}")
        return 0
    if words[0] not in COMMANDS:
        print(f"inferswarm: {words[0]} is not a command: give one of {', '.join(COMMANDS)}", file=sys.stderr)
        return USAGE
    if words[0] == "locust":
        return with_locust.main(words[1:])
    room, name, _ = COMMANDS[words[0]]
    code: int = importlib.import_module(f"{room}.__main__").main([name, *words[1:]])
    return code
