"""Server settings as a study varies them: a queue delay and instances, set for a run, put back later."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gevent

from swarm.errors import RunFailedError, UsageError
from swarm.plan.cell import Cell
from swarm.targets.cold_start import ANNOUNCE_S
from users.backends.base import Adjust, Config
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import TargetError

READY_S, POLL_S = 30.0, 0.05
Model = tuple[str, str, str]


@dataclass
class SetModel:
    """A model with the configuration that it was found with, and the one that it has now; None: unknown."""

    endpoint: Endpoint
    original: Config
    now: Config | None


class ModelControl:
    """The models of a study's servers; `say` tells a person, `clock` and `sleep` count seconds."""

    def __init__(
        self,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = gevent.sleep,
    ) -> None:
        self._say, self._clock, self._sleep = say, clock, sleep
        self._held: dict[Model, SetModel] = {}
        self._inner: dict[str, Endpoint] = {}

    def check(self, cells: Sequence[Cell]) -> None:
        """Cells' settings can be made, tried by loading a model that is none. Raises UsageError."""
        # A study that was refused has held models, too, and their owner may have set them otherwise since.
        self._held = {model: held for model, held in self._held.items() if held.now != held.original}
        found: dict[Endpoint, list[Cell]] = {}
        for cell in cells:
            if cell.adjustable and wants(cell):
                found.setdefault(cell.endpoint, []).append(cell)
        for endpoint, own in found.items():
            name = f"{endpoint.name} {endpoint.address}"
            try:
                held = self._hold(endpoint)
                why = adjust_of(held.endpoint).refusal(held.endpoint)
            except TargetError as error:
                raise UsageError(f"{name}: {error}, so its settings cannot be varied") from error
            try:
                for cell in own:
                    configured(held, cell)
            except TargetError as error:
                why = why or str(error)
            if why:
                raise UsageError(f"{name}: {why}")

    def apply(self, cell: Cell) -> list[Endpoint]:
        """Set the cell's server as it says; the endpoints that were loaded again. Raises RunFailedError.

        A cell that says nothing gets its server as it was found. A server that passes requests on asks one of
        the others, so all are put back for it.
        """
        try:
            if backend_of(cell.endpoint).facts.passes_to:
                loaded = [held.endpoint for held in self._held.values() if self._set(held, held.original)]
                return [*loaded, cell.endpoint] if loaded else []
            if not cell.adjustable or not (wants(cell) or self._held):
                return []
            held = self._hold(cell.endpoint)
            if not self._set(held, configured(held, cell)):
                return []
            # An ensemble comes after its parts.
            self._wait_until_ready(cell.endpoint)
            return [cell.endpoint]
        except TargetError as error:
            raise RunFailedError(f"its server cannot be configured for this cell: {error}") from error

    def restore(self) -> None:
        """Put back what was changed. It never raises: what cannot be put back is said."""
        for model, held in list(self._held.items()):
            try:
                self._load(held, held.original)
                # Until the next study, its owner may set it otherwise.
                del self._held[model]
            except TargetError as error:
                self._say(
                    f"inferswarm: {held.endpoint.model} at {held.endpoint.address} could not be restored"
                    f" to its"
                    f" settings ({error}); load it again, or restart its server"
                )

    def _hold(self, endpoint: Endpoint) -> SetModel:
        """The model that computes for an endpoint, as it was found. Raises TargetError."""
        if endpoint.name not in self._inner:
            self._inner[endpoint.name] = adjust_of(endpoint).inner(endpoint)
        model = self._inner[endpoint.name]
        # Both protocols of a server have a port of their own on one host.
        key = (model.host, model.shares, model.model)
        if key not in self._held:
            original = adjust_of(model).config_of(model)
            self._held[key] = SetModel(model, original, original)
        return self._held[key]

    def _set(self, held: SetModel, config: Config) -> bool:
        """As `_load`, and it looks at what there is: another may have set it since, or the same model held by
        another name of its host. Raises TargetError.
        """
        if held.now == config and in_force(held) != adjust_of(held.endpoint).serving(config):
            held.now = None
        return self._load(held, config)

    def _load(self, held: SetModel, config: Config) -> bool:
        """Load the model so, unless it is; whether it was loaded. Raises TargetError."""
        if held.now == config:
            return False
        # A load that is cut off may go through after all.
        held.now = None
        text = f"{held.endpoint.model} is still loading with other settings; it may be building an engine"
        announcement = gevent.spawn_later(ANNOUNCE_S, self._say, text)
        try:
            adjust_of(held.endpoint).load(held.endpoint, config)
            self._wait_until_ready(held.endpoint)
        finally:
            announcement.kill()
        asked, told = adjust_of(held.endpoint).serving(config), in_force(held)
        if told != asked:
            raise TargetError(
                f"{held.endpoint.model} was loaded, but has {in_words(told)}, not {in_words(asked)}"
            )
        held.now = config
        return True

    def _wait_until_ready(self, endpoint: Endpoint) -> None:
        """Return once the endpoint's model answers requests. Raises TargetError after `READY_S`."""
        over = self._clock() + READY_S
        while not adjust_of(endpoint).is_ready(endpoint):
            if self._clock() > over:
                raise TargetError(f"{endpoint.model} is not ready {READY_S:g} s after it was loaded")
            self._sleep(POLL_S)


def adjust_of(endpoint: Endpoint) -> Adjust:
    """How a server is set; there must be a way."""
    adjust = backend_of(endpoint).adjust
    assert adjust is not None, "only adjustable cells configure their servers"
    return adjust


def configured(held: SetModel, cell: Cell) -> Config:
    """A model's configuration with a cell's settings. Raises TargetError where it cannot have them."""
    return adjust_of(held.endpoint).configured(held.original, cell.queue_delay_us, cell.instances)


def in_force(held: SetModel) -> dict[str, Any]:
    """What of its configuration matters, as it is now. Raises TargetError."""
    return adjust_of(held.endpoint).serving(adjust_of(held.endpoint).config_of(held.endpoint))


def wants(cell: Cell) -> bool:
    """Whether a cell says anything of its server's settings."""
    return cell.queue_delay_us is not None or cell.instances > 0


def in_words(serving: dict[str, Any]) -> str:
    """How a model is set up: `2 instances, a queue delay of 1 ms`."""
    delay = f"a queue delay of {serving['batching_delay_ns'] / 1e6:g} ms"
    return f"{serving['instances']} instances, {delay if serving['batching'] else 'no dynamic batching'}"
