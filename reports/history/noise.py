"""How a series of studies varies by itself: its single outliers, and how alike studies are that follow."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OUTLYING = 3.5
"""Robust standard deviations from both neighbourhoods."""
BESIDE = 3
"""Studies of a neighbourhood: as many as a change needs."""
MOST_LAGS = 6
EXPECTED, EXPECTED_OF = 0.4, 20
"""How alike a study and the next are before any has told, and how many studies that belief is worth."""
TRIMMED = 0.3
"""Of the differences: the share that a change, or an outlier, may be behind."""
MAD_TO_SD = 1.4826


def outliers(values: Floats) -> NDArray[np.bool_]:
    """Which values are far from the median of those before and of those after, on the same side of both.

    A value that begins a change is near those after it. The newest two have too few after them, and are
    judged by those before alone: a third like them makes them a level. The rule is Hampel's (F. R. Hampel,
    The influence curve and its role in robust estimation, JASA 69, 1974: the median and the MAD in place of
    mean and standard deviation), once for each side.
    """
    found = np.zeros(len(values), dtype=bool)
    if len(values) < 2 * BESIDE + 1:
        return found
    medians = np.median(np.lib.stride_tricks.sliding_window_view(values, BESIDE), axis=1)
    before = np.full(len(values), np.nan)
    after = np.full(len(values), np.nan)
    before[BESIDE:] = values[BESIDE:] - medians[:-1]
    after[:-BESIDE] = values[:-BESIDE] - medians[1:]
    before[:BESIDE], after[-BESIDE:] = after[:BESIDE], np.nan
    known = before[np.isfinite(before)]
    limit = OUTLYING * MAD_TO_SD * float(np.median(np.abs(known)))
    if limit:
        found = (np.minimum(np.abs(before), np.abs(after)) > limit) & (before * after > 0)
        newest = np.abs(before[-BESIDE:]) > limit
        found[1 - BESIDE :] = newest[1:] & ~newest[0]
    return found


def likeness(series: Sequence[Floats]) -> Floats:
    """The autocorrelations r_1, r_2, … of what varies in some series that vary alike.

    From differences at a distance, which a change of level touches in few places: half the mean square of
    x(t+j) − x(t) is γ(0) − γ(j). (P. Hall, I. Van Keilegom, Using difference-based methods for inference in
    nonparametric regression with time series errors, JRSS B 65, 2003.) The largest of them are left
    out, as many of every distance. The estimate ends where a pair of them is no longer above 0 (C. J. Geyer,
    Practical Markov chain Monte Carlo, Statistical Science 7, 1992: initial positive sequence). Few studies
    cannot tell how alike they are: EXPECTED is believed as if EXPECTED_OF more had shown it.
    """
    longest = max(map(len, series), default=0)
    found = np.zeros(MOST_LAGS)
    told = _positive(_autocorrelations(series, _reach(longest)))
    found[: len(told)] = told
    expected = EXPECTED ** np.arange(1.0, MOST_LAGS + 1)
    mixed: Floats = (longest * found + EXPECTED_OF * expected) / (longest + EXPECTED_OF)
    return mixed


def _reach(count: int) -> int:
    """How many distances are looked at: the farther, the more differences a change of some studies is in."""
    return min(2 * MOST_LAGS, max(count // 8, min(4, count // 5)))


def _autocorrelations(series: Sequence[Floats], lags: int) -> Floats:
    """Of half so many distances; the other half, which are longer, stand for γ(0)."""
    squares = np.zeros(lags)
    for values in series:
        if len(values) > lags + 2:
            mine = np.array([_half_square(values, lag) for lag in range(1, lags + 1)])
            level = float(np.mean(mine[lags // 2 :])) if lags > 1 else 0.0
            squares += len(values) * mine / level if level else 0.0
    level = float(np.mean(squares[lags // 2 :])) if lags > 1 else 0.0
    return 1 - squares[: lags // 2] / level if level else np.zeros(0)


def _positive(found: Floats) -> Floats:
    """Those before the first pair whose sum is not above 0, none of them below 0."""
    ends = [at for at in range(0, len(found), 2) if found[at : at + 2].sum() <= 0]
    return np.clip(found[: ends[0]] if ends else found, 0.0, 0.99)


def _half_square(values: Floats, lag: int) -> float:
    squares = np.sort((values[lag:] - values[:-lag]) ** 2)
    return float(np.mean(squares[: max(1, int(len(squares) * (1 - TRIMMED)))])) / 2


def times_wider(count: int, alike: Floats) -> float:
    """How many times the variance of a mean of so many values that follow each other is that of independent.

    1 + 2 Σ (1 − j/m) r_j: the variance of a mean of a stationary series.
    """
    lags = np.arange(1, min(len(alike), count - 1) + 1)
    return 1.0 + 2.0 * float(np.sum((1 - lags / count) * alike[: len(lags)]))
