"""Which requests carry a W3C `traceparent`, and the ids in it, under which servers' spans join the client's.

Source: W3C Trace Context, section 3.2 (version 00).
"""

import random
import secrets

from users.load.mix import ClassSequence

HEADER = "traceparent"
SPAN_AT = 16
"""Where in a trace's id the client's own span id begins: one id finds both."""


class TraceIds:
    """The trace id of a phase's requests, of which `share` have one: the same ones for the same seed.

    The ids themselves differ from study to study, or two of them would be one trace to those who collect.
    """

    def __init__(self, share: float, seed: str) -> None:
        self._chosen = ClassSequence((share, 1 - share), f"{seed}/{HEADER}")
        self._ids = random.Random(secrets.randbits(128))

    def __call__(self, number: int) -> str:
        """32 hexadecimal digits, or nothing where the request of this number carries none."""
        return f"{self._ids.getrandbits(128):032x}" if self._chosen(number) == 0 else ""


def span_of(trace_id: str) -> str:
    """The client's own span of a trace: the parent of what the server adds to it."""
    return trace_id[SPAN_AT:]


def traceparent(trace_id: str) -> str:
    """The header's value, which says that the trace is kept.

    >>> traceparent("0af7651916cd43dd8448eb211c80319c")
    '00-0af7651916cd43dd8448eb211c80319c-8448eb211c80319c-01'
    """
    return f"00-{trace_id}-{span_of(trace_id)}-01"
