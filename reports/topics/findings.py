"""What a study found, in a few sentences computed from its numbers and hedged by their size."""

from collections import Counter
from collections.abc import Iterator

from reports.format import digits, plural
from reports.page.disclosures import disclosures
from reports.stats.figures import images_per_s, protocol_pairs
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.repeats import COMPARABLE_RUNS, ENOUGH_RUNS, Runs, scarcity, typical
from reports.study.study import Study
from reports.summary.summary import Summary, Way
from reports.topics.autoscaling.tables import autoscaling_finding
from reports.topics.contention.tables import verdict_said
from reports.topics.contention.verdict import verdicts
from reports.topics.load.open_load import open_finding
from reports.topics.load.queue_delay import delay_finding
from reports.topics.load.rate_search import rate_finding
from reports.topics.payloads.payloads import payloads_finding
from reports.topics.payloads.serialisation import serialisation_finding
from reports.topics.servers.backends import backends_finding

ENOUGH_RESULTS = 200
UNKNOWN = "inconclusive"


def findings(study: Study) -> tuple[str, ...]:
    """A few: what was fastest or proven, gRPC against HTTP, payloads, JSON, queue delays, what to doubt.

    One saying that nothing can be said where no request succeeded.
    """
    good = [run for run in study.started if run.succeeded]
    if not good:
        return ("No run left a successful request, so nothing can be said about speed.",)
    proven = " ".join(map(verdict_said, verdicts(study)))
    rated = rate_finding(study) or open_finding(study) or autoscaling_finding(study)
    fastest = _fastest(study, [run for run in study.started if not run.is_floor])
    speed = " ".join(said for said in (rated, fastest) if said)
    protocols = _protocols(study, [run for run in good if not run.is_floor]) or backends_finding(study)
    said = [proven, speed] if proven else [speed, protocols]
    said += [payloads_finding(study), serialisation_finding(study), delay_finding(study), against(study)]
    return tuple(sentence for sentence in said if sentence)


def against(study: Study) -> str:
    """What most often stood in the way, how many runs are disqualified, and what is no real thing."""
    runs = [run for run in study.started if not run.is_floor]
    doubts = Counter(code for run in runs for code in {doubt.code for doubt in run.caveats if doubt.tainted})
    spoilt = sum(run.tainted for run in runs)
    said = [
        _held_back(runs),
        f"Disqualified: {spoilt} of {plural(len(runs), 'run')} ({_counted(doubts)})." if spoilt else "",
        *disclosures(study, (run.endpoint for run in study.started)),
    ]
    return " ".join(text for text in said if text)


def _held_back(runs: Runs) -> str:
    """Each limit with how many runs have it; empty where none is known of any."""
    limits = Counter(run.limit.code for run in runs if run.limit)
    unknown = limits.pop(UNKNOWN, 0)
    if not limits:
        return ""
    others = f", not known {unknown}" if unknown else ""
    return f"What held back {plural(limits.total() + unknown, 'run')}: {_counted(limits)}{others}."


def _counted(codes: Counter[str]) -> str:
    """server-compute 14, client-cpu 2."""
    ranked = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{code} {count}" for code, count in ranked)


def _fastest(study: Study, runs: Runs) -> str:
    """The sentence on closed load; empty without any: a rate that was asked for is nobody's speed."""
    closed = [run for run in runs if run.load == "closed"]
    clean = [run for run in closed if not run.tainted]
    if not closed:
        return ""
    if not clean:
        return "No cell with closed load is free of disqualifying caveats, so none is called the fastest."
    serial = _best(study, "with one user", [run for run in clean if run.serial])
    concurrent = _best(study, "with more users", [run for run in clean if not run.serial])
    seen = "; ".join(part for part in (serial, concurrent) if part)
    if _fewest(clean) < COMPARABLE_RUNS:
        return f"Highest images per second seen, which is no ranking: {seen} ({hedge(clean)})."
    return f"Most images per second: {seen} ({hedge(clean)})."


def _best(study: Study, where: str, runs: Runs) -> str:
    """The fastest cell of some runs that nothing disqualifies, and those that repeats do not tell from it."""
    cells = _by_cell(runs)
    rates = {cell: typical(repeats, images_per_s) or 0.0 for cell, repeats in cells.items()}
    if not rates:
        return ""
    cell, *others = sorted(rates, key=lambda name: -rates[name])
    alike = [_named(study, cells[other][0]) for other in others if _alike(cells[cell], cells[other])]
    more = f" and {len(alike) - 1} more" if alike[1:] else ""
    apart = f", not told apart from {alike[0]}{more}" if alike else ""
    return f"{where} {_named(study, cells[cell][0], digits(rates[cell]))}{apart}"


def _named(study: Study, run: Summary, rate: str = "") -> str:
    """onnx-http, 41.9 at batch 1 and 16 users."""
    users = "" if run.serial else f" and {run.level:g} users"
    return f"{study.named(run.way)}{f', {rate}' if rate else ''} at batch {run.batch}{users}"


def _alike(best: Runs, other: Runs) -> bool:
    """Whether both have repeats, and an interval of their ratio that holds 1."""
    sides = [[rate for run in runs if (rate := images_per_s(run))] for runs in (best, other)]
    if not all(sides):
        return False
    found = log_ratio(*sides)
    return found.low is not None and not found.significant


def _by_cell(runs: Runs) -> dict[str, Runs]:
    return {cell: [run for run in runs if run.cell == cell] for cell in dict.fromkeys(r.cell for r in runs)}


def _fewest(runs: Runs) -> int:
    return min(len(repeats) for repeats in _by_cell(runs).values())


def hedge(clean: Runs) -> str:
    """How far the numbers of some untainted runs carry: repeats and the smallest sample."""
    fewest, results = _fewest(clean), min(run.succeeded for run in clean)
    size = f"as few as {plural(fewest, 'run')} and {plural(results, 'result')} per cell"
    if fewest < COMPARABLE_RUNS:
        return f"{size}; --repeats 5 would tell"
    few = fewest < ENOUGH_RUNS or results < ENOUGH_RESULTS
    return f"{size}: an indication, not a ranking" if few else size


def _protocols(study: Study, runs: Runs) -> str:
    """Each batch's ratio by itself: a range over batches would read as an interval of doubt."""
    clean = [run for run in runs if run.serial and not run.tainted]
    said, counts = [], []
    for backend, (http, grpc) in protocol_pairs(study, clean).items():
        compared = list(_compared(clean, http, grpc))
        ratios = ", ".join(f"{found.times} at batch {batch}" for batch, found in compared)
        said += [f"{backend} {ratios}"] if compared else []
        counts += [found.runs for _, found in compared]
    if not said:
        return ""
    grain = scarcity(counts)
    return f"gRPC over HTTP, images per second with one user: {'; '.join([*said, grain] if grain else said)}."


def _compared(clean: Runs, http: Way, grpc: Way) -> Iterator[tuple[int, LogRatio]]:
    """Batch and ratio for each batch that both were sent."""
    for batch in sorted({run.batch for run in clean}):
        over, under = (
            [run.images_per_s for run in clean if run.way == way and run.batch == batch and run.images_per_s]
            for way in (grpc, http)
        )
        if over and under:
            yield batch, log_ratio(over, under)
