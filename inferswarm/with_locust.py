"""`inferswarm locust …`: Locust itself, with the suite's packages and studies at hand."""

import argparse
import functools
import importlib
import os
import sys
from collections.abc import Sequence

HELP = frozenset({"-h", "--help"})
SUITE = ("users", "swarm", "reports")
"""What a locustfile may import of the suite."""


def main(argv: Sequence[str]) -> int:
    """Run Locust with these words; `-f` may name a study of the suite. Ends as Locust does, by SystemExit."""
    from swarm.launcher.launch_info import VARIABLE, LaunchInfo

    # The ledger keeps what was typed, and not what Locust is given.
    typed = LaunchInfo(["inferswarm", "locust", *argv]).to_environment()
    os.environ.setdefault(VARIABLE, typed[VARIABLE])
    sys.argv = ["inferswarm locust", *resolved(argv)]
    from locust.main import main as run_locust

    # Locust puts the folders that it works in before all others: a package there may bear one of these names.
    for name in SUITE:
        importlib.import_module(name)
    if HELP & set(argv):
        load_named()
    run_locust()
    return 0


def resolved(argv: Sequence[str]) -> list[str]:
    """The words with files in place of the names of studies.

    >>> resolved(["--locustfile=mine.py", "-u", "1"])
    ['-f', 'mine.py', '-u', '1']
    """
    from swarm.launcher.locustfile import find_locustfile

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-f", "--locustfile")
    options, rest = parser.parse_known_args(list(argv))
    if options.locustfile is None:
        return rest
    return ["-f", ",".join(map(find_locustfile, options.locustfile.split(","))), *rest]


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
