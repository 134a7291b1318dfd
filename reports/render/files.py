"""The files a report leaves, each written whole or not at all."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from reports.cells_csv.columns import render_classes, render_csv, render_timeline
from reports.gates.verdict import Verdict
from reports.page.page import Page
from reports.render.html import render_html
from reports.render.markdown import render_markdown
from reports.render.study_json import render_json
from reports.study.study import Study


class WriteError(Exception):
    """What cannot be written, in a sentence with the fix."""


@contextmanager
def writing(place: Path, fix: str) -> Iterator[None]:
    """Around what writes there: WriteError where the system lets nobody."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"{place}: cannot be written ({error.strerror}): {fix}.") from error


def write_report(directory: Path, study: Study, page: Page, verdicts: Sequence[Verdict]) -> None:
    """Renders everything, then writes it; OSError where the directory cannot be written."""
    files = {
        "study.json": render_json(study, page, verdicts),
        "cells.csv": render_csv(study),
        "timeline.csv": render_timeline(study),
        **({"classes.csv": classes} if (classes := render_classes(study)) else {}),
        "summary.md": render_markdown(page),
        "report.html": render_html(page),
    }
    write_files(directory, files)


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Writes texts by their names; the directory is made where it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(directory / name, text)


def write_whole(path: Path, text: str) -> None:
    """Writes beside the file and renames, so that no reader ever sees half of it.

    Nothing is written through a link, which a stranger's folder may have under any name that can be foretold.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(16)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
