"""Which caveats one run deserves since its link or its workers were not what its cell's name says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reports.doubt.caveat import Caveat, caveat
from reports.summary import Summary


def axis_doubts(run: Summary, links: Iterable[Mapping[str, Any]]) -> Iterator[Caveat]:
    """What was measured of its link and found different, and the processes that were not as many as asked."""
    found = (link.get("differences") or () for link in links if link.get("name") == run.link)
    if differences := [str(text).rstrip(".") for texts in found for text in texts]:
        yield caveat("link-differs", f"{run.link}: {'; '.join(differences)}")
    if wrong := [
        *_other("workers", run.workers_asked, run.workers),
        *_other("hosts", run.hosts_asked, run.hosts),
    ]:
        yield caveat("topology-differs", "; ".join(wrong))


def _other(name: str, asked: int, seen: int | None) -> Iterator[str]:
    if asked and seen is not None and asked != seen:
        yield f"{name} asked for: {asked}, that took part: {seen}"
