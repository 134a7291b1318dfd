"""Laws of how throughput grows with users, and which of them describes the measured rates best.

Each law is fitted by least squares of log rates: a disturbance scales a run's rate, and with plain
differences the highest rates would outweigh the lowest. Then an information criterion compares them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import exp, inf, log, prod, sqrt

import numpy as np
import numpy.typing as npt

from reports.format import digits, with_interval
from reports.stats.log_ratio import RESOLUTION, errors_wide

LEAST_LEVELS, LEAST_RUNS = 4, 6
"""The longest law has 3 parameters and AICc takes 3 runs more: with fewer, others would win by default."""
TOLD_APART = 2.0
"""A law that is worse by less is not told apart from the best. Source: K. P. Burnham, D. R. Anderson, Model
Selection and Multimodel Inference, Springer 2002, section 2.6.
"""
LARGEST_MISS = 0.15
"""How far off its points the best law may be, as a root mean square: beyond, none describes them."""
WIDEST_TIMES = 4.0
"""A parameter whose interval spans a larger factor is not determined by the levels."""
STEP = 1e-4
"""Of a parameter's logarithm, to see how the curve depends on it."""
SIDE = {1: 41, 2: 21}
"""Points of the search in each direction, by the number of parameters that give the curve its shape."""
KEPT_STEPS, ROUNDS = 3.0, 14
"""How many steps around the best point the next of so many rounds searches: narrow valleys need the room."""
Floats = npt.NDArray[np.float64]
Shape = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Parameter:
    """What a law's parameter is to a reader: `factor` times a product of powers of the fitted ones."""

    label: str
    unit: str
    powers: tuple[float, ...]
    factor: float = 1.0


@dataclass(frozen=True)
class Law:
    """A law: rate = scale × shape(users; θ).

    `shape` takes users (n,) and several θ (p, m), and gives (n, m). `bounds` gives the lowest and the highest
    of each θ for the lowest and the highest users.
    """

    name: str
    shape: Shape
    bounds: Callable[[float, float], tuple[tuple[float, float], ...]]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Estimate:
    """A parameter with its 95 % interval, which holds if the law does; None where it is not determined."""

    parameter: Parameter
    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        name, unit = self.parameter.label, f" {self.parameter.unit}".rstrip()
        if self.low is None or self.high is None:
            return f"{name} not determined"
        return f"{name} {with_interval(self.value, self.low, self.high)}{unit}"


@dataclass(frozen=True)
class Fitted:
    """A law at its best: its scale and θ are `at`, and `squares` is what it leaves of the log rates."""

    law: Law
    at: tuple[float, ...]
    squares: float
    aicc: float

    def rate_at(self, users: float) -> float:
        """The curve's rate at a whole number of users."""
        return float(_curve(self.law, np.array([users]), self.at)[0])


@dataclass(frozen=True)
class BestLaw:
    """The law with the least AICc, or one with fewer parameters that is not told apart from it.

    `miss` is the root mean square of its relative differences from the points. `rivals` are the other laws
    and by how much their AICc is higher, the least first. `levels` are the lowest and the highest users.
    """

    fitted: Fitted
    estimates: tuple[Estimate, ...]
    miss: float
    rivals: tuple[tuple[str, float], ...]
    levels: tuple[float, float]

    @property
    def name(self) -> str:
        """Of the law."""
        return self.fitted.law.name

    @property
    def not_told_apart(self) -> tuple[str, ...]:
        """The laws that these runs do not tell from the best one."""
        return tuple(name for name, more in self.rivals if more < TOLD_APART)


@dataclass(frozen=True)
class NoLaw:
    """Why the data carry no law."""

    reason: str


def flat(users: Floats, at: Floats) -> Floats:
    """The rate does not depend on the users."""
    return np.ones((len(users), at.shape[1]))


def linear(users: Floats, at: Floats) -> Floats:
    """Each user has the rate that a single one has."""
    return np.repeat(users[:, None], at.shape[1], axis=1)


def hard_limit(users: Floats, at: Floats) -> Floats:
    """min(N, N*): the asymptotic bounds of a closed system.

    Source: P. J. Denning, J. P. Buzen, The operational analysis of queueing network models, ACM Computing
    Surveys 10 (1978).
    """
    return np.asarray(np.minimum(users[:, None], at[0]))


def one_queue(users: Floats, at: Floats) -> Floats:
    """One server with a queue, users who think for `at[0]` mean service times: exact mean value analysis.

    Source: M. Reiser, S. S. Lavenberg, Mean-value analysis of closed multichain queuing networks, Journal of
    the ACM 27 (1980). The rate is relative to the server's highest.
    """
    waiting, found = np.zeros(at.shape[1]), {}
    for count in range(1, round(users.max()) + 1):
        stay = 1 + waiting
        rate = count / (at[0] + stay)
        waiting = rate * stay
        found[count] = rate
    return np.array([found[round(each)] for each in users.tolist()])


def amdahl(users: Floats, at: Floats) -> Floats:
    """N / (1 + σ(N − 1)): the share σ of the work is done one at a time.

    Source: G. M. Amdahl, Validity of the single processor approach to achieving large scale computing
    capabilities, AFIPS Conference 30 (1967). It is the Universal Scalability Law without κ.
    """
    return scalability(users, np.vstack([at[0], np.zeros(at.shape[1])]))


def scalability(users: Floats, at: Floats) -> Floats:
    """N / (1 + σ(N − 1) + κN(N − 1)): with κ, what each pair of users costs, the curve falls again.

    Source: N. J. Gunther, Guerrilla Capacity Planning, Springer 2007.
    """
    others = users[:, None] - 1
    return np.asarray(users[:, None] / (1 + at[0] * others + at[1] * users[:, None] * others))


def _one_user(*more: float) -> Parameter:
    return Parameter("one user", "images/s", (1.0, *more))


LAWS = (
    Law("constant", flat, lambda low, high: (), (Parameter("rate", "images/s", (1,)),)),
    Law("linear", linear, lambda low, high: (), (_one_user(),)),
    Law(
        "hard limit",
        hard_limit,
        lambda low, high: ((low, high),),
        (_one_user(0), Parameter("limit", "images/s", (1, 1)), Parameter("from", "users", (0, 1))),
    ),
    Law(
        "one queue",
        one_queue,
        lambda low, high: ((1e-2, 30 * high),),
        (
            Parameter("limit", "images/s", (1, 0)),
            Parameter("service", "ms an image", (-1, 0), 1e3),
            Parameter("outside it", "ms an image", (-1, 1), 1e3),
        ),
    ),
    Law(
        "Amdahl",
        amdahl,
        lambda low, high: ((1e-3 / high, 1.0),),
        (_one_user(0), Parameter("σ", "", (0, 1)), Parameter("limit", "images/s", (1, -1))),
    ),
    Law(
        "USL",
        scalability,
        lambda low, high: ((1e-3 / high, 1.0), (1e-3 / high**2, 1.0)),
        (_one_user(0, 0), Parameter("σ", "", (0, 1, 0)), Parameter("κ", "", (0, 0, 1))),
    ),
)
"""By the number of their parameters. `outside it` is the time that a user's image is not with the server."""


def best_law(points: Iterable[tuple[float, float]]) -> BestLaw | NoLaw:
    """The law that describes pairs of users and rate best, one pair for each run; or why there is none.

    Raises ValueError for less than 1 user or a rate that is not above 0.
    """
    ordered = tuple(sorted((float(users), float(rate)) for users, rate in points))
    if not all(users >= 1 and rate > 0 for users, rate in ordered):
        raise ValueError("a law takes 1 user or more, and rates above 0")
    return _best(ordered)


@lru_cache(maxsize=512)
def _best(points: tuple[tuple[float, float], ...]) -> BestLaw | NoLaw:
    levels = len({users for users, _ in points})
    if levels < LEAST_LEVELS:
        return NoLaw(f"{levels} of the {LEAST_LEVELS} levels that it takes")
    if len(points) < LEAST_RUNS:
        return NoLaw(f"{len(points)} of the {LEAST_RUNS} runs that it takes; --repeats 3 would do")
    users, rates = np.array(points).T
    every = sorted((fit(law, users, rates) for law in LAWS), key=lambda one: one.aicc)
    near = [one for one in every if one.aicc - every[0].aicc < TOLD_APART]
    best = min(near, key=lambda one: len(one.at))
    miss = sqrt(best.squares / len(points))
    if miss > LARGEST_MISS:
        said = f"the nearest, {best.law.name}, is {digits(100 * miss)} % off its points on average"
        return NoLaw(f"{said}, more than {100 * LARGEST_MISS:g} %")
    rivals = tuple((one.law.name, one.aicc - best.aicc) for one in every if one is not best)
    return BestLaw(best, _estimates(best, users), miss, rivals, (points[0][0], points[-1][0]))


def fit(law: Law, users: Floats, rates: Floats) -> Fitted:
    """The law with the least sum of squared differences of logs, to rates (n,) at users (n,)."""
    levels, place = np.unique(users, return_inverse=True)
    logs = np.log(rates)

    def left(at: Floats) -> Floats:
        """What remains of the logs once the scale is right, (n, m)."""
        over = logs[:, None] - np.log(law.shape(levels, at))[place]
        return np.asarray(over - over.mean(axis=0))

    at = _search(lambda at: (left(at) ** 2).sum(axis=0), law.bounds(levels[0], levels[-1]))
    squares = float((left(at) ** 2).sum())
    scale = exp(float((logs - np.log(law.shape(levels, at))[place, 0]).mean()))
    return Fitted(law, (scale, *at[:, 0].tolist()), squares, aicc(squares, len(logs), 2 + len(at)))


def aicc(squares: float, runs: int, parameters: int) -> float:
    """Akaike's criterion for small samples; of the parameters one is the noise.

    Source: C. M. Hurvich, C.-L. Tsai, Regression and time series model selection in small samples, Biometrika
    76 (1989). The noise is taken as no smaller than RESOLUTION: of laws that all fit, the shortest wins.
    """
    noise = max(squares / runs, log(RESOLUTION) ** 2)
    return runs * log(noise) + 2 * parameters * runs / (runs - parameters - 1)


def _search(missed: Callable[[Floats], Floats], bounds: tuple[tuple[float, float], ...]) -> Floats:
    """θ (p, 1) with the least of what is missed, by ever finer grids of logarithms within the bounds."""
    if not bounds:
        return np.ones((0, 1))
    lowest, highest = np.log(np.array(bounds)).T
    low, high, side = lowest, highest, SIDE[len(bounds)]
    for _ in range(ROUNDS):
        axes = [np.linspace(*ends, side) for ends in zip(low, high, strict=True)]
        grid = np.array(list(product(*axes))).T
        best = grid[:, np.argmin(missed(np.exp(grid)))]
        reach = KEPT_STEPS * (high - low) / (side - 1)
        low, high = np.maximum(best - reach, lowest), np.minimum(best + reach, highest)
    return np.asarray(np.exp(best)[:, None])


def _curve(law: Law, users: Floats, at: tuple[float, ...]) -> Floats:
    return np.asarray(at[0] * law.shape(users, np.array(at[1:]).reshape(-1, 1))[:, 0])


def _estimates(found: Fitted, users: Floats) -> tuple[Estimate, ...]:
    """The parameters as readers have them, with intervals by the curve's slopes there and Student's t."""
    logs = np.log(np.array(found.at))
    freedom = len(users) - len(logs)
    noise = max(found.squares / freedom, log(RESOLUTION) ** 2)
    spread = noise * _inverse(_slopes(found.law, users, logs))
    return tuple(_estimate(each, logs, spread, errors_wide(freedom)) for each in found.law.parameters)


def _slopes(law: Law, users: Floats, logs: Floats) -> Floats:
    """How the log of each point of the curve depends on the log of each fitted parameter, (n, p)."""
    ends = [
        [np.log(_curve(law, users, tuple(np.exp(logs + sign * step)))) for sign in (1, -1)]
        for step in STEP * np.eye(len(logs))
    ]
    return np.array([(above - below) / (2 * STEP) for above, below in ends]).T


def _inverse(slopes: Floats) -> Floats:
    """Of the slopes' squares; infinite where the points do not determine a parameter."""
    squares = slopes.T @ slopes
    if np.linalg.cond(squares) > 1 / STEP**2:
        return np.full(squares.shape, inf)
    return np.asarray(np.linalg.inv(squares))


def _estimate(parameter: Parameter, logs: Floats, spread: Floats, wide: float) -> Estimate:
    powers = np.array(parameter.powers)
    value = parameter.factor * prod(np.exp(logs * powers).tolist())
    squared = float(powers @ spread @ powers) if np.isfinite(spread).all() else inf
    times = exp(min(wide * sqrt(squared), WIDEST_TIMES))  # more would overflow and is too wide, too
    if times**2 > WIDEST_TIMES:
        return Estimate(parameter, value, None, None)
    return Estimate(parameter, value, value / times, value * times)
