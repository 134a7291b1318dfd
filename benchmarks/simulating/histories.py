"""Histories: the same study many times, on machines that have good and bad days, with changes planted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.simulating.truths import Floats, Random
from reports.cells_csv.columns import COLUMNS, csv_text
from reports.history.changes import Course, courses
from reports.history.reading import CELLS, TOLD

RATE = "images_per_s"
TAILS = {"latency_p50_ms": (1.0, 0.01), "latency_p95_ms": (1.5, 0.02), "latency_p99_ms": (2.0, 0.03)}
"""Of each latency: its noise between runs as times that of the rate, and its own between studies."""
MEASURES = (RATE, *TAILS)
FIRST = datetime(2026, 1, 1, 6, tzinfo=UTC)
EVERY = timedelta(days=1)
Slower = Callable[[Floats], Floats]
"""By how much requests take longer, as a share, at studies by their number."""


@dataclass(frozen=True)
class Times:
    """So many studies of so many cells in so many repeats, and how they vary: standard deviations of logs.

    `day` is what all cells of a study share, `cell` what the runs of one cell in a study do, `run` its
    repeats' own. The first two are alike from study to study by `alike`, as AR(1). A cell's own is normal, or
    of another `shape`; `wilder` is as many times all noise of the second half of studies.
    """

    studies: int = 200
    cells: int = 20
    repeats: int = 3
    day: float = 0.02
    cell: float = 0.02
    run: float = 0.03
    alike: float = 0.0
    shape: str = "normal"
    wilder: float = 1.0

    def draw(self, random: Random, slower: Mapping[int, Slower]) -> dict[str, Floats]:
        """The logs of each measure, studies × cells × repeats; some cells by their number are slower."""
        slow = self._varying(random, 1) * self.day + self._varying(random, self.cells, self.shape) * self.cell
        for cell, of in slower.items():
            slow[:, cell] += np.log1p(of(np.arange(float(self.studies))))
        shape = (self.studies, self.cells, self.repeats)
        found = {RATE: np.log(100) - slow[..., None] + self.run * random.standard_normal(shape)}
        for name, (times, own) in TAILS.items():
            mine = slow + own * self._varying(random, self.cells)
            found[name] = (
                np.log(20 * times) + mine[..., None] + times * self.run * random.standard_normal(shape)
            )
        return found

    def _varying(self, random: Random, count: int, shape: str = "normal") -> Floats:
        """Studies × count, each column of variance 1, but for what is wilder."""
        size = (self.studies, count)
        found: Floats = random.standard_normal(size)
        if shape == "long tails":
            found = random.standard_t(3, size) / np.sqrt(3)
        elif shape == "spikes":
            found = random.standard_exponential(size) - 1
        found[self.studies // 2 :] *= self.wilder
        for at in range(1, self.studies):
            found[at] = self.alike * found[at - 1] + np.sqrt(1 - self.alike**2) * found[at]
        return found


def told(logs: Mapping[str, Floats]) -> list[list[Course]]:
    """The course of each cell by measures, as `inferswarm history` tells it."""
    means = [measure.mean(axis=2) for measure in logs.values()]
    return courses([list(of.T) for of in means])


def write_history(
    folder: Path, logs: Mapping[str, Floats], facts: Callable[[int], Mapping[str, object]]
) -> None:
    """The files of each study below a folder; `facts` are what its fingerprint has besides a cpu."""
    for at, of in enumerate(zip(*logs.values(), strict=True)):
        began = FIRST + at * EVERY
        place = folder / f"nightly-{began:%Y%m%dT%H%M%SZ}"
        place.mkdir(parents=True)
        columns = dict(zip(logs, np.exp(np.array(of)), strict=True))
        (place / CELLS).write_text(cells_text(columns), encoding="utf-8")
        (place / TOLD).write_text(study_text(began, facts(at), columns[RATE].size), encoding="utf-8")


def cells_text(columns: Mapping[str, Floats]) -> str:
    """cells.csv of one study; each column is cells × repeats."""
    cells, repeats = columns[RATE].shape
    return csv_text(
        COLUMNS,
        (
            [
                {
                    **_cell(cell, repeat),
                    **{name: float(of[cell, repeat]) for name, of in columns.items()},
                }.get(column)
                for column in COLUMNS
            ]
            for repeat in range(repeats)
            for cell in range(cells)
        ),
    )


def _cell(cell: int, repeat: int) -> dict[str, object]:
    endpoint = ("onnx-grpc", "onnx-http")[cell % 2]
    batch = 1 + cell // 2
    return {
        **{"study": "nightly", "cell": f"{endpoint}/b{batch}/c8", "repeat": repeat + 1, "endpoint": endpoint},
        **{"backend": "onnx", "protocol": endpoint[5:], "payload": "fp32", "batch": batch, "load": "closed"},
        **{"level": 8.0, "workers": 2, "hosts": 1, "requests": 20_000, "failures": 0, "measure_s": 20.0},
        **{"latency_mean_ms": 21.0, "server_ms": 18.0, "worker_cpu_pct": 40.0, "caveats": "", "stand_in": ""},
    }


def study_text(began: datetime, facts: Mapping[str, object], runs: int) -> str:
    """study.json of one study, of the size that so many runs have."""
    about = {"url": "gpu-host:8011", "model": "openclip_vit_b32", "weights": "laion2b"}
    head: dict[str, object] = {
        **{"study": "nightly", "title": "Every night", "size": "full", "started_utc": began.isoformat()},
        "plan": [],
        "options": {"seconds": 20.0, "repeats": 3, "channels": "per-user", "client": "prepared"},
        "fingerprint": {"cpu": "Example CPU", "cores": 16, "gpus": ["Example GPU"], **facts},
        "images": {"count": 64, "sha256": "ab12"},
        "endpoints": {"onnx-grpc": about, "onnx-http": about},
        **{
            "links": [],
            "hosts": [],
            "status": "complete",
            "cold": [],
            "runs": [{"text": "x" * 4_000}] * runs,
        },
    }
    return json.dumps(head, indent=1) + "\n"
