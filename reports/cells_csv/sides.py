"""The sides of a comparison, each as rows of cells.csv: how one is read, and what it states of itself."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.cells_csv.columns import render_csv
from reports.cells_csv.rows import Row, SideError, in_order, published_files, rows_of
from reports.ledger.axes import of_trait
from reports.ledger.ledger import FILE_NAME, Record, damage_refused
from reports.page.disclosures import disclosures
from reports.stats.repeats import grouped
from reports.study.study import Study, load_study, notices

STUDY, PUBLISHED, CSV = "study", "published", "cells.csv"
BASE, CANDIDATE = "base", "candidate"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Where things were written, what judges them, and what never changes a number.
IDLE_OPTIONS = frozenset(
    (
        *("command", "results_dir", "size", "prometheus_port", "prometheus_host", "raw_results"),
        *("gate", "baseline", "repeat_until_decided", "kube_url"),
        *("tls_ca", "tls_client_cert", "tls_client_key", "tls_no_verify"),
    )
)
OF_ENDPOINT = ("model", "weights", "emulated", "embedded", "tls", "server_version")
OF_LINK = (
    *("name", "one_way_ms", "mbit_per_s", "loss_pct", "queue_bytes", "burst_bytes", "congestion_control"),
    "emulator",
)
OF_HOST = ("name", "kind", "workers", "cores", "system", "tcp_congestion_control")
MUST = (
    *("images.*", "endpoints.*.model", "endpoints.*.weights", "link", "link.*", "host", "host.*"),
    *("cpu", "cpu.*", "cores", "gpus", "system", "tcp_congestion_control"),
    *("options.trace", "options.load_profile", *(f"options.{name}" for name in of_trait("condition"))),
)
"""Of what a study states, by dotted names."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """What is compared: its rows, endpoint by endpoint, and what is known of where they come from.

    `role` is base, candidate, or candidate A where there are several. `name` is as readers see it, `place` as
    the command line takes it; `header` is empty without a ledger. `stand_ins` says by endpoint what stands in
    for something else, `said` what holds for all of it.
    """

    role: str = ""
    name: str
    kind: str
    place: str
    rows: tuple[Row, ...]
    header: Record
    status: str = ""
    notices: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    @cached_property
    def cells(self) -> Mapping[str, Sequence[Row]]:
        """The repeats of each cell, by its name."""
        return grouped(self.rows, lambda row: row.cell)

    @property
    def label(self) -> str:
        """Role and name, as sentences have it; a name that was told from another's holds the role."""
        return self.name if self.name.endswith(f"({self.role})") else f"{self.role} ({self.name})"

    @property
    def short(self) -> str:
        """The role as the heads of tables have it: base, candidate, or the letter of one of several."""
        return self.role.rpartition(" ")[2]

    @property
    def known(self) -> bool:
        """Whether it says what it ran on."""
        return bool(self.header)

    @property
    def studies(self) -> str:
        """The names of the studies that its rows are of."""
        return ", ".join(dict.fromkeys(row.study for row in self.rows))

    @property
    def sources(self) -> str:
        """The documents that its rows come from, without iterations and runs."""
        return "; ".join(dict.fromkeys(row.source.partition(":")[0] for row in self.rows if row.source))


def load_sides(places: Sequence[str]) -> tuple[Side, ...]:
    """The base, then candidates, as they were named; SideError or LedgerError where one cannot be used."""
    if len(places) < 2:
        raise SideError(
            "compare: takes a base and one candidate or more: "
            "name another directory, published study or CSV file."
        )
    if len(places) > len(LETTERS) + 1:
        raise SideError(f"compare: takes at most {len(LETTERS)} candidates: leave some out.")
    sides = [load_side(place) for place in places]
    counts = Counter(side.name for side in sides)
    return tuple(
        replace(side, role=role, name=f"{side.name} ({role})" if counts[side.name] > 1 else side.name)
        for role, side in zip(roles(len(sides)), sides, strict=True)
    )


def roles(count: int) -> list[str]:
    """What so many sides are called: base and candidate, or base, candidate A, candidate B and so on."""
    several = [f"{CANDIDATE} {letter}" for letter in LETTERS[: count - 1]]
    return [BASE, *(several if count > 2 else [CANDIDATE])]


def load_side(place: str) -> Side:
    """One side, without a role: a directory with a ledger, a CSV file, or the name of a published study."""
    path = Path(place)
    if os.path.isfile(path / FILE_NAME):
        with damage_refused(path / FILE_NAME):
            side = side_of_study(load_study(path), path)
    elif os.path.isfile(path):
        side = _of_file(path, CSV, place)
    elif place in published_files():
        side = _of_file(published_files()[place], PUBLISHED, place)
    else:
        raise SideError(
            f"{place}: is neither a directory with a {FILE_NAME}, a CSV file with the columns of cells.csv, "
            f"nor a published study: those are {', '.join(published_files())}."
        )
    if not side.rows:
        raise SideError(f"{place}: has no run that was begun: name a study that measured something.")
    return side


def side_of_study(study: Study, path: Path) -> Side:
    """The rows that its cells.csv has, so that ledger and file compare alike."""
    named = study.stand_ins
    said = [text for text in disclosures(study, study.endpoints) if text not in named.values()]
    return Side(
        name=path.resolve().name,
        kind=STUDY,
        place=str(path),
        rows=in_order(rows_of(io.StringIO(render_csv(study)), str(path)), study.endpoints),
        header=study.header,
        status=study.status,
        notices=tuple(notices(study)),
        stand_ins=named,
        said=tuple(said),
    )


def _of_file(path: Path, kind: str, place: str) -> Side:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = in_order(rows_of(lines, place))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SideError(
            f"{place}: cannot be read ({error}): name a CSV file with the columns of cells.csv."
        ) from error
    stand_ins = {row.endpoint: row.stand_in for row in rows if row.stand_in}
    whole = path.resolve()
    name = place if kind == PUBLISHED else f"{whole.parent.name}/{whole.name}"
    return Side(name=name, kind=kind, place=place, rows=rows, header={}, stand_ins=stand_ins)


def stated(side: Side, endpoints: Collection[str]) -> dict[str, str]:
    """All of it as texts; of endpoints only those named. Without a header it is studies and sources alone."""
    told = {"study": side.studies, "source": side.sources}
    if side.known:
        told |= dict(flat(_of_header(side.header, endpoints)))
    return {name: text for name, text in told.items() if text not in ("", "null")}


def _of_header(header: Mapping[str, Any], endpoints: Collection[str]) -> dict[str, Any]:
    options = header.get("options") or {}
    described = (one for one in (header.get("endpoints") or {}).items() if one[0] in endpoints)
    hosts = [{**host, **(host.get("facts") or {})} for host in header.get("hosts") or ()]
    return {
        "size": header["size"],
        "endpoints": {name: _some(about, OF_ENDPOINT) for name, about in described},
        "images": header.get("images") or {},
        **_listed("link", header.get("links") or (), OF_LINK),
        **_listed("host", hosts, OF_HOST),
        **{name: fact for name, fact in (header.get("fingerprint") or {}).items() if name != "targets"},
        "options": {name: value for name, value in options.items() if name not in IDLE_OPTIONS},
    }


def _listed(word: str, things: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Things that have names; a single one goes without, since the other side's may be called otherwise."""
    if len(things) == 1:
        return {word: _some(things[0], names)}
    each = {f"{word}.{thing.get('name')}": _some(thing, names[1:]) for thing in things}
    return {word: {"name": ", ".join(str(thing.get("name")) for thing in things) or "none"}, **each}


def _some(about: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: about[name] for name in names if name in about}


def conditions(side: Side, endpoint: str) -> dict[str, str]:
    """Those that a study states, as to one of its endpoints."""
    told = stated(side, [endpoint])
    return {what: text for what, text in told.items() if any(fnmatchcase(what, must) for must in MUST)}


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and texts, those of a list between commas; other values as JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield f"{prefix}{name}", ", ".join(value)
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)
