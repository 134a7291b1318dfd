"""From what the command line names to the sides of a comparison."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reports.cells_csv.columns import render_csv
from reports.cells_csv.side import CSV, LETTERS, PUBLISHED, STUDY, Side, SideError, in_order, rows_of
from reports.ledger.ledger import FILE_NAME, damage_refused
from reports.page.disclosures import FLOOR, OPENVINO, disclosures, stand_in
from reports.published_figures.figures import published_files
from reports.study.study import Study, load_study, notices
from reports.summary.summary import FLOOR_SUFFIX

EMULATED = "Emulated: no model computes behind this endpoint."
LEAST = 2


def load_sides(places: Sequence[str]) -> tuple[Side, ...]:
    """The sides in the order they were named; SideError, or LedgerError, where one cannot be used."""
    if len(places) < LEAST:
        raise SideError(
            "compare: takes two sides or more: name another directory, published study or CSV file."
        )
    if len(places) > len(LETTERS):
        raise SideError(f"compare: takes at most {len(LETTERS)} sides: leave some out.")
    sides = [load_side(place) for place in places]
    counts = Counter(side.name for side in sides)
    named = zip(LETTERS, sides, strict=False)
    return tuple(
        replace(side, letter=letter, name=f"{side.name} ({letter})" if counts[side.name] > 1 else side.name)
        for letter, side in named
    )


def load_side(place: str) -> Side:
    """One side, without letter: a directory with a ledger, a CSV file, or the name of a published study."""
    path = Path(place)
    if (path / FILE_NAME).is_file():
        with damage_refused(path / FILE_NAME):
            side = side_of_study(load_study(path), path)
    elif path.is_file():
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
    named = {name: text for name in study.endpoints if (text := stand_in(study, name))}
    said = [text for text in disclosures(study, study.endpoints) if text not in named.values()]
    return Side(
        letter="",
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
    stand_ins = {row.endpoint: text for row in rows if (text := _stand_in(row.endpoint))}
    whole = path.resolve()
    name = place if kind == PUBLISHED else f"{whole.parent.name}/{whole.name}"
    return Side(letter="", name=name, kind=kind, place=place, rows=rows, header={}, stand_ins=stand_ins)


def _stand_in(endpoint: str) -> str:
    """As reports.page.disclosures has it, where no header tells more."""
    if endpoint.endswith(FLOOR_SUFFIX) or endpoint.startswith("null-"):
        return FLOOR
    if endpoint.startswith("emulated-"):
        return EMULATED
    return OPENVINO if endpoint.startswith("openvino-") else ""
