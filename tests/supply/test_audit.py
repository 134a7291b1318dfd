"""An audit is a pass only where every package was looked up and none has a known vulnerability."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement

from supply import audit
from supply.audit import MEND, main, packages, verdict

SOUND: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
UNMENDED = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-2", "fix_versions": []}]}
SKIPPED = {"name": "d", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("found", "text", "code"),
    [
        ([SOUND], "audit: no known flaw in 1 package", 0),
        ([SOUND, BAD, UNMENDED], "b 2: PYSEC-1, mended in 3\nc 2: PYSEC-2, not mended yet\n"
         "audit: 2 known flaws", 1),
        ([SKIPPED, BAD], "b 2: PYSEC-1, mended in 3\naudit: 1 known flaw; "
         "1 of 2 packages could not be looked up (d)", 1),
        ([SOUND, SKIPPED], f"audit: inconclusive: 1 of 2 packages could not be looked up (d); {MEND}", 3),
        ([], f"audit: inconclusive: 0 of 0 packages could not be looked up (); {MEND}", 3),
    ],
)  # fmt: skip
def test_the_verdict(found: list[dict[str, Any]], text: str, code: int) -> None:
    assert verdict(found) == (text, code)


@pytest.mark.parametrize("printed", ["", "no JSON", "{}", "[]"])
def test_without_an_answer_nothing_is_known(
    printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "looked_up", lambda wanted, options: printed)
    assert main([]) == 3
    assert capsys.readouterr().out.startswith("audit: inconclusive: pip-audit gave no answer")


def test_without_pip_audit_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "PIP_AUDIT", "/no/pip-audit")
    assert main([]) == 3
    assert "inconclusive" in capsys.readouterr().out


def test_what_is_pinned_by_version_alone_is_looked_up_too() -> None:
    names = [one.name for one in packages()]
    assert {"torch", "torchvision", "locust", "pip"} < set(names)
    assert all(isinstance(one, Requirement) for one in packages())
