"""--endpoint NAME=TARGET: an endpoint of any model, by a URL, or by a TOML file that describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from os.path import dirname, join
from typing import Any

from reports.ledger.files import check_regular, parsed_toml, whole_file
from swarm.errors import UsageError
from swarm.options.addresses import NO_USER, has_user
from swarm.options.endpoint_fields import (
    KEYS,
    METRICS,
    RPC_TABLES,
    STATED_IN_HEADER,
    TABLES,
    TEXT,
    TOP,
    Rule,
    check,
    check_headers,
)
from swarm.options.endpoint_url import EXAMPLE, RPC, SERVICE, Target, target_at
from swarm.targets.endpoints import security_for
from swarm.targets.protos import descriptors
from users.codecs.declared.grpc import message_template
from users.codecs.declared.http import template_of
from users.codecs.registry import OWN, codec_named, digest_of
from users.contract import Contract, Input, Layout
from users.endpoint import FLOOR, Endpoint, Payload
from users.errors import TargetError
from users.inputs.preparation import CLIP, PRESETS, Preparation, preparation_of
from users.redact import SECRET, keep_query, redacted
from users.tls import Security, SecurityError
from users.transport.headers import value_of

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
"""Of an endpoint."""
RESERVED = ("host", "content-length", "transfer-encoding", "connection", "expect", "traceparent")
"""Headers that the client itself sets."""
INSTEAD = {"host": "give host at the top of the file", "traceparent": "give --traceparent"}
"""What to do about some of them; others are left out."""
SHAPE = re.compile(r"(?:B,)?(?:3,([1-9]\d{0,3}),([1-9]\d{0,3})|([1-9]\d{0,3}),([1-9]\d{0,3}),3)")
SIDES = {"clip-336": 336}
"""The image size by preparation; 224 for all others."""
ASKED = ("prepare", "output", "shape", "input")
"""What may be declared of a model; the server is asked the rest."""
NEEDED = {
    "body": 'what a request holds, such as json = { input = ["$data_url"] }, or message = { … } over gRPC',
    "answer": 'where its vectors are, such as vectors = "data[].embedding"',
}
UNSAID = {
    SERVICE: "an HTTP service is called; describe it in a TOML file",
    RPC: "a gRPC service is called; describe it, with its method, in a TOML file",
}
PAYLOADS: Mapping[Payload, frozenset[str]] = {
    "jpeg": frozenset(("jpeg", "jpeg_base64", "data_url")),
    "fp32": frozenset(("pixels",)),
    "text": frozenset(("text",)),
}
"""By the placeholder in a body."""


def endpoint_of(argument: str, security: Security) -> Endpoint:
    """The endpoint of `NAME=TARGET`, as far as that describes it. Raises UsageError."""
    if "://" in argument and has_user(argument):
        raise UsageError(f"--endpoint: {NO_USER}")
    name, equals, target = argument.partition("=")
    if not equals or "://" in name:
        raise UsageError(
            f"--endpoint {argument}: has no name; give NAME=TARGET, such as siglip={EXAMPLE} or"
            " mine=mine.toml"
        )
    if not NAME.fullmatch(name) or name.endswith(FLOOR):
        raise UsageError(
            f"--endpoint {name}: is not a valid name; give at most 64 letters, digits, dots, - and _,"
            f" without {FLOOR}"
            f" at the end, such as siglip={EXAMPLE}"
        )
    if not target:
        raise UsageError(f"--endpoint {name}: has no target; give a URL such as {EXAMPLE}, or a TOML file")
    return (target_endpoint if "://" in target else read_endpoint)(name, target, security)


def target_endpoint(name: str, target: str, security: Security) -> Endpoint:
    """The endpoint at a URL of KServe's V2 protocol, whose server is asked the rest. Raises UsageError."""
    try:
        found = target_at(f"--endpoint {name}", target)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if found.backend in UNSAID:
        raise UsageError(
            f"--endpoint {name}: {redacted(target):.80} does not say how {UNSAID[found.backend]}"
            f" (examples/endpoints has one for each known server), or give a Triton's URL, such as {EXAMPLE}"
        )
    return discoverable(located(name, found, security), found, {}, "")


def read_endpoint(name: str, path: str, security: Security) -> Endpoint:
    """The endpoint that a TOML file describes. Raises UsageError."""
    option = f"--endpoint {name}: {path}"
    told = loaded(option, path)
    try:
        check("", told, TOP)
        if "url" not in told:
            raise ValueError(
                f"url: is missing; give one such as http://127.0.0.1:7997/embeddings, or {EXAMPLE}"
            )
        target = target_at("url", told["url"])
        check("", told, {key: TOP[key] for key in KEYS[target.backend]})
        begun = with_common(located(name, target, security), told, dirname(path))
        make = declared if target.backend in UNSAID else discoverable
        return make(begun, target, told, dirname(path))
    except ValueError as error:
        raise UsageError(f"{option}: field {error}") from error
    except RecursionError:
        raise UsageError(f"{option}: is nested too deeply; give a body like that of a request") from None


def loaded(option: str, path: str) -> dict[str, Any]:
    """What the file says. Raises UsageError."""
    try:
        return parsed_toml(whole_file(path).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"{option}: cannot be read ({error.strerror}); give a TOML file, or a URL such as {EXAMPLE}"
        ) from None
    except ValueError as error:
        raise UsageError(
            f"{option}: is not TOML ({error}); fix it, or give a URL such as {EXAMPLE}"
        ) from None


def located(name: str, target: Target, security: Security) -> Endpoint:
    """An endpoint of which only the place is known. Raises UsageError."""
    place = target.place
    return Endpoint(
        *(name, target.backend, target.protocol, "jpeg", place.address),
        tls=place.tls,
        authority=target.authority,
        security=security_for(name, security),
    )


def with_common(begun: Endpoint, told: Mapping[str, Any], folder: str) -> Endpoint:
    """The endpoint with what any file may say. Raises ValueError."""
    codec, sha256 = codec_in(told.get("codec", ""), begun, folder)
    taken = {"compression": told["compression"]} if "compression" in told else {}
    return replace(
        begun,
        settings={**begun.settings, **taken},
        authority=told.get("host", begun.authority),
        server=told.get("server", ""),
        space=told.get("space", ""),
        stands_for=told.get("stands_for", ""),
        computes=told.get("computes"),
        headers=headers_in(told.get("headers", {}), told.get("body", {})),
        codec=codec,
        codec_sha256=sha256,
    )


def codec_in(text: str, begun: Endpoint, folder: str) -> tuple[str, str]:
    """The path of a file with a codec, and its digest; or the name of a built-in one. Raises ValueError."""
    if not text:
        return "", ""
    path = join(folder, text) if text.endswith(OWN) else text
    try:
        sha256 = digest_of(path) if text.endswith(OWN) else ""
        wire = getattr(codec_named(path, sha256), "wire", "no protocol")
    except TargetError as error:
        raise ValueError(f"codec: {error}") from None
    if wire != begun.protocol:
        raise ValueError(
            f"codec: {text} is for {wire}, and the url for {begun.protocol}; give one that matches"
        )
    return path, sha256


def discoverable(begun: Endpoint, target: Target, told: Mapping[str, Any], folder: str) -> Endpoint:
    """An endpoint whose server is asked the rest; what is declared of that goes into `settings["asked"]`."""
    asked = {key: told[key] for key in ASKED if key in told}
    if "prepare" in told:
        preparation_in(told["prepare"], folder)
        asked["prepare"] = resolved(told["prepare"], folder)
    more = {"metrics": page_at("metrics", told["metrics"])} if "metrics" in told else {}
    return replace(
        begun,
        model=target.model,
        version=target.version,
        space=begun.space or target.model,
        contract=Contract(max_batch=told.get("max_batch", 0), tokenizer=file_in(told, "tokenizer", folder)),
        settings={**begun.settings, **more, "asked": asked},
    )


def declared(begun: Endpoint, target: Target, told: Mapping[str, Any], folder: str) -> Endpoint:
    """An endpoint whose requests and answers the file describes. Raises ValueError."""
    usual, rpc = f"declared-{target.protocol}", target.backend == RPC
    own = begun.codec not in ("", usual)
    settings = tables_in(told, RPC_TABLES if rpc else TABLES, own)
    settings |= schema_in(told, folder) if rpc and not own else {}
    uses, repeats = asked_for(settings.get("body"), told, rpc)
    max_batch = told.get("max_batch", 0) or (0 if repeats else 1)
    dimension = settings.get("answer", {}).get("dimension", 0)
    keep_query(target.path)
    made = replace(
        begun,
        payload=next((payload for payload, names in PAYLOADS.items() if names & uses), "json"),
        model=told.get("model", ""),
        path=f"/{told.get('method', '').lstrip('/')}" if rpc else target.path or "/",
        codec=begun.codec or usual,
        space=begun.space or told.get("model") or begun.name,
        contract=replace(contract_of(uses, told, folder), dimension=dimension, max_batch=max_batch),
        settings={**begun.settings, **settings},
    )
    if not own:
        codec_named(made.codec)(made)
    return made


def asked_for(
    body: Mapping[str, Any] | None, told: Mapping[str, Any], rpc: bool
) -> tuple[frozenset[str], bool]:
    """Which placeholders requests hold, and whether they may hold several items. Raises ValueError.

    A custom codec needs no body: it uses pixels if their shape is given, else files.
    """
    if body is None:
        return frozenset(("pixels",) if "shape" in told else ("jpeg",)), True
    template = (message_template if rpc else template_of)(body, told.get("max_batch", 0))
    return template.uses, template.repeats


def contract_of(uses: frozenset[str], told: Mapping[str, Any], folder: str) -> Contract:
    """What goes into requests, with what of it nobody has declared. Raises ValueError."""
    inputs = [Input("image", "BYTES", (1,), "jpeg")] if uses & PAYLOADS["jpeg"] else []
    inputs += [Input("text", "BYTES", (1,), "text")] if "text" in uses else []
    if "pixels" not in uses:
        if unused := next((key for key in ("prepare", "shape") if key in told), ""):
            raise ValueError(
                f"{unused}: needs $pixels, which the body does not have; leave it out, or send pixels"
            )
        return Contract(tuple(inputs))
    how = told.get("prepare", "")
    side = SIDES.get(how, 224)
    shape, layout = shape_in(told.get("shape", {"pixels": f"3,{side},{side}"}))
    guesses = [] if how else ["Pixels are prepared as for CLIP, since no preparation is declared (prepare)."]
    if "shape" not in told:
        guesses.append(f"Pixels are sent as [3,{side},{side}], since no shape is declared (shape).")
    inputs.append(Input("pixels", "FP32", shape, "picture", layout))
    preparation = preparation_in(how, folder) if how else CLIP
    return Contract(tuple(inputs), preparation, guesses=tuple(guesses))


def shape_in(told: Mapping[str, str]) -> tuple[tuple[int, ...], Layout]:
    """The shape of `$pixels`, and its layout. Raises ValueError."""
    found = SHAPE.fullmatch(told.get("pixels", "")) if [*told] == ["pixels"] else None
    if found is None:
        raise ValueError(
            'shape: does not fit $pixels; give { pixels = "3,224,224" }, or "224,224,3" for NHWC'
        )
    sides = tuple(int(side) for side in found.groups() if side)
    return ((3, *sides), "NCHW") if found[1] else ((*sides, 3), "NHWC")


def tables_in(told: Mapping[str, Any], rules: Mapping[str, Mapping[str, Rule]], own: bool) -> dict[str, Any]:
    """The tables that say how it is asked; with a codec of one's `own` none is needed. Raises ValueError."""
    for table, fix in NEEDED.items():
        if table not in told and not own:
            raise ValueError(f"{table}: is missing; give {fix}")
    found = {table: told[table] for table in rules if table in told}
    for table, values in found.items():
        check(f"{table}.", values, rules[table])
    return found | ({"times": times_in(found["times"])} if "times" in found else {})


def times_in(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where the server states its own times. Raises ValueError."""
    if len(told) != 1:
        raise ValueError(f"times: has {' and '.join(told)}; give only one of them")
    check_headers("times.headers.", told.get("headers", {}), STATED_IN_HEADER)
    if "metrics" not in told:
        return told
    metrics = told["metrics"]
    check("times.metrics.", metrics, METRICS)
    if "url" not in metrics or len(metrics) < 2:
        raise ValueError(
            "times.metrics: is incomplete; give url, and the metric for requests, queue or compute"
        )
    return {"metrics": {**metrics, "url": page_at("times.metrics.url", metrics["url"])}}


def page_at(field: str, url: str) -> str:
    """The whole URL of a page of metrics. Raises ValueError."""
    page = target_at(field, url)
    if page.backend != SERVICE:
        raise ValueError(
            f"{field}: {redacted(url):.80} is not a valid URL; give one such as http://gpu-host:8002/metrics"
        )
    path = page.path if page.path.strip("/") else "/metrics"
    keep_query(path)
    return f"{'https' if page.place.tls else 'http'}://{page.place.address}{path}"


def schema_in(told: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """What the method over gRPC takes and gives. Raises ValueError."""
    if "method" not in told:
        raise ValueError('method: is missing; give one such as "package.Service/Method"')
    paths = [join(folder, told[key]) for key in ("protoset", "proto") if key in told]
    if len(paths) != 1:
        raise ValueError("protoset: describes what the method takes; give either a protoset or a proto")
    try:
        return {"descriptors": descriptors(paths[0])}
    except UsageError as error:
        raise ValueError(str(error)) from None


def headers_in(told: Mapping[str, str], body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Headers as they are sent, but for variables in their values, which must be set. Raises ValueError."""
    check_headers("headers.", told, TEXT)
    names = [name.lower() for name in told]
    for name, value in told.items():
        field, lower = f"headers.{name}", name.lower()
        if lower in RESERVED or (lower == "content-type" and "multipart" in body):
            raise ValueError(f"{field}: is set by the client itself; {INSTEAD.get(lower, 'leave it out')}")
        if names.count(lower) > 1:
            raise ValueError(f"{field}: is given twice; give it once")
        if SECRET.search(name) and "${" not in value:
            raise ValueError(
                f"{field}: may be a secret, which would be saved in the study's files; give an environment"
                ' variable instead, such as "${MY_TOKEN}"'
            )
        try:
            value_of(name, value)
        except SecurityError as error:
            raise ValueError(f"{field}: {error}") from None
    return tuple(told.items())


def preparation_in(text: str, folder: str) -> Preparation:
    """The preset of a name, or what a file says. Raises ValueError."""
    try:
        return preparation_of(resolved(text, folder))
    except ValueError as error:
        raise ValueError(f"prepare: {error}") from None


def resolved(text: str, folder: str) -> str:
    """A preset as it is; the path of a file from where the endpoint's file is."""
    return text if text in PRESETS else join(folder, text)


def file_in(told: Mapping[str, Any], key: str, folder: str) -> str:
    """The path of a file that can be read; empty where none is named. Raises ValueError."""
    if key not in told:
        return ""
    path = join(folder, told[key])
    try:
        check_regular(path)
    except OSError as error:
        raise ValueError(f"{key}: {path} cannot be read ({error.strerror}); name another file") from None
    return path
