"""Comparison with golden files."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compares with the golden file; UPDATE_GOLDEN=1 in the environment writes it instead."""
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")
