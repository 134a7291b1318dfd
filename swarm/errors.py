"""What can end a study before or while it runs.

SwarmError
├── UsageError      an option or a target is wrong: one sentence, exit code 2
├── StudyError      the study cannot go on: one sentence, exit code 3, or a failing threshold's 1
└── RunFailedError  this run has no figures, the study goes on
"""

from reports.format import LONGEST, one_line, plain_lines

MOST_ANSWERED = 8_000
"""Characters of a sentence with a server's words, each of which may be escaped."""


class SwarmError(Exception):
    """The text is one sentence for a person; control characters in quotations are removed."""

    def __init__(self, text: str = "") -> None:
        super().__init__(plain_lines(text))


class UsageError(SwarmError):
    """Names the option or field, and the fix; what it quotes is escaped, and shortened if a person typed it.

    What a server has answered stays whole, as `users.redact.quoted` gives it.
    """

    def __str__(self) -> str:
        return one_line(super().__str__(), MOST_ANSWERED if self._is_of_answer() else LONGEST)

    def _is_of_answer(self) -> bool:
        from users.errors import RequestError  # grpcio's import takes long, and most commands need none

        cause: BaseException | None = self
        while cause is not None and not isinstance(cause, RequestError):
            cause = cause.__cause__
        return cause is not None


class StudyError(SwarmError):
    """Names what was lost, and what to look at."""


class TimeIsOverError(BaseException):
    """The study's time is over. Raised anywhere, and must not be caught on the way."""


class RunFailedError(SwarmError):
    """Says why there are no figures."""
