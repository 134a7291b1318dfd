"""Settings of Triton's models, by its model-control API, in the form of users.backends.base.Adjust.

A model is loaded again with another configuration, and the old one answers until the new one is ready.
Nothing of it is written to the server's model repository.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import grpc

from users.endpoint import Endpoint
from users.errors import RequestError, TargetError, short, translated
from users.redact import CONTROL
from users.transport.admin_connection import PATIENCE_S
from users.triton.api import Answer, model_config, open_api, steps_behind, steps_of
from users.triton.api import serving as serving

LOAD_S = 900.0
"""How long a load may take: building an engine while loading can take five minutes."""
NOBODY = "inferswarm-asks-whether-models-can-be-loaded"
"""No model has this name, so a request to load it changes nothing."""
EXPLICIT = (
    "start tritonserver with --model-control-mode=explicit --load-model=*, or do not change its settings:"
    " no --queue-delay-us, no --instances, no step6b, and of step5a only --cells '*/c1'"
)
RESTRICTED = "restricted"
"""In tritonserver's answer to a request without the secret."""
SECRET = f"set {CONTROL} in the environment to NAME=VALUE, as after the colon of its --http-restricted-api"


def inner(endpoint: Endpoint) -> Endpoint:
    """The endpoint of the model that computes: a step of an ensemble, or the endpoint's own model.

    Raises TargetError.
    """
    steps = steps_of(config_of(endpoint))
    return replace(endpoint, model=(steps_behind(endpoint) or steps)[-1], version="") if steps else endpoint


def config_of(endpoint: Endpoint) -> Answer:
    """The configuration of the endpoint's own model. Raises TargetError."""
    try:
        with translated():
            return model_config(endpoint)
    except RequestError as error:
        raise TargetError(f"the configuration of {endpoint.model} cannot be read ({error})") from error


def refusal(endpoint: Endpoint) -> str:
    """Why the server cannot load models, in its own words, and the fix; empty if it can."""
    try:
        load(replace(endpoint, model=NOBODY))
    except TargetError as error:
        why = str(error)
        fix = SECRET if RESTRICTED in why else EXPLICIT
        # One that is in explicit mode has looked for the model.
        return "" if NOBODY in why else f"its model cannot be loaded again ({why}); {fix}"
    return ""


def load(endpoint: Endpoint, config: Answer | None = None) -> None:
    """Load the endpoint's model, with this configuration if any, for as long as it takes.

    Raises TargetError.
    """
    try:
        with open_api(endpoint, LOAD_S, control=True) as api:
            api.load(endpoint.model, {} if config is None else {"config": json.dumps(config)})
    except (grpc.RpcError, RequestError) as error:
        raise TargetError(short(error)) from error


def is_ready(endpoint: Endpoint) -> bool:
    """Whether the endpoint's model answers requests. Raises TargetError where its server does not."""
    try:
        with open_api(endpoint, PATIENCE_S) as api:
            return not api.unready(endpoint.model, endpoint.version)
    except RequestError as error:
        if error.code:
            return False
        raise TargetError(short(error)) from error
    except grpc.RpcError as error:
        raise TargetError(short(error)) from error


def configured(original: Answer, queue_delay_us: int | None, instances: int) -> Answer:
    """A model's configuration with other settings: the original itself where it has them already.

    Raises TargetError where it has nothing that could be set so.
    """
    made, name = dict(original), original.get("name")
    if queue_delay_us is not None:
        if original.get("dynamic_batching") is None:
            raise TargetError(
                f"{name} has no dynamic batching, so --queue-delay-us cannot be applied; give its"
                " config.pbtxt dynamic_batching { }, or leave the option out"
            )
        batching = {**original["dynamic_batching"], "max_queue_delay_microseconds": queue_delay_us}
        made["dynamic_batching"] = batching
    if instances:
        if not original.get("instance_group"):
            raise TargetError(f"{name} declares no instances, so --instances cannot be applied; leave it out")
        made["instance_group"] = list(groups(original["instance_group"], instances))
    return original if serving(made) == serving(original) else made


def groups(original: Iterable[Answer], instances: int) -> Iterator[dict[str, Any]]:
    """So many instances in place of a model's own, spread evenly over its GPUs; some may have none."""
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
