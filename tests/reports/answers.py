"""What the first screen of a study says, row by row."""

from reports.study.study import Study
from reports.topics.report import answers


def told(study: Study) -> tuple[str, ...]:
    """Each row as one line of text."""
    return tuple(answer.text for answer in answers(study))


def row(study: Study, question: str) -> str:
    """The row that answers a question; empty where there is none."""
    found = (answer.text for answer in answers(study) if answer.question == question)
    return next(found, "").removeprefix(f"{question}: ")
