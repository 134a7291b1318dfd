"""What a set-up's study found, read from its folder and held against the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.planting.setup import Setup, accepted

NO_VERDICT, LOG_LINES = "no verdict", 20
LEVEL = re.compile(r"/c(\d+)")


@dataclass(frozen=True)
class Found:
    """One level of users: its truth, what was named instead or as well, and what is wrong with it."""

    users: int
    truth: str
    code: str
    evidence: str
    advice: str = ""
    caveats: tuple[str, ...] = ()
    wrong: str = ""


def found_in(setup: Setup, folder: Path) -> list[Found]:
    """What was named at each level of the set-up's study."""
    paths = list(folder.glob("results/*/study.json"))
    runs = json.loads(paths[0].read_text())["runs"] if paths else []
    by_users = {int(level[1]): run for run in runs if (level := LEVEL.search(run["cell"]))}
    if not by_users:
        return missing(setup, folder, "the study left nothing")
    return [judged(setup, users, truth, by_users.get(users)) for users, truth in setup.truths.items()]


def judged(setup: Setup, users: int, truth: str, run: dict[str, Any] | None) -> Found:
    """One run of the study held against its truth."""
    limit = (run or {}).get("limit") or {"code": NO_VERDICT, "evidence": "no limit", "advice": ""}
    caveats = tuple(caveat["code"] for caveat in run["caveats"]) if run else ()
    wrong = "; ".join(faults(setup, truth, limit, caveats))
    return Found(users, truth, limit["code"], limit["evidence"], limit["advice"], caveats, wrong)


def faults(setup: Setup, truth: str, limit: dict[str, str], caveats: tuple[str, ...]) -> Iterator[str]:
    """What is not as it must be."""
    if limit["code"] not in accepted(truth):
        yield "WRONG"
    text = f"{limit['evidence']} {limit['advice']}"
    yield from (f"does not say {word!r}" for word in setup.said if word not in text)
    yield from (f"has no caveat {code}" for code in setup.caveats if code not in caveats)


def missing(setup: Setup, folder: Path, why: str) -> list[Found]:
    """What stands for a limit where there is none, with the end of what the study printed."""
    log = folder / "study.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = "".join(f"\n      | {line}" for line in lines[-LOG_LINES:])
    evidence = f"{why}; it printed at last:{said}"
    return [Found(users, truth, NO_VERDICT, evidence, wrong="WRONG") for users, truth in setup.truths.items()]
