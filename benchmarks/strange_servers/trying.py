"""One stranger, asked as a user would: `swarm probe`, its vectors, and a short study."""

from __future__ import annotations

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.drive import LOCUST
from benchmarks.strange_servers.described import Stranger, target_of
from benchmarks.strange_servers.golden import golden, least_cosine
from swarm.targets import probe
from swarm.targets.discover import described, own_endpoints
from swarm.targets.golden import fetched
from tests.locustfiles.console import Console, few_pictures
from users.inputs.images import load_images

LEVELS, SECONDS, WARM_UP_S = (1, 8), 10, 3
LEAST_COSINE, MOST_LINES = 0.999, 15
PROBE_S, STUDY_S, REQUEST_S = 60.0, 180.0, 30.0
FINE = (0, 3)
"""Exit codes of a study that nothing failed in; 3 where the machine cannot vouch for its figures."""


@dataclass(frozen=True)
class Outcome:
    """What came of one. `lines`: of its file, 0 for a URL. `probe`, `study`: exit codes.

    `requests`: measured, by number of users. `failures`: among them. `cosine`: the least with a right vector.
    """

    lines: int
    probe: int
    study: int | None = None
    requests: tuple[tuple[int, int], ...] = ()
    failures: int = 0
    cosine: float | None = None


def faults(found: Outcome) -> list[str]:
    """What is not as it should be, in words; nothing where all is."""
    if found.probe:
        return [f"`swarm probe` ended with exit code {found.probe}"]
    asked = {users for users, requests in found.requests if requests}
    said = {
        f"the study ended with exit code {found.study}": found.study not in FINE,
        f"{found.failures} requests failed": found.failures > 0,
        f"measured at {sorted(asked)} users, not at {list(LEVELS)}": asked != set(LEVELS),
        f"a cosine below {LEAST_COSINE}": not (found.cosine is not None and found.cosine >= LEAST_COSINE),
        f"its file has more than {MOST_LINES} lines": found.lines > MOST_LINES,
    }
    return [words for words, whether in said.items() if whether]


def tried(
    stranger: Stranger, addresses: tuple[str, str], onnx: Path, folder: Path, show: bool = False
) -> Outcome:
    """Ask one at its addresses, HTTP and gRPC; what goes wrong is printed. `folder` is empty, and its own."""
    target, lines = target_of(stranger, *addresses, folder)
    pictures = few_pictures()
    options = (*stranger.options, *pictures)
    command = (sys.executable, "-m", "swarm", "probe", target, *options)
    console = Console(command, folder, "probe")
    code = console.wait(PROBE_S)
    if show or code:
        print(console.text, flush=True)
    if code:
        return Outcome(lines, code)
    right = golden(stranger.right, onnx, sorted(Path(pictures[1]).iterdir()))
    rows = vectors(target, options)
    study = studied(f"{stranger.name}={target}", options, right, folder)
    ended = study.wait(STUDY_S)
    cells = cells_of(study)
    if ended not in FINE or not cells:
        print(study.text, flush=True)
    return Outcome(
        lines,
        code,
        ended,
        tuple(sorted((int(row["level"]), int(row["requests"])) for row in cells)),
        sum(int(row["failures"]) for row in cells),
        least_cosine(rows, right),
    )


def cells_of(study: Console) -> list[dict[str, str]]:
    """The rows of its cells.csv; none where it has written no results."""
    try:
        return study.cells()
    except (OSError, ValueError):
        return []


def vectors(target: str, options: Sequence[str]) -> NDArray[np.float32]:
    """What its answers are read as, a row a picture, as a study reads those that it holds others against."""
    parsed = probe.parser().parse_args([target, *options])
    chosen = probe.options_of(parsed, f"{probe.NAME}={target}")
    (endpoint,) = described(own_endpoints(chosen), chosen)
    return fetched(endpoint, load_images(chosen.images, chosen.texts, chosen.pool_bytes), REQUEST_S, print)


def studied(endpoint: str, options: Sequence[str], right: NDArray[np.float32], folder: Path) -> Console:
    """A study that holds every eighth answer against the right vectors; it writes to `folder`/results."""
    file, results = folder / "golden.npz", folder / "results"
    results.mkdir()
    np.savez(file, golden=right)
    levels = ",".join(map(str, LEVELS))
    amounts = ("--levels", levels, "--batches", "1", "--seconds", str(SECONDS), "--warm-up", str(WARM_UP_S))
    checks = ("--golden", str(file), "--min-cosine", str(LEAST_COSINE))
    command = (LOCUST, "-f", "locustfiles/study.py", "--headless", "--endpoint", endpoint)
    return Console((*command, *amounts, *checks, "--results-dir", str(results), *options), results)
