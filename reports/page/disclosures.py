"""What stands in for something else, said wherever its numbers appear."""

from collections.abc import Iterable, Mapping
from typing import Any

from reports.study.study import Study

RANDOM_WEIGHTS = "Random weights: timings are real, embeddings mean nothing."


def disclosures(study: Study, endpoints: Iterable[str]) -> tuple[str, ...]:
    """Every such sentence that some endpoints call for, then weights and links."""
    names = list(endpoints)
    said = [study.stand_ins[name] for name in names if name in study.stand_ins]
    labels = [str(study.described.get(name, {}).get("weights", "")) for name in names]
    if any(label.startswith("random") for label in labels):
        said.append(RANDOM_WEIGHTS)
    return tuple(dict.fromkeys([*said, *links_said(study)]))


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
