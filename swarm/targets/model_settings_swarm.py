"""A model's configuration with the settings that a cell asks for. Pure: nothing is loaded here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from swarm.backends.server_info import triton_serving
from swarm.plan.cell import Cell


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
    """So many instances in place of a model's own: shared out over its GPUs, as evenly as goes.

    With fewer instances than GPUs, the first ones have one each and the others none.
    """
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
