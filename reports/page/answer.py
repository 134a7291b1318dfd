"""What a reader asks first of a study, and the answer to it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class AnswerRow:
    """One row of the first screen: `said` is the answer in a few words, `detail` what it rests on.

    `command` is what to run next, empty where that is nothing.
    """

    question: str
    said: str
    detail: str = ""
    command: str = ""

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(text for text in (f"{self.question}: {self.said}", self.detail) if text)


def answered(question: str, finding: Callable[[Asked], str]) -> Callable[[Asked], AnswerRow | None]:
    """What answers with a finding: its first sentence is what is said, the others are the detail."""

    def answer(asked: Asked) -> AnswerRow | None:
        said, stop, detail = finding(asked).partition(". ")
        return AnswerRow(question, said + ("." if stop else ""), detail) if said else None

    return answer


def repeated(command: str, repeats: int) -> str:
    """A study's command with so many repeats of each cell in place of those it had; empty without one."""
    return with_options(command, {"--repeat-until-decided": "", "--repeats": str(repeats)})


def with_options(command: str, values: Mapping[str, str]) -> str:
    """A command with other values of some options, which all take one; an empty value leaves its option out.

    Empty where the command is, or cannot be read as a shell would.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in values and word.partition("=")[0] not in values
    ]
    given = [word for name, value in values.items() if value for word in (name, value)]
    return shlex.join([*kept, *given]) if kept else ""
