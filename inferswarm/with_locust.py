"""`inferswarm locust …`: Locust itself, with the suite's packages and studies at hand."""

import argparse
import functools
import importlib
import os
import sys
from collections.abc import Sequence

HELP = frozenset({"-h", "--help"})
USAGE = 2
SUITE = ("users", "swarm", "reports")
"""What a locustfile may import of the suite."""


def main(argv: Sequence[str]) -> int:
    """Run Locust with these words; `-f` may name a study of the suite. Ends as Locust does, by SystemExit."""
    from swarm.errors import UsageError
    from swarm.launcher.launch_info import VARIABLE, LaunchInfo, as_typed

    # The ledger keeps what was typed, and not what Locust is given.
    typed = LaunchInfo([*as_typed(sys.argv[:1]), "locust", *argv]).to_environment()
    try:
        sys.argv = ["inferswarm locust", *resolved(argv)]
    except UsageError as error:
        print(f"inferswarm: {error}", file=sys.stderr)
        return USAGE
    os.environ.setdefault(VARIABLE, typed[VARIABLE])
    from locust.main import main as run_locust

    # Locust puts the folders that it works in before all others: a package there may bear one of these names.
    for name in SUITE:
        importlib.import_module(name)
    if HELP & set(argv):
        introduce()
        load_named()
    run_locust()
    return 0


def resolved(argv: Sequence[str]) -> list[str]:
    """The words with files in place of the names of studies. Raises UsageError where there are none.

    >>> resolved(["--locustfile=step7", "-u", "1"])
    ['-f', '/opt/inferswarm/locustfiles/step7.py', '-u', '1']
    """
    from swarm.launcher.locustfile import check_named, find_locustfile

    parser = argparse.ArgumentParser(prog="inferswarm locust", add_help=False, allow_abbrev=False)
    parser.add_argument("-f", "--locustfile", metavar="STUDY")
    options, rest = parser.parse_known_args(list(argv))
    check_named(rest)
    if options.locustfile is None:
        return rest
    named = [find_locustfile(text.strip()) for text in options.locustfile.split(",")]
    return ["-f", ",".join(named), *rest]


def introduce() -> None:
    """Let Locust's --help begin with how it is called here."""
    from locust import events

    from swarm.launcher.locustfile import studies

    def on_parser(parser: argparse.ArgumentParser) -> None:
        parser.description = (
            "Usage: inferswarm locust -f STUDY [options] [UserClass ...]\n\n"
            f"STUDY is one of {', '.join(studies())}, or a locustfile of your own."
        )

    events.init_command_line_parser.add_listener(on_parser)


@functools.cache
def load_named() -> None:
    """Load the locustfiles that the command line names: Locust prints --help before it has, without options
    of theirs."""
    from locust.argument_parser import get_empty_argument_parser
    from locust.util.load_locustfile import load_locustfile

    options, _ = get_empty_argument_parser(add_help=False).parse_known_args()
    for path in options.locustfile.split(","):
        if os.path.isfile(path):
            load_locustfile(path)
