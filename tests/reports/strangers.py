"""Made-up endpoints of a user's own, whose names say nothing: what a plan and a header tell of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.reports.builder import Book
from tests.reports.lines import Record

MS = 1_000_000
PLAIN = {"computes": True, "emulated": False, "floor": False, "stands_for": "", "stand_in": ""}
NULL = PLAIN | {"computes": False, "floor": True}
SIGLIP = {
    **{"backend": "triton", "protocol": "http", "payload": "fp16"},
    **{"model": "siglip", "codec": "v2-binary", "server": "gpu:8000", "space": "siglip"},
}
GRPC = {"protocol": "grpc", "codec": "v2-grpc"}


def a_book(**header: Any) -> Book:
    """A study of anybody's endpoints, of which nothing is planned yet."""
    backends = dict.fromkeys(("triton", "v2", "service", "rpc"), PLAIN) | {"null": NULL}
    return Book(**{"study": "study", "title": "Our models", "backends": backends} | header)


def stranger(book: Book, name: str, about: Mapping[str, Any] | None = None, **planned: Any) -> Record:
    """Describes an endpoint; what a plan tells of it: SIGLIP, but for what is `planned` otherwise."""
    told = {**SIGLIP, **planned}
    book.endpoint(name, "gpu:8000", weights="unknown", model=told["model"])
    book.header["endpoints"][name] |= {
        **{key: told[key] for key in ("codec", "server", "space")},
        **(about or {}),
    }
    return told


def run(
    book: Book, name: str, told: Record, ms: Sequence[float] = (10.0,), level: int = 1, **more: Any
) -> list[Record]:
    """As many repeats, of 40 requests for each user that take so long."""
    return [
        book.add(name, 1, level, {"w0": [round(each * MS)] * 40 * level}, repeat=repeat, axes=told, **more)
        for repeat, each in enumerate(ms, 1)
    ]
