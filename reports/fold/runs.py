"""The runs of a study: what was planned of each, and what the ledger has of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.histogram import Histograms
from reports.ledger import Ledger, Record

PLAN_FIELDS = ("cell", "repeat", "endpoint", "backend", "protocol", "payload", "batch", "load", "level")
AXES = ("arrivals", "channels", "client", "link", "congestion", "variant")
"""What a plan tells of a cell beyond that; empty where it does not apply, and in older ledgers."""


@dataclass(frozen=True)
class Run:
    """One execution of one cell: its plan, and its records by kind, in the ledger's order.

    The histograms of its records are decoded when they are first looked at, and once.
    """

    planned: Mapping[str, Any]
    kinds: Mapping[str, Sequence[Record]]

    def of_kind(self, kind: str) -> Sequence[Record]:
        """Its records of one kind."""
        return self.kinds.get(kind, ())

    def measured(self, kind: str) -> list[Record]:
        """Its records of one kind that belong to the measure phase."""
        return [record for record in self.of_kind(kind) if record["phase"] == "measure"]


def whole_plan(ledger: Ledger) -> list[Record]:
    """The header's plan and what was planned later, as a search for a rate does, in order."""
    later = (entry for record in ledger.of_kind("plan") for entry in record["runs"])
    return [*ledger.header["plan"], *later]


def planned_runs(ledger: Ledger) -> list[Run]:
    """Every planned run, in order, begun or not."""
    found: dict[tuple[str, int], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in ledger.records:
        if "cell" in record:
            found[record["cell"], record["repeat"]][record["kind"]].append(_readable(record))
    return [Run(_planned(entry), found[entry["cell"], entry["repeat"]]) for entry in whole_plan(ledger)]


def _planned(entry: Record) -> dict[str, Any]:
    axes = {name: entry.get(name) or "" for name in AXES}
    asked = {f"{name}_asked": entry.get(name) or 0 for name in ("workers", "hosts")}
    return {name: entry[name] for name in PLAN_FIELDS} | axes | asked


def _readable(record: Record) -> Record:
    if record["kind"] in ("window", "trace"):
        return {**record, "histograms": Histograms(record["histograms"])}
    if record["kind"] == "health":
        return {**record, "histograms": Histograms({"lag": record["lag"]} if record.get("lag") else {})}
    return record
