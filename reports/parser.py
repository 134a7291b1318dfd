"""A command line that quotes what was typed escaped and shortened."""

import argparse
from typing import NoReturn

from reports.format import one_line


class Parser(argparse.ArgumentParser):
    """As argparse has it, but for what it says."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with 2, and says how it is used."""
        super().error(one_line(message))
