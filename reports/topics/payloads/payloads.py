"""Heat maps of other payloads over float32 tensors, and of gRPC over HTTP."""

from reports.page.ratio_map import (
    LESS,
    METHOD,
    MORE,
    SHADED,
    TOLD,
    Pair,
    RatioMap,
    closed_runs,
    compared,
    ratio_map,
)
from reports.page.table import Table
from reports.stats.figures import protocol_pairs
from reports.stats.repeats import scarcity
from reports.study.study import Study
from reports.summary.summary import Summary, Way

TENSOR, GATEWAY = "fp32", "gateway"
BEHIND = "onnx"
"""The backend that a gateway asks."""
PAYLOADS = RatioMap(
    "Other payloads over float32 tensors, with the interval",
    f"The same model by the same protocol. {METHOD} {MORE}: the other payload is faster, {LESS}: the tensor "
    f"is faster, {TOLD} {SHADED}",
    "payload",
)
PROTOCOLS = RatioMap(
    "gRPC over HTTP, with its interval",
    f"{METHOD} {MORE}: gRPC is faster, {LESS}: HTTP is faster, {TOLD} {SHADED}",
    "backend",
)


def payloads_map(study: Study) -> Table:
    """One row for each payload beside a tensor's, and number of users, one column for each batch."""
    return ratio_map(study, PAYLOADS, payload_pairs(study))


def payload_pairs(study: Study) -> dict[str, Pair]:
    """`onnx-jpeg-grpc / onnx-grpc` and so on: under each the tensor's way by the same protocol."""
    runs = closed_runs(study)
    tensors = {_asked(run): run.way for run in runs if run.payload == TENSOR}
    others = {run.way: tensors.get(_asked(run)) for run in runs if run.payload != TENSOR}
    return {
        f"{study.named(way)} / {study.named(under)}": (under, way)
        for way in study.ways
        if (under := others.get(way)) is not None
    }


def payloads_finding(study: Study) -> str:
    """What each payload is worth at batch 1 with the most users that both had; empty without any."""
    said, counts = [], []
    for name, pair in payload_pairs(study).items():
        runs = [run for run in closed_runs(study) if run.way in pair and run.batch == 1 and not run.tainted]
        levels = [{run.level for run in runs if run.way == way} for way in pair]
        if shared := levels[0] & levels[1]:
            found = compared([run for run in runs if run.level == max(shared)], pair)
            users = "one user" if max(shared) == 1 else f"{max(shared):g} users"
            said += [f"{name} {found.times} with {users}"] if found else []
            counts += [found.runs] if found else []
    if not said:
        return ""
    grain = scarcity(counts)
    return f"Images per second at batch 1 by payload: {'; '.join([*said, grain] if grain else said)}."


def _asked(run: Summary) -> tuple[str, str, Way]:
    """What two payloads must have in common to be compared."""
    backend = BEHIND if run.backend == GATEWAY else run.backend
    return backend, run.protocol, Way("", run.variant)


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users in closed load, one column for each batch."""
    return ratio_map(study, PROTOCOLS, protocol_pairs(study, closed_runs(study)))
