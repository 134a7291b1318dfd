"""How the server behind a run was set up: what its parts and its queue must be read against."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.caveat import Caveat, caveat
from reports.ledger.ledger import Record


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Instances of the model, largest batch, whether requests are batched and how long they may wait for it.

    None where the server did not tell.
    """

    instances: int | None = None
    max_batch: int | None = None
    batching: bool | None = None
    batching_delay_ns: int | None = None


def serving_of(records: Sequence[Record]) -> Serving | None:
    """What the last `serving` record of a run told; None where there is none or it could not be told."""
    if not records or "error" in records[-1]:
        return None
    told = records[-1]
    return Serving(**{name: told.get(name) for name in Serving.__dataclass_fields__})


def serving_gap(records: Sequence[Record]) -> Iterator[Caveat]:
    """The caveat of a server that was asked for its set-up and did not tell."""
    if records and "error" in records[-1]:
        yield caveat("probe-gap", f"how the server is set up is not known: {records[-1]['error']}")
