"""How a server's good bytes are spoilt: each takes their frames, and gives bytes."""

from collections.abc import Callable, Mapping
from random import Random

from tests.users.http2.peer import HEAD_BYTES, framed
from users.http2.frames import DEFAULT_FRAME_BYTES, MAX_WINDOW

Frames = list[bytes]
Mutation = Callable[[Random, Frames], bytes]
LENGTHS = (0, 1, 4, 5, 8, 9, 100, DEFAULT_FRAME_BYTES, DEFAULT_FRAME_BYTES + 1, (1 << 24) - 1)
STREAMS = (0, 1, 2, 3, 5, 99, MAX_WINDOW, 1 << 31 | 1, 0xFFFFFFFF)


def frames_of(data: bytes) -> Frames:
    """Each with its head."""
    found, at = [], 0
    while at < len(data):
        size = HEAD_BYTES + int.from_bytes(data[at : at + 3], "big")
        found.append(data[at : at + size])
        at += size
    return found


def with_head(frame: bytes, at: int, new: bytes) -> bytes:
    """The same frame with other bytes in its head."""
    return frame[:at] + new + frame[at + len(new) :]


def flip(random: Random, frames: Frames) -> bytes:
    """One to three bits, anywhere."""
    data = bytearray(b"".join(frames))
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def overwrite(random: Random, frames: Frames) -> bytes:
    """Up to 20 bytes in a row."""
    data = bytearray(b"".join(frames))
    at, size = random.randrange(len(data)), random.randint(1, 20)
    data[at : at + size] = random.randbytes(size)
    return bytes(data)


def reorder(random: Random, frames: Frames) -> bytes:
    """All frames, in another order."""
    return b"".join(random.sample(frames, len(frames)))


def drop(random: Random, frames: Frames) -> bytes:
    """Without one or two frames."""
    kept = frames.copy()
    for _ in range(min(len(kept), random.randint(1, 2))):
        del kept[random.randrange(len(kept))]
    return b"".join(kept)


def duplicate(random: Random, frames: Frames) -> bytes:
    """A frame once or twice more, at once or later."""
    at = random.randrange(len(frames))
    made = frames.copy()
    for _ in range(random.randint(1, 2)):
        made.insert(random.randint(at, len(made)), frames[at])
    return b"".join(made)


def length(random: Random, frames: Frames) -> bytes:
    """A frame that says another length than it has."""
    size = random.choice((*LENGTHS, random.randrange(1 << 10)))
    return changed(random, frames, lambda one: with_head(one, 0, size.to_bytes(3, "big")))


def kind(random: Random, frames: Frames) -> bytes:
    """A frame of another type."""
    return changed(random, frames, lambda one: with_head(one, 3, bytes((random.randrange(12),))))


def flags(random: Random, frames: Frames) -> bytes:
    """A frame with other flags."""
    return changed(random, frames, lambda one: with_head(one, 4, random.randbytes(1)))


def stream(random: Random, frames: Frames) -> bytes:
    """A frame of another stream."""
    number = random.choice(STREAMS)
    return changed(random, frames, lambda one: with_head(one, 5, number.to_bytes(4, "big")))


def payload(random: Random, frames: Frames) -> bytes:
    """A frame of the right length whose payload means nothing."""
    return changed(random, frames, lambda one: one[:HEAD_BYTES] + random.randbytes(len(one) - HEAD_BYTES))


def insert(random: Random, frames: Frames) -> bytes:
    """A frame more: of any type, flags, stream and payload."""
    size = random.choice((0, 4, 4, 5, 6, 8, 8, random.randrange(60)))
    numbers = random.randrange(12), random.randrange(256), random.choice(STREAMS)
    made = frames.copy()
    made.insert(random.randint(0, len(made)), framed(*numbers, random.randbytes(size)))
    return b"".join(made)


def garbage(random: Random, frames: Frames) -> bytes:
    """Frames up to one of them, and then bytes that mean nothing."""
    return b"".join(frames[: random.randint(0, len(frames))]) + random.randbytes(random.randint(1, 300))


def changed(random: Random, frames: Frames, change: Callable[[bytes], bytes]) -> bytes:
    """All frames, one of them changed."""
    at = random.randrange(len(frames))
    return b"".join((*frames[:at], change(frames[at]), *frames[at + 1 :]))


MUTATIONS: Mapping[str, Mutation] = {
    "bits flipped": flip, "bytes overwritten": overwrite, "frames reordered": reorder,
    "frames dropped": drop, "frames twice": duplicate, "another length": length, "another type": kind,
    "other flags": flags, "another stream": stream, "a random payload": payload, "a random frame": insert,
    "garbage": garbage,
}  # fmt: skip
