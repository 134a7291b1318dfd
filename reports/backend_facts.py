"""What a ledger's header says of the backends that its figures are of: what stands in for what, and so on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from reports.version_1 import BACKENDS

NOT_COMPUTED = "No model computes behind this endpoint."
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
OWN = ("computes", "stands_for")
"""Facts that an endpoint may say of itself."""


def facts_of(header: Mapping[str, Any], backend: str, endpoint: str = "") -> BackendFacts:
    """What a header says of a backend; `stand_in` holds all that must be said beside an endpoint's figures.

    What it says of the endpoint itself comes first. One that says nothing of any backend is older than such
    facts, or none at all.
    """
    told = (header.get("backends") or BACKENDS).get(backend) or {}
    facts = BackendFacts(**{name: told[name] for name in BackendFacts.__dataclass_fields__ if name in told})
    about = (header.get("endpoints") or {}).get(endpoint) or {}
    own = {name: about[name] for name in OWN if name in about and not facts.floor}
    # a sentence on what its backend stands for is none on what it stands for itself
    sentence = "" if own.get("stands_for") else facts.stand_in
    facts = replace(facts, **own, stand_in=sentence)
    if about.get("emulated") and not facts.floor:  # its server says so, whatever it is asked as
        facts = replace(facts, emulated=True, computes=False)
    return replace(facts, stand_in=_said(facts, about.get("emulated")))


def model_of(header: Mapping[str, Any], planned: Mapping[str, Any]) -> str:
    """What the requests of a planned run call the model; what its header says where they call it nothing."""
    about = (header.get("endpoints") or {}).get(planned["endpoint"]) or {}
    return str(planned.get("model") or about.get("model") or "")


def _said(facts: BackendFacts, profile: object) -> str:
    if facts.floor:
        return FLOOR
    if facts.emulated:
        named = f"Emulated ({profile})" if profile else "Emulated"
        return f"{named}: no model computes behind this endpoint."
    said = facts.stand_in or (f"Stands in for {facts.stands_for}." if facts.stands_for else "")
    return said if facts.computes else f"{said} {NOT_COMPUTED}".lstrip()
