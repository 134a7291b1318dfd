"""python -m reports: makes reports from the ledgers that studies leave."""

import argparse
import io
import sys
from collections.abc import Sequence

from reports.commands.baseline import add_baseline
from reports.commands.calibrate import add_calibrate
from reports.commands.compare import add_compare
from reports.commands.gate import add_gate
from reports.commands.show import add_show
from reports.parser import Parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command: 0 done, 1 a gate failed, 2 the input cannot be used, 3 it tells nothing."""
    arguments = parser().parse_args(argv)
    code: int = arguments.run(arguments)
    return code


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each thing to do."""
    top = Parser(prog="python -m reports", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_show, add_compare, add_gate, add_baseline, add_calibrate):
        add(commands)
    return top


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a dash must not end the report where the locale is ASCII
    sys.exit(main())
