"""Studies with cells that ran at the same time, whose slow-downs are chosen."""

from collections.abc import Sequence
from typing import Any

from tests.reports.builder import Book
from tests.reports.lines import FIRST_NS, FIRST_SECOND, Record, drained_line, window
from tests.reports.open_load import MS

GROUP = "siglip@r50+clip@c8"


def interfering(siglip: float, clip: float, repeats: int = 3, spread: float = 0.005, **more: Any) -> Book:
    """siglip at 50 requests/s and 8 users of clip, alone and together, so many times slower than alone.

    Repeats differ by 2 % in all runs alike, and in those together by `spread`, too, every other one.
    """
    book = Book(study="study", title="Several models")
    for repeat in range(1, repeats + 1):
        own_ms = 20 * (1 + 0.02 * repeat)
        _loads(book, repeat, own_ms, own_ms, {}, {})
        off = 1 + spread * (repeat % 2)
        beside = [{"together": GROUP, "variant": f"with-{of}"} for of in ("clip-c8", "siglip-r50")]
        _loads(book, repeat, own_ms * siglip * off, own_ms * clip * off, *beside, **more)
    return book


def _loads(
    book: Book, repeat: int, siglip_ms: float, clip_ms: float, first: Record, second: Record, **more: Any
) -> None:
    siglip_ns, clip_ns = round(siglip_ms * MS), round(clip_ms * MS)
    book.add_open("siglip", 50, {"w0": [siglip_ns] * 200}, repeat=repeat, axes=first)
    book.add("clip", 1, 8, {"w0": [clip_ns] * 800}, repeat=repeat, axes=second, **more)


def split(
    old_ms: Sequence[float], new_ms: Sequence[float], repeats: int = 1, failed: int = 0, rate: float = 50
) -> Book:
    """A schedule of which old gets 9 requests in 10: the latency of each in every second, 0 for no request.

    Then the others have more.

    `new` has so many failures in its last second.
    """
    book = Book(study="study", title="Old and new")
    for repeat in range(1, repeats + 1):
        for name, share, each_ms in (("old", 0.9, old_ms), ("new", 0.1, new_ms)):
            axes = {"together": f"split old:0.9,new:0.1 r{rate:g}", "split": share}
            tag = book.plan(name, 1, share * rate, repeat, "constant", axes | {"variant": f"split-{share:g}"})
            count = round(share * rate)
            book.records += _records(tag, each_ms, count, repeat, failed if name == "new" else 0)
    return book


def _records(tag: Record, each_ms: Sequence[float], count: int, repeat: int, failed: int) -> list[Record]:
    edge: Record = {"kind": "run", **tag, "utc": "2026-11-21T11:00:01Z"}
    phase_ns, begin = len(each_ms) * 1_000 * MS, FIRST_SECOND + 1_000 * repeat
    count = count * len(each_ms) // sum(ms > 0 for ms in each_ms)
    windows = [
        window(tag, "w0", [round(ms * MS)] * (count if ms else 0), 1)
        | {"second": begin + at, "first_start_ns": FIRST_NS, "last_end_ns": FIRST_NS + phase_ns, "late": 0}
        for at, ms in enumerate(each_ms)
    ]
    windows[-1]["failures"] = {"timeout": failed} if failed else {}
    sent = sum(line["ok"] for line in windows) + failed
    drained = drained_line(tag, "w0", 10, sent) | {"sent": sent, "due": sent, "dropped": 0}
    return [
        edge | {"event": "start", "workers": ["w0"], "hosts": 1},
        *windows,
        drained | {"phase_ns": phase_ns},
        edge | {"event": "end", "status": "done", "note": ""},
    ]
