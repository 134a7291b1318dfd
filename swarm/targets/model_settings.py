"""Server settings as a study varies them: a model's queue delay and instances, set for a run, put back later.

Triton takes them by its model-control API: the model is loaded again with another configuration, and the old
one answers until the new one is ready. Nothing of it is written to the server's model repository.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gevent

from swarm.backends import admin_client
from swarm.backends.registry import GATEWAY
from swarm.backends.server_setup import (
    ModelControlError,
    config_of,
    inner,
    load,
    refusal,
    triton_serving,
    wait_until_ready,
)
from swarm.errors import RunFailedError, UsageError
from swarm.plan.cell import Cell
from swarm.targets.cold_start import ANNOUNCE_S
from users.endpoint import Endpoint

EXPLICIT = (
    "start tritonserver with --model-control-mode=explicit --load-model=*, or leave its settings as they are:"
    " no --queue-delay-us, no --instances, no step6b, and of step5a only --cells '*/c1'"
)
RESTRICTED = "restricted"
"""In what tritonserver says to who does not send the secret."""
SECRET = (
    f"set {admin_client.VARIABLE} in the environment to NAME=VALUE, as behind the colon of its"
    " --http-restricted-api"
)
Model = tuple[str, str, str]


@dataclass
class SetModel:
    """A model with the configuration that it was found with, and the one that it has now; None: unknown."""

    endpoint: Endpoint
    original: Mapping[str, Any]
    now: Mapping[str, Any] | None


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
                why = refusal(held.endpoint)
            except ModelControlError as error:
                raise UsageError(f"{name}: {error}, so its settings cannot be varied") from error
            if why:
                mend = SECRET if RESTRICTED in why else EXPLICIT
                raise UsageError(f"{name}: its model cannot be loaded again ({why}); {mend}")
            if problem := lacking(held.original, own):
                raise UsageError(f"{name}: {problem}")

    def apply(self, cell: Cell) -> list[Endpoint]:
        """Set the cell's server as it says; the endpoints that were loaded again. Raises RunFailedError.

        A cell that says nothing gets its server as it was found. A gateway's server is one of the others, so
        all are put back for it.
        """
        try:
            if cell.endpoint.backend == GATEWAY:
                loaded = [held.endpoint for held in self._held.values() if self._set(held, held.original)]
                return [*loaded, cell.endpoint] if loaded else []
            if not cell.adjustable or not (wants(cell) or self._held):
                return []
            held = self._hold(cell.endpoint)
            if problem := lacking(held.original, [cell]):
                raise ModelControlError(problem)
            if not self._set(held, configured(held.original, cell)):
                return []
            # An ensemble comes after its parts.
            wait_until_ready(cell.endpoint, self._clock, self._sleep)
            return [cell.endpoint]
        except ModelControlError as error:
            raise RunFailedError(f"its server cannot be set as the cell says: {error}") from error

    def restore(self) -> None:
        """Put back what was changed. It never raises: what cannot be put back is said."""
        for model, held in list(self._held.items()):
            try:
                self._load(held, held.original)
                # Until the next study, its owner may set it otherwise.
                del self._held[model]
            except ModelControlError as error:
                self._say(
                    f"inferswarm: {held.endpoint.model} at {held.endpoint.address} could not be put back as"
                    f" it was ({error}); load it again, or restart its server"
                )

    def _hold(self, endpoint: Endpoint) -> SetModel:
        """The model that computes for an endpoint, as it was found. Raises ModelControlError."""
        if endpoint.name not in self._inner:
            self._inner[endpoint.name] = inner(endpoint)
        model = self._inner[endpoint.name]
        # Both protocols of a server have a port of their own on one host.
        key = (model.host, model.server, model.model)
        if key not in self._held:
            original = config_of(model)
            self._held[key] = SetModel(model, original, original)
        return self._held[key]

    def _set(self, held: SetModel, config: Mapping[str, Any]) -> bool:
        """As `_load`, and it looks at what there is: another may have set it since, or the same model held by
        another name of its host. Raises ModelControlError.
        """
        if held.now == config and triton_serving(config_of(held.endpoint)) != triton_serving(config):
            held.now = None
        return self._load(held, config)

    def _load(self, held: SetModel, config: Mapping[str, Any]) -> bool:
        """Load the model so, unless it is; whether it was loaded. Raises ModelControlError."""
        if held.now == config:
            return False
        # A load that is cut off may go through after all.
        held.now = None
        text = (
            f"{held.endpoint.model} is still being loaded with other settings; an engine may be being built"
        )
        announcement = gevent.spawn_later(ANNOUNCE_S, self._say, text)
        try:
            load(held.endpoint, config)
            wait_until_ready(held.endpoint, self._clock, self._sleep)
        finally:
            announcement.kill()
        asked, told = triton_serving(config), triton_serving(config_of(held.endpoint))
        if told != asked:
            raise ModelControlError(
                f"{held.endpoint.model} was loaded, but has {in_words(told)}, not {in_words(asked)}"
            )
        held.now = config
        return True


def wants(cell: Cell) -> bool:
    """Whether a cell says anything of its server's settings."""
    return cell.queue_delay_us is not None or cell.instances > 0


def in_words(serving: Mapping[str, Any]) -> str:
    """How a model is set up: `2 instances, a queue delay of 1 ms`."""
    delay = f"a queue delay of {serving['batching_delay_ns'] / 1e6:g} ms"
    return f"{serving['instances']} instances, {delay if serving['batching'] else 'no dynamic batching'}"


def lacking(config: Mapping[str, Any], cells: Collection[Cell]) -> str:
    """Why a model of this configuration cannot be set as some cells say; empty where it can."""
    if any(cell.queue_delay_us is not None for cell in cells) and config.get("dynamic_batching") is None:
        return (
            f"{config.get('name')} has no dynamic batching, so --queue-delay-us has nothing to set; give its"
            " config.pbtxt dynamic_batching { }, or leave the option out"
        )
    if any(cell.instances for cell in cells) and not config.get("instance_group"):
        return f"{config.get('name')} names no instances, so --instances cannot set them; leave it out"
    return ""


def configured(original: Mapping[str, Any], cell: Cell) -> Mapping[str, Any]:
    """A model's configuration with a cell's settings: the original itself where it has them already."""
    made = dict(original)
    if cell.queue_delay_us is not None:
        batching = {**original["dynamic_batching"], "max_queue_delay_microseconds": cell.queue_delay_us}
        made["dynamic_batching"] = batching
    if cell.instances:
        made["instance_group"] = list(groups(original["instance_group"], cell.instances))
    return original if triton_serving(made) == triton_serving(original) else made


def groups(original: Iterable[Mapping[str, Any]], instances: int) -> Iterator[dict[str, Any]]:
    """So many instances in place of a model's own, as evenly over its GPUs as goes; some may have none."""
    found = list(original)
    gpus = list(dict.fromkeys(gpu for group in found for gpu in group.get("gpus", ())))
    if not gpus:
        yield {**found[0], "count": instances}
        return
    of_gpus = next(group for group in found if group.get("gpus"))
    each, more = divmod(instances, len(gpus))
    shares = ((each + 1, gpus[:more]), (each, gpus[more:]))
    for place, (count, some) in enumerate(share for share in shares if all(share)):
        yield {**of_gpus, "name": f"{of_gpus.get('name', 'group')}_{place}", "count": count, "gpus": some}
