"""docs/frames.md and its notebook: their code runs on a study, and gives what they show."""

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pandas
import pytest

from tests.reports.frames.gpu_book import gpu_study

ROOT = Path(__file__).parents[3]
PAGE, NOTEBOOK = ROOT / "docs/frames.md", ROOT / "examples/frames.ipynb"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
WIDTH = 118


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each of the page's blocks gives, one after the other, beside the study that it names."""
    code = [code for code, _ in BLOCK.findall(PAGE.read_text())]
    (folder,) = re.findall(r'reports\.load\("(.+?)"\)', code[0])
    gpu_study(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with pandas.option_context("display.width", WIDTH, "display.max_columns", None):
        return [output(block, names) for block in code]


def output(code: str, names: dict[str, Any]) -> str:
    """What a cell of a notebook shows: what it prints, then its last expression."""
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        print(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())


def test_the_page_shows_what_its_code_gives(told: list[str]) -> None:
    """UPDATE_GOLDEN=1 in the environment writes it into the page instead."""
    if os.environ.get("UPDATE_GOLDEN"):
        texts = iter(told)
        PAGE.write_text(BLOCK.sub(lambda at: block(at[1], next(texts)), PAGE.read_text()))
    shown = [text for _, text in BLOCK.findall(PAGE.read_text())]
    assert len(shown) == 4
    assert shown == told


def block(code: str, text: str) -> str:
    return f"```python\n{code}```\n\n```text\n{text}```"


def test_the_notebook_is_the_page(told: list[str]) -> None:
    """UPDATE_GOLDEN=1 in the environment writes it anew."""
    made = json.dumps(notebook(PAGE.read_text()), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        NOTEBOOK.write_text(made)
    assert NOTEBOOK.read_text() == made


def notebook(page: str) -> dict[str, Any]:
    """The page as a notebook: its code with what that gives, and the texts between."""
    cells: list[dict[str, Any]] = []
    for at, part in enumerate(BLOCK.split(page)):
        number, kind = at // 3 + 1, at % 3
        if kind == 0:
            text = re.sub(r"\]\((\w+\.md)\)", r"](../docs/\1)", part.strip())
            cells.append(
                {"cell_type": "markdown", "id": f"text-{number}", "metadata": {}, "source": lines(text)}
            )
        elif kind == 1:
            cell = {"cell_type": "code", "id": f"code-{number}", "metadata": {}, "execution_count": number}
            cells.append(cell | {"outputs": [], "source": lines(part.strip())})
        else:
            cells[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines(part)}]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": python, "nbformat": 4, "nbformat_minor": 5}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
