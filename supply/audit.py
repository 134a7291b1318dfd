"""Known vulnerabilities of the locked packages, as pip-audit finds them where a database can be reached.

pip-audit alone calls a package that it cannot look up skipped, and is content; here that is no pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from reports.format import plural
from supply.lock import LOOSE, ROOT
from supply.pins import asked, locked

PIP_AUDIT = ROOT / ".venv/supply/bin/pip-audit"
PATIENCE_S = 600
CLEAN, VULNERABLE, INCONCLUSIVE = 0, 1, 3
MEND = (
    "run it where PyPI's own database can be reached, or name another by ARGS='--vulnerability-service osv'"
)


def main(argv: Sequence[str]) -> int:
    """Look every package up, `argv` being pip-audit's own options, and say what was found."""
    try:
        found = json.loads(looked_up(packages(), argv))["dependencies"]
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        print(f"audit: inconclusive: pip-audit gave no answer ({type(error).__name__}); {MEND}")
        return INCONCLUSIVE
    text, code = verdict(found)
    print(text)
    return code


def packages() -> list[Requirement]:
    """What the lock holds, and what is pinned beside it by version alone."""
    loose = [one for one in asked(ROOT / "requirements-server.txt") if one.name in LOOSE]
    return [*(entry.requirement for entry in locked(ROOT / "requirements.lock")), *loose]


def looked_up(wanted: Iterable[Requirement], options: Sequence[str]) -> str:
    """What pip-audit prints, as JSON; its own exit code says too little."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("".join(f"{one.name}{one.specifier}\n" for one in wanted))
        quiet = ("--format", "json", "--progress-spinner", "off")
        command = [str(PIP_AUDIT), "--requirement", str(file), "--no-deps", "--disable-pip", *quiet, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=folder)
    sys.stderr.write("" if done.stdout else last_line(done.stderr))
    return done.stdout


def last_line(said: str) -> str:
    """Of what a program said."""
    return "".join(f"{line}\n" for line in said.strip().splitlines()[-1:])


def verdict(found: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """What is known of these packages, and the exit code: a vulnerability weighs more than a gap."""
    skipped = [one["name"] for one in found if "skip_reason" in one]
    told = [f"{one['name']} {one['version']}: {flaw(of)}" for one in found for of in one.get("vulns", ())]
    gap = f"{len(skipped)} of {len(found)} packages could not be looked up ({', '.join(skipped[:3])}"
    gap += f"{', …' if skipped[3:] else ''})"
    if told:
        known = f"audit: {plural(len(told), 'known flaw')}{'; ' if skipped else ''}{gap if skipped else ''}"
        return "\n".join([*told, known]), VULNERABLE
    if skipped or not found:
        return f"audit: inconclusive: {gap}; {MEND}", INCONCLUSIVE
    return f"audit: no known flaw in {plural(len(found), 'package')}", CLEAN


def flaw(of: Mapping[str, Any]) -> str:
    """`PYSEC-2026-1, mended in 1.2`."""
    mended = ", ".join(of.get("fix_versions", ()))
    return f"{of['id']}, {f'mended in {mended}' if mended else 'not mended yet'}"
