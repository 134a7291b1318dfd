"""Endpoints of any model: what options and files say of them, and the rest, which servers are asked."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import grpc

from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.targets.endpoint_file import endpoint_of
from swarm.targets.preflight import check_kind
from users.backends.registry import backend_of, codec_of
from users.contract import DECLARED, Contract
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError, translated
from users.inputs.preparation import preparation_of
from users.transport.admin_connection import PATIENCE_S
from users.triton.api import STEPS_KNOWN, inner_last, open_api, steps_of
from users.triton.discovery import Asked, discovered, payload_of

ASKED = "asked"
"""The key of an endpoint's settings for what is declared of a model; the server is asked the rest."""


def own_endpoints(options: Options) -> list[Endpoint]:
    """Those of --endpoint, as far as options and files describe them. Raises UsageError."""
    found = [endpoint_of(argument, options.security) for argument in options.endpoint]
    for name, count in Counter(one.name for one in found).items():
        if count > 1:
            raise UsageError(f"--endpoint {name}: names {count} endpoints; give each its own name")
    spaces = per_endpoint("space", options.space, found)
    found = [replace(one, space=spaces.get(one.name) or one.space) for one in found]
    return with_servers(found)


def per_endpoint(option: str, given: Iterable[str], endpoints: Sequence[Endpoint]) -> dict[str, str]:
    """What an option says by the names of endpoints: `NAME=VALUE`, or `VALUE` for all. Raises UsageError."""
    names = [one.name for one in endpoints]
    known = ", ".join(names) or "none, since files set it themselves"
    told: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            told |= {other: text for other in names if other not in told}
        elif name not in names:
            raise UsageError(
                f"--{option} {text}: there is no --endpoint {name!r} that takes it; those are {known}"
            )
        else:
            told[name] = value
    if unused := [text for text in given if "=" not in text and text not in told.values()]:
        raise UsageError(f"--{option} {unused[0]}: applies to no --endpoint; those that take it are {known}")
    if empty := [name for name, value in told.items() if not value.strip()]:
        raise UsageError(f"--{option}: has no value for {empty[0]}; give NAME=VALUE")
    return told


def with_servers(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Each with a server: a host that has one address for HTTP and one for gRPC, or else its address."""
    places = {(one.host, one.backend, one.protocol, one.address) for one in endpoints if not one.server}
    alike = Counter(place[:3] for place in places)

    def server_of(one: Endpoint) -> str:
        pair = [alike[one.host, one.backend, protocol] for protocol in ("http", "grpc")]
        return one.host if pair == [1, 1] else one.address

    return [one if one.server else replace(one, server=server_of(one)) for one in endpoints]


def described(endpoints: Sequence[Endpoint], options: Options) -> list[Endpoint]:
    """The same with codec and contract; servers of KServe's protocol are asked for theirs.

    Raises UsageError.
    """
    asked = asked_of([one for one in endpoints if ASKED in one.settings], options)
    made = [whole(one, asked[one.name]) if ASKED in one.settings else one for one in endpoints]
    check_used(made, options)
    for one in made:
        try:
            codec_of(one)
        except (TargetError, ValueError) as error:
            raise UsageError(f"--endpoint {one.name}: {error}") from error
        except Exception as error:  # a custom codec
            raise UsageError(
                f"--endpoint {one.name}: its codec failed ({type(error).__name__}: {error})"
            ) from error
    return made


def check_used(endpoints: Sequence[Endpoint], options: Options) -> None:
    """Raises UsageError where an option says something of an input that no endpoint has."""
    taken = [given for one in endpoints for given in one.contract.inputs]
    for option, told in (("shape", shapes_of(options)), ("input", inputs_of(options))):
        for name in set(told) - {one.name for one in taken}:
            raise UsageError(f"--{option} {name}: no endpoint has an input of that name; leave it out")
    if options.prepare and not any(one.role == "picture" for one in taken):
        raise UsageError("--prepare: no endpoint takes the pixels of a picture; leave it out")


def asked_of(endpoints: Sequence[Endpoint], options: Options) -> dict[str, Asked]:
    """What options and files declare of each endpoint's model; options win. Raises UsageError."""
    prepare = per_endpoint("prepare", options.prepare, endpoints)
    output = per_endpoint("output", options.output, endpoints)
    shapes, inputs = shapes_of(options), inputs_of(options)
    found = {}
    for one in endpoints:
        own: Mapping[str, Any] = one.settings.get(ASKED) or {}
        how = prepare.get(one.name) or own.get("prepare") or ""
        try:
            found[one.name] = Asked(
                prepare=preparation_of(how) if how else None,
                output=output.get(one.name) or own.get("output") or "",
                shapes={**(own.get("shape") or {}), **shapes},
                max_batch=one.contract.max_batch,
                tokenizer=one.contract.tokenizer,
                inputs={**(own.get("input") or {}), **inputs},
                sends=sent_by(options),
            )
        except ValueError as error:
            raise UsageError(f"--prepare {how}: {error}") from error
    return found


def sent_by(options: Options) -> Literal["", "picture", "text"]:
    """Of which kind a study's own items are, where they are of one."""
    pictures = options.images or options.picture_mix
    if bool(pictures) == bool(options.texts):
        return ""
    return "picture" if pictures else "text"


def per_input(option: str, given: Iterable[str], example: str) -> dict[str, str]:
    """What an option says by the names of inputs: `INPUT=VALUE`. Raises UsageError."""
    told = dict(text.partition("=")[::2] for text in given)
    for name, value in told.items():
        if not value:
            raise UsageError(f"--{option} {name}: has no value; give it as {example}")
    return told


def shapes_of(options: Options) -> dict[str, str]:
    """What --shape says by the names of inputs. Raises UsageError."""
    return per_input("shape", options.shape, "pixel_values=B,3,384,384")


def inputs_of(options: Options) -> dict[str, str]:
    """What --input says by the names of inputs. Raises UsageError."""
    told = per_input("input", options.input, "sentences=text")
    for name, word in told.items():
        if word not in DECLARED:
            raise UsageError(f"--input {name}={word}: give one of {', '.join(DECLARED)}")
    return told


def whole(endpoint: Endpoint, asked: Asked) -> Endpoint:
    """An endpoint whose server has been asked what its model takes and gives. Raises UsageError."""
    name = f"--endpoint {endpoint.name} {endpoint.shown}"
    check_kind(name, endpoint)
    try:
        with translated(), open_api(endpoint, PATIENCE_S) as api:
            metadata = api.metadata(endpoint.model, endpoint.version)
            config: Mapping[str, Any] | None = None
            with suppress(RequestError, grpc.RpcError):  # only Triton has one
                config = api.config(endpoint.model, endpoint.version)
            steps = inner_last(endpoint, steps_of(config)) if config and steps_of(config) else ()
        contract = discovered(metadata, config, asked, endpoint.model)
        check_inputs(endpoint, contract)
    except TargetError as error:
        raise UsageError(f"--endpoint {endpoint.name}: {error}") from error
    except RequestError as error:
        raise UsageError(f"{name}: does not say what its model takes ({error.whole})") from error
    return finished(endpoint, contract, steps)


def check_inputs(endpoint: Endpoint, contract: Contract) -> None:
    """Raises UsageError where its file tells of an input that there is not."""
    names = [one.name for one in contract.inputs]
    for field in ("shape", "input"):
        for name in set(endpoint.settings[ASKED].get(field) or {}) - set(names):
            raise UsageError(
                f"--endpoint {endpoint.name}: field {field}: its model has no input {name!r}; they are"
                f" {', '.join(names)}"
            )


def finished(endpoint: Endpoint, contract: Contract, steps: Sequence[str]) -> Endpoint:
    """With a contract, and what follows from it."""
    return replace(
        endpoint,
        contract=contract,
        payload=payload_of(contract),
        codec=endpoint.codec or backend_of(endpoint).codecs[endpoint.protocol],
        space=endpoint.space or endpoint.model,
        settings={**endpoint.settings, STEPS_KNOWN: list(steps)},
    )
