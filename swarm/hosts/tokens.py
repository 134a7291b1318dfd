"""The variables with tokens, by name: who starts processes elsewhere hands them on without looking inside."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOKEN = "INFERSWARM_TOKEN"
VARIABLE = re.compile(r"INFERSWARM_(?:[A-Z0-9]+_)?TOKEN")
"""As `users.redact` has it, which imports Locust by the way."""


def token_variables(environment: Mapping[str, str]) -> list[str]:
    """The names of those that are set."""
    return sorted(name for name, value in environment.items() if value and VARIABLE.fullmatch(name))
