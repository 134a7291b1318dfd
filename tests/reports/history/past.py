"""Many studies out of one: what the real writer left of it, with other figures, dates and facts."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from reports.__main__ import main
from tests.reports.builder import Book
from tests.reports.example import lognormal

FIRST = datetime(2026, 5, 1, 6, tzinfo=UTC)
SCALED = {"images_per_s": -1, "latency_p50_ms": 1, "latency_p95_ms": 1}
SLOW = "onnx-grpc/b1/c8"
NOISE = 0.02
Slower = Callable[[int, str], float]
"""By how many times a study's cell is slower, by the study's number and the cell."""


def template(folder: Path) -> Path:
    """One study of two endpoints in three repeats, with the files that `inferswarm report` makes."""
    book = Book()
    for name in ("onnx-http", "onnx-grpc"):
        book.endpoint(name, "gpu-host:8011")
        for repeat in (1, 2, 3):
            values = {"w0": lognormal(repeat, 20.0, 300), "w1": lognormal(7 + repeat, 20.0, 300)}
            book.add(name, 1, 8, values, repeat=repeat)
    book.footer()
    assert main(["show", str(book.write(folder)), "--quiet"]) == 0
    return folder


def past(
    of: Path,
    folder: Path,
    count: int,
    slower: Slower = lambda at, cell: 1.0,
    facts: Callable[[int], Mapping[str, Any]] = lambda at: {},
    seed: int = 0,
) -> Path:
    """So many copies below a folder, a day apart; `facts` are what each fingerprint has of its own."""
    random = np.random.default_rng(seed)
    for at in range(count):
        began = FIRST + timedelta(days=at)
        place = folder / f"step7-{began:%Y%m%dT%H%M%SZ}"
        place.mkdir(parents=True)
        (place / "cells.csv").write_text(scaled((of / "cells.csv").read_text(), at, slower, random))
        told = json.loads((of / "study.json").read_text())
        told |= {"started_utc": began.isoformat(), "fingerprint": told["fingerprint"] | facts(at)}
        (place / "study.json").write_text(json.dumps(told, indent=1))
    return folder


def scaled(text: str, at: int, slower: Slower, random: np.random.Generator) -> str:
    """A cells.csv whose cells are slower, and vary from study to study as from run to run."""
    rows = list(csv.DictReader(io.StringIO(text)))
    for cell in {row["cell"]: None for row in rows}:
        day = random.normal(0, NOISE)
        for row in (row for row in rows if row["cell"] == cell):
            times = slower(at, cell) * float(np.exp(day + random.normal(0, NOISE)))
            row |= {name: str(float(row[name]) * times**power) for name, power in SCALED.items()}
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def copied(of: Path, folder: Path) -> Path:
    """The same below another folder, to be damaged."""
    shutil.copytree(of, folder)
    return folder
