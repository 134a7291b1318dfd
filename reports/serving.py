"""How the server behind a run was set up: what its parts and its queue must be read against."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Instances of the model, largest batch, whether requests are batched and how long they may wait for it.

    None where the server did not tell.
    """

    instances: int | None = None
    max_batch: int | None = None
    batching: bool | None = None
    batching_delay_ns: int | None = None
