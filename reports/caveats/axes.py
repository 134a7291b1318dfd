"""Which caveats one run deserves since its link or its workers were not what its cell's name says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reports.caveat import Caveat, caveat
from reports.summary.summary import Summary

NS_PER_US = 1_000


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
    if differing := list(_settings(run)):
        yield caveat("settings-differ", "; ".join(differing))


def _settings(run: Summary) -> Iterator[str]:
    """What the server says of itself that is not what it was set to."""
    told = run.serving
    if told is None:
        return
    if run.instances_asked and told.instances not in (None, run.instances_asked):
        yield f"instances asked for: {run.instances_asked}, by the server's word: {told.instances}"
    asked, delay_ns = run.queue_delay_us, told.batching_delay_ns
    if asked is not None and told.batching and delay_ns not in (None, asked * NS_PER_US):
        yield f"queue delay asked for: {asked} us, by the server's word: {(delay_ns or 0) // NS_PER_US} us"


def _other(name: str, asked: int, seen: int | None) -> Iterator[str]:
    if asked and seen is not None and asked != seen:
        yield f"{name} asked for: {asked}, that took part: {seen}"
