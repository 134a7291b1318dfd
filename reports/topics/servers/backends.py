"""What a study of several backends found: which is ahead at each batch, and what their servers hold."""

from collections import Counter

from reports.format import digits
from reports.published_figures.backends import of_three_backends
from reports.stats.figures import images_per_s
from reports.stats.log_ratio import log_ratio
from reports.stats.repeats import COMPARABLE_RUNS, Runs, resting_on, typical
from reports.study.study import Study
from reports.topics.servers.memory import by_server, most_resident


def backends_finding(study: Study) -> str:
    """The most images/s with one user by batch, and each server's memory; empty for other studies."""
    if not of_three_backends(study):
        return ""
    return " ".join(said for said in (_ahead(study), _memory(study)) if said)


def _ahead(study: Study) -> str:
    runs = [run for run in study.started if run.serial and not run.is_floor and not run.tainted]
    batches = sorted({run.batch for run in runs})
    told = [said for batch in batches if (said := _best([run for run in runs if run.batch == batch], study))]
    alone = min(Counter(run.cell for run in runs).values(), default=0) < COMPARABLE_RUNS
    most = "Highest images per second seen, which is no ranking," if alone else "Most images per second"
    return f"{most} with one user: {'; '.join(told)}." if told else ""


def _best(runs: Runs, study: Study) -> str:
    """openvino-http 24.1 at batch 4; empty where fewer than two backends have a figure."""
    ways = {way: [run for run in runs if run.way == way] for way in study.ways}
    rates = {way: rate for way, of in ways.items() if (rate := typical(of, images_per_s))}
    if len(rates) < 2:
        return ""
    best = max(rates, key=lambda way: rates[way])
    alike = [study.named(way) for way in rates if way != best and _not_told_apart(ways[best], ways[way])]
    apart = f" (not told apart from {' and '.join(alike)})" if alike else ""
    return f"{study.named(best)} {digits(rates[best])} at batch {runs[0].batch}{apart}"


def _not_told_apart(best: Runs, other: Runs) -> bool:
    """Whether repeats leave open which is faster; False without any: that is said of all rates at once."""
    sides = [
        [rate for run in resting_on(of, images_per_s) if (rate := images_per_s(run))] for of in (best, other)
    ]
    found = log_ratio(*sides)
    return found.low is not None and not found.significant


def _memory(study: Study) -> str:
    held = {name: most_resident(runs) for name, runs in by_server(study).items()}
    told = [f"{name} {digits(most / 1e9)} GB" for name, most in sorted(held.items(), key=lambda it: it[1])]
    return f"Most resident memory read, with all a server's processes: {', '.join(told)}." if told else ""
