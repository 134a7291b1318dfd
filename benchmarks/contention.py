"""Is the published gap of HTTP and gRPC met over an emulated path and named, and is it absent without one?

Our own wire and grpcio must agree on one channel and on own channels: then it is no library's gap.

python -m benchmarks.contention [wan-a100 | wan-rtx4090 | lan]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bounds import Bounds
from reports.format import with_interval
from tests.locustfiles.console import Console

LOCUSTFILE = "locustfiles/step7_contention.py"
HTTP_OFF, GRPC_OFF, RECOVERED = 0.15, 0.25, 0.95
STUDY_S = 1500
CONNECTIONS = {"R0": 16, "R1": 1, "R2": 1, "R4": 16, "R5": 4, "R6": 4, "R8": 1, "R9": 16, "R3": 1}
"""Arms of docs/contention.md, and the TCP connections that the kernel must have seen in each."""
LESS, MORE = 0.9, 1.1
"""Of our own wire's images/s: grpcio's agree where their 95 % interval holds 1, or the ratio is between."""
MEASURED = (0, 3)
"""Exit codes of a study with a verdict: with 3 a run is invalidated, and its other repeats stand for it."""


@dataclass(frozen=True)
class Case:
    """A link, the server behind it, and what was published of that pair in images a second, if anything."""

    link: str
    emulate: str
    cause: str
    http: float | None = None
    grpc: float | None = None
    options: tuple[str, ...] = ()


CASES = (
    Case("wan-a100", "a100", "connections", 43.6, 7.5),
    Case("wan-rtx4090", "rtx4090", "connections", 32.2, 4.0),
    Case("lan", "a100", "none", options=("--seconds", "5")),
)


def main(argv: list[str]) -> int:
    """Run the studies named, or all; the exit code says whether every figure is within its bound."""
    bounds = Bounds("16 users at batch 1 on an emulated GPU behind a real Triton, medians of 3 runs an arm")
    known = [case.link for case in CASES]
    if unknown := [name for name in argv if name not in known]:
        print(f"{unknown[0]}: give none, or some of {', '.join(known)}", file=sys.stderr)
        return 2
    for case in CASES:
        if not argv or case.link in argv:
            judge(bounds, case, verdict_of(case))
    return bounds.exit_code()


def judge(bounds: Bounds, case: Case, found: Mapping[str, Any] | None) -> None:
    """One study's arms and verdict by their bounds."""
    if found is None:
        bounds.unread(f"{case.link}: a verdict")
        return
    arms = {arm["arm"]: arm for arm in found["arms"]}
    if missing := sorted(CONNECTIONS.keys() - arms.keys()):
        bounds.unread(f"{case.link}: {', '.join(missing)}")
        return
    rate = {name: float(arm["images_per_s"] or 0) for name, arm in arms.items()}
    if silent := sorted(name for name, figure in rate.items() if not figure):
        bounds.unread(f"{case.link}: images/s of {', '.join(silent)}")
        return
    for name, arm in arms.items():
        bounds.beside(f"{case.link}: {name} {arm['words']}", rate[name], "images/s")
    if case.http and case.grpc:
        bounds.at_most(f"  HTTP, off from {case.http}", off(rate["R0"], case.http), HTTP_OFF)
        bounds.at_most(f"  gRPC on one channel, off from {case.grpc}", off(rate["R2"], case.grpc), GRPC_OFF)
        bounds.at_most("  HTTP over gRPC with own connections", rate["R0"] / rate["R4"], 1 / RECOVERED)
        judge_senders(bounds, found)
    for name, connections in CONNECTIONS.items():
        bounds.exactly(f"  TCP connections of {name}", arms[name]["tcp_connections"], connections)
    bounds.exactly(f"  verdict is {case.cause} (it is {found['cause']})", found["cause"] == case.cause, True)
    limits = " and ".join(arms[name]["limit"] or "none" for name in ("R0", "R2"))
    named = all(arms[name]["limit"] not in ("", "inconclusive") for name in ("R0", "R2"))
    bounds.exactly(f"  limits are named: {limits}", named, True)


def judge_senders(bounds: Bounds, found: Mapping[str, Any]) -> None:
    """Whether grpcio and our own wire agree: over a path, which carries less than either could send."""
    for pair in found["senders"]:
        bounds.verdict(f"  grpcio over own wire, {pair['channels']}", *agreement(pair))
    ruled_out = any(line["says"].get("client-library") == "against" for line in found["evidence"])
    bounds.exactly("  the library is ruled out", ruled_out, True)


def agreement(pair: Mapping[str, Any]) -> tuple[str, str, str]:
    """The ratio of both senders, what it should be, and whether it is."""
    low, high = pair["ratio_low"] or pair["ratio"], pair["ratio_high"] or pair["ratio"]
    agree = low <= 1 <= high or LESS <= pair["ratio"] <= MORE
    shown = with_interval(pair["ratio"], pair["ratio_low"], pair["ratio_high"])
    return shown, f"1, or {LESS}–{MORE}", "holds" if agree else "BROKEN"


def off(figure: float, published: float) -> float:
    """How far a figure is from a published one, as a share of that."""
    return abs(figure - published) / published


def verdict_of(case: Case) -> dict[str, Any] | None:
    """What the study says; None where it says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--link", case.link, "--emulate", case.emulate, "--results-dir", folder, *case.options)
        command = (sys.executable, "-m", "swarm", "run", "-f", LOCUSTFILE, *options)
        with Console(command, Path(folder)) as console:
            if console.wait(STUDY_S) not in MEASURED:
                print(console.text, file=sys.stderr)
                return None
            verdicts = json.loads((console.result() / "study.json").read_text())["contention"]
    return dict(verdicts[0]) if verdicts else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
