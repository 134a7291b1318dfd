"""Is a planted slow-down recovered, and its absence told? Two emulated models of one tritonserver at once.

python -m benchmarks.interference

Models that sleep cost the CPU nothing, so that they slow each other down by what is planted alone: one place
in Triton's rate limiter (its docs/user_guide/rate_limiter.md), which each execution of either takes. With one
user each, executions then alternate: alone a turn takes a sleep and the user's think time, together both
sleeps. The think time is there because the limiter lets the model go first that has executed less so far, if
both wait; so one whose user asks at once may go twice.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.bounds import Bounds
from benchmarks.drive import LOCUST
from benchmarks.tritonserver import TritonAddresses, tritonserver
from reports.study.study import load_study
from reports.topics.together.interference import NONE, SLOWED, Interference, effects
from server.embedded.options import profile_of
from server.triton.repository import make_repository
from tests.locustfiles.console import Console

SLEEPS_MS = {"fast": 40.0, "slow": 120.0}
THINK_MS = 10.0
SHARED_PLACE = 'rate_limiter { resources [ { name: "place", global: true, count: 1 } ] }'
SECONDS, REPEATS, STUDY_S = 8, 5, 400
NEAR = 0.05
"""How far from the planted ratio the estimate may be: an execution takes somewhat longer than its sleep."""


def main() -> int:
    """Both set-ups; the exit code says whether each slow-down was found for what it is."""
    bounds = Bounds(f"Two models at once, one user each, {REPEATS} repeats of {SECONDS} s")
    whole_ms = sum(SLEEPS_MS.values())
    planted = {name: whole_ms / (ms + THINK_MS) for name, ms in SLEEPS_MS.items()}
    judge(bounds, "one place for both", SHARED_PLACE, planted)
    judge(bounds, "each its own instance", "", dict.fromkeys(SLEEPS_MS, 1.0))
    return bounds.exit_code()


def judge(bounds: Bounds, title: str, limiter: str, planted: dict[str, float]) -> None:
    """What the report says of each model beside what was planted."""
    found = {one.part[0].endpoint: one for one in measured(limiter)}
    for name, truth in planted.items():
        one, cell = found.get(name), f"{title}: {name}"
        if one is None or one.slower is None or one.slower.low is None or one.slower.high is None:
            bounds.unread(cell)
            continue
        low, high = one.slower.low, one.slower.high
        bounds.between(f"{cell}: times slower", one.slower.ratio, truth * (1 - NEAR), truth * (1 + NEAR))
        bounds.ranged(f"95 % CI {one.slower.interval}")
        bounds.exactly(
            "  what was planted is in it, to 5 %", int(low * (1 - NEAR) <= truth <= high * (1 + NEAR)), 1
        )
        bounds.exactly("  the verdict is right", int(one.verdict == (SLOWED if truth > 1 else NONE)), 1)


def measured(limiter: str) -> list[Interference]:
    """What one study of both models found."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "server").mkdir()
        repository = partial(lay_out, folder / "models", limiter)
        options = ("--rate-limit=execution_count",)
        with tritonserver(folder / "server", repository, options=options) as addresses:
            return effects(load_study(study(folder, addresses)))


def study(folder: Path, addresses: TritonAddresses) -> Path:
    """One headless study of both models, each alone and both at once; its folder."""
    endpoints = [f"--endpoint={name}=triton+http://{addresses.http}/{name}" for name in SLEEPS_MS]
    load = (f"--together={'+'.join(f'{name}@c1' for name in SLEEPS_MS)}", f"--think={THINK_MS / 1000}")
    amounts = (f"--seconds={SECONDS}", f"--repeats={REPEATS}", f"--results-dir={folder / 'results'}")
    command = (LOCUST, "-f", "locustfiles/study.py", "--headless", *endpoints, *load, *amounts)
    with Console(command, folder) as console:
        console.wait(STUDY_S)
        (made,) = (folder / "results").iterdir()
        return made


def lay_out(folder: Path, limiter: str) -> Path:
    """A repository of one emulated model for each sleep, with one instance; `limiter` is what each takes."""
    for name, sleep_ms in SLEEPS_MS.items():
        ours = make_repository("emulated", 0, 1, profile_of(f"{sleep_ms:g}+0").parameters())
        shutil.copytree(ours / "emulated", folder / name)
        config = folder / name / "config.pbtxt"
        text = config.read_text().replace('name: "emulated"', f'name: "{name}"', 1)
        config.write_text(text.replace("count: 1 }", f"count: 1 {limiter} }}", 1))
    return folder


if __name__ == "__main__":
    sys.exit(main())
