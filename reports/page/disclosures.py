"""What stands in for something else, and what else is said once of endpoints, above all numbers."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from reports.format import listed
from reports.stats.repeats import delays_paid, grouped
from reports.study.study import Study

RANDOM_WEIGHTS = "Random weights: timings are real, embeddings mean nothing."
FETCHED = "its server fetches the pictures itself, so its times have a download in them"
SILENT = (
    "states no times of its own: its queue and its compute time",
    "state no times of their own: the queue and the compute time of each",
)
"""Of one endpoint, and of several."""
UNTOLD = "are unknown, and are part of unexplained"


def disclosures(study: Study, endpoints: Iterable[str]) -> tuple[str, ...]:
    """Every such sentence that some endpoints call for, then weights and links."""
    names = list(endpoints)
    said = [study.stand_ins[name] for name in names if name in study.stand_ins]
    said += [
        f"{name}: {FETCHED}." for name in names if study.described.get(name, {}).get("fetched_by_server")
    ]
    said += waits_said(study, names)
    labels = [str(study.described.get(name, {}).get("weights", "")) for name in names]
    if any(label.startswith("random") for label in labels):
        said.append(RANDOM_WEIGHTS)
    return tuple(dict.fromkeys([*said, *links_said(study)]))


def waits_said(study: Study, endpoints: Collection[str]) -> list[str]:
    """What one user waits for at some of these endpoints and not at others; none where all are alike."""
    serial = [run for run in study.started if run.serial and run.succeeded and not run.is_floor]
    told = {(run.endpoint, next(delays_paid([run]), "")) for run in serial if run.endpoint in endpoints}
    paid = grouped(sorted(pair for pair in told if pair[1]), lambda pair: pair[1])
    free = {name for name, _ in told} - {name for pairs in paid.values() for name, _ in pairs}
    return [f"{listed([name for name, _ in pairs])}: {text}." for text, pairs in paid.items() if free]


def guessed(study: Study) -> Iterator[str]:
    """What nobody declared of endpoints and was guessed: each sentence once, behind the names it is of."""
    floors, planned = study.floors.values(), set(study.endpoints)
    told = [
        (name, str(guess))
        for name, about in study.described.items()
        if name in planned and name not in floors
        for guess in about.get("guesses") or ()
    ]
    for guess, those in grouped(told, lambda one: one[1]).items():
        yield f"{', '.join(name for name, _ in those)}: {guess}"


def silent_said(study: Study) -> list[str]:
    """The sentence on endpoints whose servers state no times; none where all do, or could not be read."""
    read = grouped((run for run in study.started if run.succeeded), lambda run: run.endpoint)
    silent = {name for name, runs in read.items() if all(run.server.silent for run in runs)}
    names = [name for name in study.endpoints if name in silent]
    return [f"{listed(names)} {SILENT[len(names) > 1]} {UNTOLD}."] if names else []


def links_said(study: Study) -> list[str]:
    """The sentence on the emulated links that runs went over; none where none did."""
    used = {run.link for run in study.runs}
    found = [f"{link['name']} ({_shape(link)})" for link in study.links if link.get("name") in used]
    return [f"Emulated {'links' if found[1:] else 'link'}: {', '.join(found)}."] if found else []


def _shape(link: Mapping[str, Any]) -> str:
    """What a link adds to packets, in words."""
    rate, lost = link.get("mbit_per_s"), link.get("loss_pct")
    told = [
        f"round trip {2 * link['one_way_ms']:g} ms" if link.get("one_way_ms") else "",
        f"{rate:g} Mbit/s" if rate else "",
        f"{lost:g} % lost" if lost else "",
    ]
    return ", ".join(text for text in told if text) or "without delay, rate or loss"
