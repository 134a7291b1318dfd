"""A trace as workers replay it: when each request is due, its batch, and its place among those prepared."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from users.load.mix import RequestClass

NS_PER_S = 1_000_000_000
MOST_ROWS = 1_000_000
MOST_POINTS = 600
"""Of the asked course."""
NO_PICTURE = -1
"""In a trace of which some rows name a picture: one that names none."""
_HEAD = struct.Struct("<I?")


@dataclass(frozen=True, eq=False)
class Replay:
    """The requests of a trace, in their order.

    `times_ns`: int64 of shape [n], nanoseconds from the trace's beginning, rising or equal. `items`: uint16
    of shape [n]. `pictures`: int32 of shape [n], or None where the trace names none. `seconds`: how long the
    trace is, which a worker need not know.
    """

    times_ns: NDArray[np.int64]
    items: NDArray[np.uint16]
    pictures: NDArray[np.int32] | None = None
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.times_ns)

    @cached_property
    def classes(self) -> tuple[RequestClass, ...]:
        """A class for each batch, the smallest first; their label is empty where there is one."""
        counts = Counter(self.items.tolist())
        name = "b{}".format if len(counts) > 1 else lambda _: ""
        return tuple(RequestClass(name(of), counts[of] / len(self), of) for of in sorted(counts))

    @cached_property
    def _labels(self) -> dict[int, str]:
        return {one.batch: one.label for one in self.classes}

    @cached_property
    def quiet_s(self) -> float:
        """The longest time without a request."""
        return float(np.diff(self.times_ns, prepend=0).max()) / NS_PER_S

    @cached_property
    def asked(self) -> dict[str, Any]:
        """How many requests are due in each `width_s` of its `seconds`, as a plan has it for the report."""
        width_s = ceil(max(1.0, self.seconds / MOST_POINTS))
        requests = np.bincount(self.times_ns // (width_s * NS_PER_S)).tolist()
        return {"width_s": width_s, "requests": requests, "seconds": self.seconds}

    def offsets_ns(self) -> Iterator[int]:
        """Nanoseconds from the start of a phase to each request."""
        return iter(self.times_ns.tolist())

    def ordered(self, seed: str) -> Self:
        """As a `Traffic`: the trace's own order, whatever the seed."""
        return self

    def at(self, number: int) -> tuple[str, int]:
        """As an `Order`: the label of the class, and the picture, or the number where the row names none.

        After the last row, as a warm-up may ask, come the first ones again.
        """
        row = number % len(self)
        picture = NO_PICTURE if self.pictures is None else int(self.pictures[row])
        return self._labels[int(self.items[row])], number if picture == NO_PICTURE else picture

    def encode(self) -> bytes:
        """As one message has it: the number of rows, the gaps of the times, items and pictures."""
        gaps = np.diff(self.times_ns, prepend=0).astype("<i8")
        pictures = b"" if self.pictures is None else self.pictures.astype("<i4").tobytes()
        columns = gaps.tobytes() + self.items.astype("<u2").tobytes() + pictures
        return _HEAD.pack(len(self), self.pictures is not None) + zlib.compress(columns)

    @classmethod
    def decode(cls, told: bytes) -> Self:
        """The inverse. Raises ValueError where that is no trace, or too long a one."""
        try:
            rows, named = _HEAD.unpack_from(told)
            size = rows * (8 + 2 + 4 * named)
            columns = zlib.decompressobj().decompress(told[_HEAD.size :], size + 1)
        except (struct.error, zlib.error) as error:
            raise ValueError(f"a trace cannot be decoded ({error})") from None
        if not 1 <= rows <= MOST_ROWS or len(columns) != size:
            raise ValueError(f"a trace of {rows} rows has {len(columns)} bytes of columns")
        gaps = np.frombuffer(columns, "<i8", rows)
        items = np.frombuffer(columns, "<u2", rows, 8 * rows)
        pictures = np.frombuffer(columns, "<i4", rows, 10 * rows) if named else None
        return cls(np.cumsum(gaps, dtype=np.int64), items, pictures)
