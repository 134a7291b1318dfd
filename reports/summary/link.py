"""The rate of the link that a run's requests took, and what they carried over it."""

from reports.fold.records import ratio
from reports.summary.summary import Summary

BYTES_OF_MBIT = 1e6 / 8
WRONG_SHARE = 1.05
"""Of the rate that was told: no link carries more than its rate, so that this one is not the link's."""


def link_rate(run: Summary) -> float | None:
    """Bytes a second of the links of all hosts together; None where it is not known, or was told wrongly."""
    return None if exceeds(run) else told_rate(run)


def told_rate(run: Summary) -> float | None:
    """The same as it was told: each host has a link of its own."""
    return None if run.link_bytes_per_s is None else run.link_bytes_per_s * max(1, run.hosts or 1)


def exceeds(run: Summary) -> bool:
    """Whether more was carried than the rate that was told allows."""
    rate, (carried, _) = told_rate(run), carried_per_s(run)
    return rate is not None and carried is not None and carried > WRONG_SHARE * rate


def carried_per_s(run: Summary) -> tuple[float | None, str]:
    """Bytes a second in the direction that carried more, and which that is: `sent` or `received`.

    Of what was sent, without what was sent again: a policer drops that before the link.
    """
    path = run.path
    if path is None:
        return None, ""
    sent, received = path.wire_bytes_per_s, path.received_wire_bytes
    if sent is not None:
        sent *= 1 - (ratio(path.bytes_retransmitted, path.bytes_sent) or 0.0)
    back = ratio(received, run.counts.measure_ns and run.counts.measure_ns / 1e9)
    return (back, "received") if back is not None and back > (sent or 0) else (sent, "sent")
