"""Comparison with golden files."""

import os
import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compares with the golden file; UPDATE_GOLDEN=1 in the environment writes it instead."""
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def without_scripts(page: str) -> str:
    """A page without the scripts that come with it; their data stay."""
    bare = re.sub(r"<script>.*?</script>", "<script></script>", page, flags=re.DOTALL)
    return re.sub(r"sha256-[\w+/=]+", "sha256-", bare)


def without_style(page: str) -> str:
    """A page without its style sheet, which is a file of its own."""
    return re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.DOTALL)
