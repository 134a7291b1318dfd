"""How long an emulated model sleeps: the compute time of a batch as a straight line, and its source."""

from __future__ import annotations

import math
from dataclasses import dataclass

from server.errors import SetUpError

LONGEST_MS = 60_000.0


@dataclass(frozen=True)
class EmulationProfile:
    """A service time of `base_ms + per_image_ms * batch`, `cold_ms` longer for the first of each size."""

    base_ms: float
    per_image_ms: float
    cold_ms: float = 0.0
    name: str = ""

    def describe(self) -> str:
        """For people: `a100: 3.11 ms + 1.29 ms an image`."""
        name = f"{self.name}: " if self.name else ""
        cold = f", {self.cold_ms:g} ms more for the first of a batch size" if self.cold_ms else ""
        return f"{name}{self.base_ms:g} ms + {self.per_image_ms:g} ms an image{cold}"

    def parameters(self) -> dict[str, str]:
        """What the copy of the model's configuration is given."""
        times = {"base_ms": self.base_ms, "per_image_ms": self.per_image_ms, "cold_ms": self.cold_ms}
        return {name: repr(value) for name, value in times.items()} | {"emulated": self.describe()}


def solved(single_ms: float, requests: int, images: int, total_ms: float, name: str) -> EmulationProfile:
    """The line through one image's compute time and the total of several requests, each computed alone.

    single = base + per_image and total = requests * base + images * per_image; to a hundredth of a ms.
    """
    base_ms = (images * single_ms - total_ms) / (images - requests)
    return EmulationProfile(round(base_ms, 2), round(single_ms - base_ms, 2), name=name)


def scaled(profile: EmulationProfile, single_ms: float, name: str) -> EmulationProfile:
    """The same split between base and images for another compute time of one image."""
    factor = single_ms / (profile.base_ms + profile.per_image_ms)
    return EmulationProfile(
        round(profile.base_ms * factor, 2), round(profile.per_image_ms * factor, 2), name=name
    )


A100 = solved(4.4, 119, 679, 1243.848, "a100")
"""ONNX Runtime on an A100 SXM4, as published: 4.4 ms for one image, and 1,243,848 us for 679 in 119 requests.

base = (679 * 4.4 - 1243.848) / (679 - 119) = 3.11 ms and 4.4 - 3.11 = 1.29 ms an image, if no two of those
requests shared an execution: Triton counts the time of a shared one for each request in it.
"""
PROFILES = {
    "a100": A100,
    # Published are only their 5.7 and 4.41 ms for one image; that they split as the A100's does is assumed.
    "rtx4080": scaled(A100, 5.7, "rtx4080"),
    "rtx4090": scaled(A100, 4.41, "rtx4090"),
}
FORMS = (
    f"{', '.join(PROFILES)}, or milliseconds as in 3.1+1.3 (base + an image) "
    "or 40+0/500 (500 more for the first of a batch size)"
)


def profile_of(text: str) -> EmulationProfile:
    """A profile's name or `BASE+PER` in milliseconds, either with `/COLD`; SetUpError for anything else."""
    line, slash, cold = text.strip().partition("/")
    known = PROFILES.get(line)
    base, _, per_image = (f"{known.base_ms}+{known.per_image_ms}" if known else line).partition("+")
    times = [_milliseconds(number) for number in (base, per_image, cold if slash else "0")]
    if None in times:
        raise SetUpError(f"--emulate {text!r} is no service time: give {FORMS}, each at most 60000.")
    base_ms, per_image_ms, cold_ms = (time or 0.0 for time in times)
    return EmulationProfile(base_ms, per_image_ms, cold_ms, line if known else "")


def _milliseconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= LONGEST_MS else None
