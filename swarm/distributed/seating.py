"""Which workers carry a cell: so many processes, spread evenly over so many hosts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from swarm.errors import RunFailedError


def seated(by_host: Mapping[str, Sequence[str]], workers: int, hosts: int) -> list[str]:
    """`workers` of the workers there are by host, each host giving one in its turn; 0 is all there are.

    Raises RunFailedError where there are not so many.

    >>> seated({"h1": ["a", "b"], "h2": ["c"]}, workers=2, hosts=2)
    ['a', 'c']
    """
    if len(by_host) < hosts:
        raise RunFailedError(f"it asks for {hosts} hosts and {len(by_host)} are there")
    # Where not all are needed, those with most room.
    roomy = sorted(by_host.values(), key=len, reverse=True)[:hosts]
    chosen = roomy or list(by_host.values())
    turns = itertools.zip_longest(*chosen)
    found = [worker for turn in turns for worker in turn if worker is not None]
    if len(found) < workers:
        where = f" on {hosts} hosts" if hosts else ""
        raise RunFailedError(f"it asks for {workers} workers{where} and {len(found)} are there")
    return found[: workers or len(found)]
