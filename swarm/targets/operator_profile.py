"""The operator profile of the embedded ONNX engine: made in a process of its own, before any load."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swarm.options.model import Options
from swarm.plan.matrix import Size, StudyDefinition

KIND = "operators"
MODEL = "onnx"
"""The embedded server whose file is profiled."""
CUDA = "CUDAExecutionProvider"
PATIENCE_S = 600.0
SHARE, LEAST_ITERATIONS = 3, 3
"""A third of the study's iterations: a batch of 32 takes seconds without a GPU."""


def wanted(study: StudyDefinition, options: Options, ready: Mapping[str, Any]) -> bool:
    """Whether a study asks for the profile, and runs on the embedded engine that it would be of."""
    return study.operators and options.embedded and MODEL in ready.get("endpoints", {})


def command_of(options: Options, size: Size, ready: Mapping[str, Any]) -> list[str]:
    """What profiles the file that the embedded server runs, where it runs it, at the study's own batches."""
    made = [sys.executable, "-m", "server", "profile", "--json"]
    made += ["--batches", ",".join(map(str, size.batches))]
    made += ["--iterations", str(max(LEAST_ITERATIONS, size.iterations // SHARE))]
    made += ["--providers", "cuda"] if ready["endpoints"][MODEL].get("provider") == CUDA else []
    return made + (["--pretrained", options.pretrained] if options.pretrained else [])


def profile(command: Sequence[str], patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """The ledger's record of it; of one that failed it has the `error`, a sentence without a full stop."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As the servers: Ctrl-C in the terminal is for the study, which ends this one itself.
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        told, complaint = process.communicate(timeout=patience_s)
        return _record(process.returncode, told, complaint)
    except subprocess.TimeoutExpired:
        return {"kind": KIND, "error": f"it was not done after {patience_s:g} s"}
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _record(code: int, told: str, complaint: str) -> dict[str, Any]:
    if code:
        last = (complaint.strip().splitlines() or ["without a word"])[-1]
        return {"kind": KIND, "error": f"python -m server profile ended with {code}: {last.rstrip('.')}"}
    try:
        found = json.loads(told)
    except ValueError:
        return {"kind": KIND, "error": "python -m server profile printed no JSON"}
    return {**{name: value for name, value in found.items() if name != "event"}, "kind": KIND}
