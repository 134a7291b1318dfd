"""All studies below some folders, on this machine or far away: what study.json and cells.csv tell of each."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import fsspec

from reports.cells_csv.rows import SideError, in_order, rows_of
from reports.cells_csv.sides import OF_ENDPOINT, STUDY, Side, flat, stated
from reports.ledger.ledger import DAMAGED, FILE_NAME, LONGEST, LedgerError, check_header

TOLD, CELLS = "study.json", "cells.csv"
LEFT = (TOLD, CELLS, FILE_NAME)
"""By any of these a folder is known as that of a study."""
AT_ONCE = 32
"""Studies whose files are fetched together: a store far away gives many in the time of one."""
OF_RUNS = b',\n "cold": '
"""Where study.json, as it is written, begins to tell of runs: most of the file, of which nothing is asked."""
NO_FACTS = frozenset(("url", "started_ns", "loaded_ns", "guesses", *OF_ENDPOINT))
"""Of an endpoint: where it was, what differs each time, and what `stated` has."""


class HistoryError(LedgerError):
    """A history that cannot be told; the message is one sentence naming what is to blame and the fix."""


@dataclass(frozen=True)
class PastStudy:
    """One study that was completed: its name, when it began, and what it left."""

    name: str
    began: datetime
    side: Side
    _known: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def place(self) -> str:
        """Its folder, as a path or a URL."""
        return self.side.place

    @property
    def utc(self) -> str:
        """When it began, as a ledger says it, to the second."""
        return f"{self.began:%Y-%m-%dT%H:%M:%SZ}"

    def facts(self, endpoint: str) -> Mapping[str, str]:
        """All that it states of what one endpoint's figures were measured on and with, by dotted names."""
        if endpoint not in self._known:
            told = stated(self.side, [endpoint])
            about = (self.side.header.get("endpoints") or {}).get(endpoint) or {}
            more = {name: value for name, value in about.items() if name not in NO_FACTS}
            told |= self._counts | dict(flat(more, f"endpoints.{endpoint}."))
            self._known[endpoint] = {what: told[what] for what in told if what not in ("study", "source")}
        return self._known[endpoint]

    @cached_property
    def _counts(self) -> dict[str, str]:
        """How many workers and hosts made its load, where that was the same in all runs."""
        found = {name: {row.numbers.get(name) for row in self.side.rows} for name in ("workers", "hosts")}
        return {name: f"{counts.pop():g}" for name, counts in found.items() if len(counts - {None}) == 1}


def read_history(places: Sequence[str]) -> tuple[list[PastStudy], list[str]]:
    """The studies below the folders, the oldest first, and a sentence for each that is left out.

    HistoryError where a folder is not there, or its store cannot be asked.
    """
    studies: dict[tuple[str, datetime], PastStudy] = {}
    skipped: list[str] = []
    for place in places:
        for folder, files in _folders(place):
            found = _study(folder, files)
            if isinstance(found, str):
                skipped.append(found)
                continue
            same = studies.setdefault((found.name, found.began), found)
            if same is not found and same.place != found.place:
                skipped.append(f"{folder}: is the same study as {same.place}, and counted once.")
    return sorted(studies.values(), key=lambda study: (study.began, study.name)), skipped


def _folders(place: str) -> Iterator[tuple[str, dict[str, bytes | Exception]]]:
    """Each study's folder below a place, and the texts of LEFT that it has; the ledger's is not read."""
    try:
        store, path = fsspec.core.url_to_fs(place)
        if not store.exists(path):
            raise HistoryError(f"{place}: is not there: name a folder with results of studies.")
        by_folder: dict[str, list[str]] = {}
        for name in store.find(path):
            if name.rpartition("/")[2] in LEFT:
                by_folder.setdefault(name.rpartition("/")[0], []).append(name)
        folders = sorted(by_folder)
        for at in range(0, len(folders), AT_ONCE):
            some = folders[at : at + AT_ONCE]
            wanted = [name for folder in some for name in by_folder[folder] if not name.endswith(FILE_NAME)]
            texts = _texts(store, wanted)
            for folder in some:
                shown = f"{place.rstrip('/')}{folder[len(path.rstrip('/')) :]}" or "/"
                yield shown, {name.rpartition("/")[2]: texts.get(name, b"") for name in by_folder[folder]}
    except HistoryError:
        raise
    except ImportError as error:
        text = f"{place}: needs another package ({error}): install it, or copy the folder to this machine."
        raise HistoryError(text) from error
    except Exception as error:  # each store's driver raises its own
        text = f"{place}: cannot be read ({_said(error)}): check the address, and your access to it."
        raise HistoryError(text) from error


def _texts(store: Any, names: Sequence[str]) -> dict[str, bytes | Exception]:
    """What each file holds, or why it cannot be read: one that is not to be read leaves the others."""
    if store.async_impl:
        return dict(store.cat(names, on_error="return"))
    texts: dict[str, bytes | Exception] = {}
    for name in names:
        try:
            texts[name] = store.cat_file(name)
        except OSError as error:
            texts[name] = error
    return texts


def _study(folder: str, files: Mapping[str, bytes | Exception]) -> PastStudy | str:
    """What a study left, or in a sentence why it is left out."""
    texts = dict[str, bytes]()
    for name, text in files.items():
        if isinstance(text, Exception):
            return f"{folder}: {name} cannot be read ({_said(text)}): see to your access, or move it away."
        texts[name] = text
    lacking = [name for name in (TOLD, CELLS) if name not in files]
    if lacking and FILE_NAME in files:
        return f"{folder}: has no {lacking[0]}; if it is not running, make it: inferswarm report {folder}"
    if lacking:
        return f"{folder}: has no {lacking[0]}, and no ledger to make it from: run the study again."
    try:
        return _read(folder, texts)
    except (*DAMAGED, SideError, LedgerError, csv.Error) as error:
        return f"{folder}: is damaged ({_said(error)}): make its files again: inferswarm report {folder}"


def _read(folder: str, files: Mapping[str, bytes]) -> PastStudy | str:
    head, text = files[TOLD], files[CELLS].decode("utf-8-sig")
    at = head.rfind(OF_RUNS)
    told = json.loads(head[:at] + b"}" if at > 0 else head)
    check_header(told, folder)
    began = datetime.fromisoformat(told["started_utc"])
    if told.get("status") != "complete":
        return f"{folder}: is {told.get('status') or 'of unknown end'}: only complete studies are counted."
    side = Side(
        name=folder.rpartition("/")[2],
        kind=STUDY,
        place=folder,
        rows=in_order(rows_of(io.StringIO(text, newline=""), CELLS), told.get("endpoints") or ()),
        header={name: value for name, value in told.items() if name not in ("plan", "answers", "verdicts")},
        status=told["status"],
    )
    began = began.astimezone(UTC) if began.tzinfo else began.replace(tzinfo=UTC)
    return PastStudy(told["study"], began, side)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:LONGEST]
