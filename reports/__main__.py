"""`python -m reports`: makes reports from the ledgers that studies leave."""

import sys
from collections.abc import Sequence

from reports.entry import leaving_at_interrupt, outlast_output


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command: its exit code, as of `run_command`."""
    outlast_output()
    with leaving_at_interrupt():
        from reports.commands.command_line import run_command
    return run_command(argv)


if __name__ == "__main__":
    sys.exit(main())
