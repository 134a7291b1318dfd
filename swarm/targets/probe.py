"""`inferswarm probe TARGET`: what is there, how it would be asked, and what it answers; no load."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.format import plain, plain_lines
from swarm.errors import UsageError
from swarm.options.model import DESCRIBED, TLS, Options, flag, known_options
from swarm.options.parse import add, parsed_as, resolve
from swarm.redaction import guard_output
from swarm.targets.discover import described, own_endpoints
from swarm.targets.preflight import first_reply, no_embedding, refused_pair, verdict
from users.backends.asking import read_counters, unread
from users.contract import Input
from users.endpoint import Endpoint
from users.errors import RequestError
from users.inputs.images import ImageSet, load_images
from users.inputs.pictures import ImageSetError
from users.load.check import describe_difference, similarity
from users.refusals import patient
from users.transport.base import Reply

NAME = "probed"
"""The name of a target without one."""
REPEATED = ("prepare", "output", "shape", "input", "space")
SENT = ("images", "texts")
OPTIONS = (*SENT, "pool_mb")
ROLES = {
    "picture": "a picture's pixels",
    "jpeg": "an encoded JPEG",
    "text": "a text",
    "ids": "token ids",
    "ones": "ones",
    "zeros": "zeros",
    "random": "random numbers",
}
SAME = 0.999


@dataclass(frozen=True)
class Probed:
    """What came back: of the first item, and of the first two in one request, or why none did."""

    endpoint: Endpoint
    one: Reply
    took_ns: int
    two: Reply | str
    second: Reply | None


def main(argv: list[str]) -> int:
    """Print what a target is; 0 where it can be asked. Raises UsageError where it cannot."""
    parsed = parser().parse_args(argv)
    name, _, target = parsed.target.partition("=") if is_named(parsed.target) else (NAME, "=", parsed.target)
    options = options_of(parsed, f"{name}={target}")
    try:
        images = load_images(options.images, options.texts, options.pool_bytes)
    except ImageSetError as error:
        raise UsageError(str(error)) from error
    if images.left_out:
        tell(f"--images: of its files these are left out: {images.left_out}")
    endpoints = own_endpoints(options)
    guard_output()
    with patient(tell):
        (endpoint,) = described(endpoints, options)
        answers = asked(endpoint, images)
    tell("\n".join([f"{name}: {target}", *lines(answers), "", command(f"{name}={target}", options)]))
    if parsed.out:
        write(Path(parsed.out), target, answers)
        tell(f"\nWritten to {parsed.out}: edit it, and use it with --endpoint NAME={parsed.out}")
    return 0


def tell(text: str) -> None:
    """Print a sentence, in which there may be a server's words."""
    print(plain_lines(text))


def is_named(target: str) -> bool:
    """Whether a target has its name before it."""
    return "=" in target.partition("/")[0]


def command(endpoint: str, options: Options) -> str:
    """What measures it."""
    made = ["inferswarm", "run", "--endpoint", endpoint]
    for name in REPEATED:
        made += [word for value in getattr(options, name) for word in (flag(name), value)]
    for name in SENT:
        made += [flag(name), getattr(options, name)] if options.given(name) else []
    return shlex.join(made)


def parser() -> argparse.ArgumentParser:
    """With those of a study's options that say how an endpoint is asked."""
    made = argparse.ArgumentParser(
        prog="inferswarm probe",
        description="Queries an endpoint's metadata, sends it one item and then two, and reports how a"
        " study would call"
        " it. TARGET is what --endpoint of a study takes, with or without NAME=.",
    )
    made.add_argument(
        "target", metavar="TARGET", help="a URL, e.g. triton+grpc://gpu:8001/siglip, or a TOML file"
    )
    made.add_argument("--out", metavar="FILE", help="write what was found to a TOML file that you can edit")
    for name, option in known_options().items():
        if (option.group in (DESCRIBED, TLS) or name in OPTIONS) and name != "endpoint":
            add(made, name, option)
    return made


def options_of(parsed: argparse.Namespace, endpoint: str) -> Options:
    """A study's options with those that were given. Raises UsageError."""
    unset = dict.fromkeys(map(parsed_as, known_options()))
    return resolve(argparse.Namespace(**{**unset, **vars(parsed), "endpoint": [endpoint]}))


def asked(endpoint: Endpoint, images: ImageSet) -> Probed:
    """One item, then two in one request. Raises UsageError where the first is not embedded."""
    first = verdict(endpoint, images, tell)
    endpoint = first.endpoint
    one, took_ns = single_reply(endpoint, images, 0)
    two: Reply | str = "it takes one item per request"
    second: Reply | None = None
    if endpoint.contract.max_batch != 1:
        try:
            two = first_reply(endpoint, images, 2, tell)[0]
        except RequestError as error:
            two = refused_pair(endpoint, images, tell, error)
        else:
            second, _ = single_reply(endpoint, images, 1)
    return Probed(endpoint, one, min(took_ns, first.took_ns), two, second)


def single_reply(endpoint: Endpoint, images: ImageSet, start: int) -> tuple[Reply, int]:
    """The answer to one item, and its nanoseconds. Raises UsageError."""
    try:
        return first_reply(endpoint, images, 1, tell, start)
    except RequestError as error:
        raise UsageError(
            f"--endpoint {endpoint.name} {endpoint.shown}: {no_embedding(endpoint, error)}"
        ) from error


def lines(found: Probed) -> Iterator[str]:
    """What a person reads, part by part."""
    endpoint, contract = found.endpoint, found.endpoint.contract
    version = f", version {endpoint.version}" if endpoint.version else ""
    yield row("server", f"{endpoint.backend}, over {endpoint.protocol} at {endpoint.shown}")
    yield row(
        "model", f"{endpoint.model or 'not named'}{version}; embeddings of the space {endpoint.space!r}"
    )
    yield row("codec", endpoint.codec)
    for one in contract.inputs:
        yield row("input", input_text(one, endpoint))
    output = f"{contract.output}: " if contract.output else ""
    yield row("output", f"{output}{numbers_text(found)}")
    yield row("first answer", f"{plural(len(found.one.embeddings), 'row')} in {found.took_ns / 1e6:.1f} ms")
    yield row("two items", two_text(found))
    yield row("its own times", times_text(endpoint, found.one))
    for guess in contract.guesses:
        yield row("guessed", guess)


def row(name: str, text: str) -> str:
    """One line."""
    return f"  {name:<14} {plain(text)}"


def input_text(one: Input, endpoint: Endpoint) -> str:
    """`pixel_values FP16 [384, 384, 3]: a picture's pixels, NHWC, prepared as siglip`."""
    told = [ROLES[one.role], one.layout]
    told += [f"prepared as {endpoint.contract.preparation.name}"] if one.role == "picture" else []
    return f"{one.name} {one.dtype} {list(one.shape)}: {', '.join(filter(None, told))}"


def numbers_text(found: Probed) -> str:
    """How many numbers an item has, and whether they are a vector of length 1."""
    dimension = found.endpoint.contract.dimension
    return "1 number" if dimension == 1 else f"{dimension} numbers, {length_text(found)}"


def length_text(found: Probed) -> str:
    """Whether its vectors have length 1."""
    lengths = np.linalg.norm(found.one.embeddings, axis=1)
    return "of length 1" if found.endpoint.contract.unit else f"not of length 1 ({lengths[0]:.4g})"


def two_text(found: Probed) -> str:
    """What came of two items in one request."""
    if isinstance(found.two, str):
        return found.two
    rows = found.two.embeddings
    if len(rows) != 2 or found.second is None:
        return f"{plural(len(rows), 'row')}: set max_batch = 1"
    if rows.shape[1] != found.endpoint.contract.dimension:
        return f"rows of {rows.shape[1]} numbers; for a single item {found.endpoint.contract.dimension}"
    singles = found.one.embeddings[0], found.second.embeddings[0]
    pairs = list(zip(rows, singles, strict=True))
    if not all(similarity(row, single) >= SAME for row, single in pairs):
        said = " and ".join(describe_difference(row, single) for row, single in pairs)
        return f"2 rows, but they differ from those of the single items ({said}): see answer.order"
    bound = found.endpoint.contract.max_batch
    most = f"at most {bound} a request" if bound else "no limit is known"
    if similarity(*singles) >= SAME:
        return f"2 rows; the two items' outputs are alike, so their order cannot be told; {most}"
    return f"2 rows, in the order sent; {most}"


def times_text(endpoint: Endpoint, reply: Reply) -> str:
    """Where the server states its own times, and what will not be known where it does not."""
    if reply.server_ns:
        return f"with each answer: {', '.join(reply.server_ns)}"
    if gaps := list(unread(endpoint)):
        return f"unknown, since {'; '.join(gaps)}"
    counted = read_counters(endpoint).get("counters") or {}
    parts = [name.removesuffix("_ns") for name in counted if name.endswith("_ns")]
    if parts and not {"requests", "successes"} & counted.keys():
        return f"its counters: {', '.join(parts)}; unknown per request, since requests is not counted"
    if parts:
        return f"its counters: {', '.join(parts)}"
    return "nowhere: a study cannot separate its queue wait from its compute time"


def plural(count: int, word: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} {word}{'s' * (count != 1)}"


def write(path: Path, target: str, found: Probed) -> None:
    """The description as a file to edit. Raises UsageError where that cannot be written, or is there."""
    if target.endswith(".toml") or "://" not in target:
        raise UsageError(f"--out: {target} is already a file; edit it, or leave out --out")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(toml_of(target, found))
    except FileExistsError:
        raise UsageError(f"--out {path}: already exists; name another file") from None
    except OSError as error:
        raise UsageError(f"--out {path}: cannot be written ({error.strerror}); name another file") from error


def toml_of(target: str, found: Probed) -> str:
    """What was found in the form that --endpoint takes."""
    endpoint, contract = found.endpoint, found.endpoint.contract
    most = contract.max_batch
    if isinstance(found.two, Reply) and len(found.two.embeddings) != 2:
        most = 1
    given = {"url": target, "space": endpoint.space, "output": contract.output}
    told = [f"{field} = {quoted(text)}" for field, text in given.items()]
    told += (
        [f'prepare = "{contract.preparation.name}"']
        if any(i.role == "picture" for i in contract.inputs)
        else []
    )
    told += [f"max_batch = {most}"] if most else ["# max_batch = 32   # most items a request"]
    shapes = [
        f'{quoted(one.name)} = "{",".join([*(["B"] if contract.batched else []), *map(str, one.shape)])}"'
        for one in contract.inputs
        if all(size > 0 for size in one.shape)
    ]
    told += [f"shape = {{ {', '.join(shapes)} }}"] if shapes else []
    roles = [
        f'{quoted(one.name)} = "{"picture" if one.role == "jpeg" else one.role}"' for one in contract.inputs
    ]
    told += [f"input = {{ {', '.join(roles)} }}"]
    comments = [f"# guessed: {guess}" for guess in contract.guesses]
    return "\n".join(["# Written by inferswarm probe.", *told, *comments, ""])


def quoted(text: str) -> str:
    """A text, or a key, as TOML has it; what a terminal obeys is escaped."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in written)
