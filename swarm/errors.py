"""What can end a study before or while it runs.

SwarmError
├── UsageError      an option or a target is wrong: one sentence, exit code 2
├── StudyError      the study cannot go on: one sentence, exit code 3, or a failing threshold's 1
└── RunFailedError  this run has no figures, the study goes on
"""

from reports.format import one_line, plain_lines


class SwarmError(Exception):
    """The text is one sentence for a person; control characters in quotations are removed."""

    def __init__(self, text: str = "") -> None:
        super().__init__(plain_lines(text))


class UsageError(SwarmError):
    """Names the option or field, and the fix; what it quotes is escaped and shortened."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(one_line(sentence))


class StudyError(SwarmError):
    """Names what was lost, and what to look at."""


class TimeIsOverError(BaseException):
    """The study's time is over. Raised anywhere, and must not be caught on the way."""


class RunFailedError(SwarmError):
    """Says why there are no figures."""
