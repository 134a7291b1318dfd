"""What properties of bad input share: how many are tried, what a refusal looks like, and who counts them."""

import contextlib
import io
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, Phase, settings

LONGEST = 480
"""Characters of a whole line: a sentence and who says it."""


def tried(examples: int) -> settings:
    """So many examples, the same in every run and on every machine, and nothing kept on disk."""
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


class Tally:
    """Distinct bad inputs that were refused, by kind, and how many of each there must be at least."""

    def __init__(self, **least: int) -> None:
        self._least = least
        self._found: dict[str, set[int]] = {kind: set() for kind in least}

    def refused(self, kind: str, given: object) -> None:
        """One more, where it was not refused before."""
        self._found[kind].add(hash(given))

    def tell(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Print the counts; fails where a kind that was tried has too few, and skips where none was."""
        counts = {kind: len(found) for kind, found in self._found.items() if found}
        if not counts:
            pytest.skip("no property was tried")
        for kind, count in counts.items():
            assert count >= self._least[kind], f"{count} {kind} refused, at least {self._least[kind]} wanted"
        told = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items())
        with capsys.disabled():
            print(f"\n{sum(counts.values()):,} bad inputs refused: {told}")


def said_by(main: Callable[[list[str]], int], argv: Sequence[str]) -> tuple[int, str, str]:
    """A program's exit code, and what it wrote to standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*argv])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def is_clear(line: str) -> bool:
    """Whether it is one sentence on one line, fit for a terminal and short enough to be read."""
    ends = line.rstrip(".?)\"'")
    return 20 < len(line) <= LONGEST and line.isprintable() and ends.strip() != "" and line[-1] not in ":;,"
