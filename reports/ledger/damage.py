"""What a damaged record leads to, said in one sentence; a developer sees where it came from."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reports.ledger.ledger import LedgerError

DAMAGED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What a value of another type, size or place than a ledger's brings about, wherever it is used."""
LONGEST = 200
"""Characters of an error's own words: a value that it quotes may be as long as a line of the ledger."""


@contextmanager
def damage_refused(place: Path | str) -> Iterator[None]:
    """Around all that works on the records of `place`: LedgerError where one is not what a ledger holds.

    An error in the program may look alike, so its words are in the sentence, and `python -X dev` lets it
    through.
    """
    try:
        yield
    except DAMAGED as error:
        if developing():
            raise
        raise LedgerError(
            f"{place}: a record is not what a ledger holds ({error!r:.{LONGEST}}): it was edited or damaged."
        ) from error


def developing() -> bool:
    """Whether Python was started with `-X dev` or PYTHONDEVMODE=1."""
    return sys.flags.dev_mode
