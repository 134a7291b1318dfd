"""Histograms as the ledger holds them: HdrHistogram V2 base64, 1 µs to 1 h, 3 significant digits."""

import zlib
from collections.abc import Iterable

from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3
NS_PER_US = 1_000

_UNREADABLE = (ValueError, TypeError, IndexError, zlib.error, HdrCookieException, HdrLengthException)


class HistogramError(ValueError):
    """Text that is no histogram."""


def empty() -> HdrHistogram:
    """A new histogram with the ledger's bounds."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS)


def record_ns(histogram: HdrHistogram, value_ns: int) -> None:
    """Counts one duration; the library drops what is out of range, so that is clamped to a bound."""
    value_us = round(value_ns / NS_PER_US)
    histogram.record_value(min(max(value_us, 0), HIGHEST_US))


def merged(encoded: Iterable[str]) -> HdrHistogram:
    """One histogram holding the counts of all; HistogramError where one cannot be decoded."""
    total = empty()
    for text in encoded:
        try:
            total.decode_and_add(text)
        except _UNREADABLE as error:
            raise HistogramError(f"{str(text)[:24]!r}… is no HdrHistogram ({error})") from error
    return total


def percentiles_ns(histogram: HdrHistogram, percents: Iterable[float]) -> list[float | None]:
    """The values at some percentiles; None for each where the histogram is empty."""
    wanted = list(percents)
    if not histogram.get_total_count():
        return [None] * len(wanted)
    values_us = histogram.get_percentile_to_value_dict(wanted)
    return [float(values_us[percent] * NS_PER_US) for percent in wanted]


def mean_ns(histogram: HdrHistogram) -> float | None:
    """The mean, to 0.1 %; None where the histogram is empty."""
    return histogram.get_mean_value() * NS_PER_US if histogram.get_total_count() else None
