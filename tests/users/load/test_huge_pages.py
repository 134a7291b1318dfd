"""Prepared bodies in one mapping: the same bytes, each at a line of its own, and nobody can change them."""

import mmap

import pytest

from users.codecs.base import PreparedRequest
from users.load import assignment
from users.load.assignment import LINE_BYTES, settled

BODIES = [b"a" * 100, b"", b"b" * 64, bytes(range(256)) * 3000]


def pool() -> list[PreparedRequest]:
    return [
        PreparedRequest(body, (number,), {"x": str(number)}, id_at=number - 1)
        for number, body in enumerate(BODIES)
    ]


def test_requests_are_the_same_afterwards() -> None:
    moved = settled(pool())
    assert moved == pool()
    assert [bytes(prepared.body) for prepared in moved] == BODIES
    assert [prepared.head for prepared in moved] == [prepared.head for prepared in pool()]


def test_all_lie_in_one_mapping_that_nobody_can_write_to() -> None:
    views = [memoryview(prepared.body) for prepared in settled(pool())]
    assert len({id(view.obj) for view in views}) == 1
    assert isinstance(views[0].obj, mmap.mmap)
    assert len(views[0].obj) == sum(-(-len(body) // LINE_BYTES) * LINE_BYTES for body in BODIES)
    assert all(view.readonly for view in views)


def test_a_request_is_renamed_there_too() -> None:
    (moved,) = settled([PreparedRequest(b"id: 0000, and more", (0,), id_at=4)])
    assert moved.renamed("abcd") == PreparedRequest(b"id: abcd, and more", (0,), id_at=4)


def test_nothing_to_move() -> None:
    assert settled([]) == []
    assert settled([PreparedRequest(b"", (0,))]) == [PreparedRequest(b"", (0,))]


def test_a_kernel_without_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for advice in (None, 4095):  # unknown to Python, or to the kernel
        monkeypatch.setattr(assignment, "HUGE_PAGES", advice)
        assert settled(pool()) == pool()
