"""What a study found, in at most three sentences computed from its numbers and hedged by their size."""

from collections.abc import Iterator, Sequence

from reports.format import digits, plural
from reports.grid import Runs, typical
from reports.naming import disclosures
from reports.seed_tables import images_per_s, protocol_pairs
from reports.study import Study

ENOUGH_RUNS, ENOUGH_RESULTS = 3, 200


def findings(study: Study) -> tuple[str, ...]:
    """The sentences; one saying that nothing can be said where no request succeeded."""
    good = [run for run in study.started if run.succeeded]
    if not good:
        return ("No run left a successful request, so nothing can be said about speed.",)
    said = [
        _fastest(good),
        _protocols(study, good),
        " ".join(disclosures(study, (run.endpoint for run in good))),
    ]
    return tuple(sentence for sentence in said if sentence)


def _fastest(runs: Runs) -> str:
    serial = _best("with one user", [run for run in runs if run.serial])
    concurrent = _best("with more users", [run for run in runs if run.load == "closed" and not run.serial])
    parts = [part for part in (serial, concurrent) if part]
    if not parts:
        return "No cell with closed load is free of disqualifying caveats, so none is called the fastest."
    return f"Most images per second: {'; '.join(parts)} ({hedge(runs)})."


def _best(where: str, runs: Runs) -> str:
    """The fastest endpoint among cells that nothing disqualifies."""
    cells = _by_cell([run for run in runs if not run.tainted])
    rates = {cell: typical(repeats, images_per_s) or 0.0 for cell, repeats in cells.items()}
    if not rates:
        return ""
    cell = max(rates, key=lambda name: rates[name])
    best = cells[cell][0]
    users = "" if best.serial else f" and {best.level:g} users"
    return f"{where} {best.endpoint}, {digits(rates[cell])} at batch {best.batch}{users}"


def _by_cell(runs: Runs) -> dict[str, Runs]:
    return {cell: [run for run in runs if run.cell == cell] for cell in dict.fromkeys(r.cell for r in runs)}


def hedge(runs: Runs) -> str:
    """How far the numbers carry: repeats and the smallest sample."""
    fewest = min(len(repeats) for repeats in _by_cell(runs).values())
    results = min(run.succeeded for run in runs)
    size = f"as few as {plural(fewest, 'run')} and {plural(results, 'result')} per cell"
    few = fewest < ENOUGH_RUNS or results < ENOUGH_RESULTS
    return f"{size}: an indication, not a ranking" if few else size


def _protocols(study: Study, runs: Runs) -> str:
    serial = [run for run in runs if run.serial and not run.tainted]
    parts = [
        f"{_range(ratios)} on {backend}"
        for backend, (http, grpc) in protocol_pairs(study, serial).items()
        if (ratios := list(_ratios(serial, http, grpc)))
    ]
    if not parts:
        return ""
    return f"gRPC over HTTP, images per second with one user: {', '.join(parts)}{_grain(serial)}."


def _grain(runs: Runs) -> str:
    """What so few repeats cannot tell."""
    few = any(len(repeats) < ENOUGH_RUNS for repeats in _by_cell(runs).values())
    return f"; with fewer than {ENOUGH_RUNS} runs per cell, small differences may be chance" if few else ""


def _ratios(serial: Runs, http: str, grpc: str) -> Iterator[float]:
    for batch in sorted({run.batch for run in serial}):
        over, under = (
            typical([run for run in serial if run.endpoint == name and run.batch == batch], images_per_s)
            for name in (grpc, http)
        )
        if over and under:
            yield over / under


def _range(ratios: Sequence[float]) -> str:
    low, high = digits(min(ratios)), digits(max(ratios))
    return low if low == high else f"{low} to {high}"
