"""Makes reports from the ledgers that studies leave."""

import argparse
from collections.abc import Sequence

from reports.commands.baseline import add_baseline
from reports.commands.calibrate import add_calibrate
from reports.commands.compare import add_compare
from reports.commands.gate import add_gate
from reports.commands.history import add_history
from reports.commands.show import add_show
from reports.entry import INTERRUPTED
from reports.gates.require import GateError
from reports.ledger.ledger import FILE_NAME, LedgerError, damage_refused
from reports.parser import Parser
from reports.render.console import refused
from reports.render.files import WriteError


def run_command(argv: Sequence[str] | None) -> int:
    """Runs one command: 0 done, 1 a gate failed, 2 the input cannot be used, 3 it tells nothing.

    130 where Ctrl-C stopped it.
    """
    arguments = parser().parse_args(argv)
    try:
        with damage_refused(_read_by(arguments)):
            code: int = arguments.run(arguments)
            return code
    except (GateError, LedgerError, WriteError) as error:
        return refused(str(error))
    except KeyboardInterrupt:
        return refused("stopped by Ctrl-C.", INTERRUPTED)


def _read_by(arguments: argparse.Namespace) -> str:
    """What a command was told to read, as a sentence names it."""
    if "places" in arguments:
        return " or ".join(arguments.places)
    if "sides" in arguments:
        return " or ".join(arguments.sides)
    directories = arguments.directories if "directories" in arguments else [arguments.directory]
    return " or ".join(str(path / FILE_NAME) for path in directories)


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each thing to do."""
    top = Parser(prog="inferswarm", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_show, add_compare, add_gate, add_baseline, add_calibrate, add_history):
        add(commands)
    return top
