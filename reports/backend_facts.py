"""What a ledger's header says of the backends that its figures are of: what stands in for what, and so on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reports.version_1 import BACKENDS

FLOOR = "Floor: no model computes behind it; shown beside, never subtracted."


@dataclass(frozen=True, kw_only=True)
class BackendFacts:
    """Of one backend, as its own file has it: users/backends/base.py says what each means."""

    computes: bool = True
    emulated: bool = False
    floor: bool = False
    compiled: bool = False
    stands_for: str = ""
    passes_to: str = ""
    stand_in: str = ""


NO_FACTS = BackendFacts()


def facts_of(header: Mapping[str, Any], backend: str, endpoint: str = "") -> BackendFacts:
    """What a header says of a backend; `stand_in` holds all that must be said beside an endpoint's figures.

    One that says nothing of any is older than such facts, or none at all.
    """
    told = (header.get("backends") or BACKENDS).get(backend) or {}
    facts = BackendFacts(**{name: told[name] for name in BackendFacts.__dataclass_fields__ if name in told})
    profile = ((header.get("endpoints") or {}).get(endpoint) or {}).get("emulated")
    return replace(facts, stand_in=_said(facts, profile))


def _said(facts: BackendFacts, profile: object) -> str:
    if facts.floor:
        return FLOOR
    if facts.emulated:
        named = f"Emulated ({profile})" if profile else "Emulated"
        return f"{named}: no model computes behind this endpoint."
    return facts.stand_in or (f"Stands in for {facts.stands_for}." if facts.stands_for else "")
