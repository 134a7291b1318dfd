"""A unary method of any gRPC service, asked as a file describes it: its message, and its answer."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from numpy.typing import NDArray

from users.codecs.base import Answer, Codec, PreparedRequest
from users.codecs.declared.http import StudyItem
from users.codecs.declared.message_answer import (
    NUMBERS,
    MessageReader,
    is_map,
    key_of,
    kind_of,
    listed,
    named,
)
from users.codecs.declared.template import Item, Steps, Template, holds
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

MESSAGE = "body.message"
KNOWN_TYPES = "google.protobuf."
"""Types with their own JSON form, such as Struct and Timestamp."""
BASE64 = "\ue000"
"""Marks a string that is base64 for a field of bytes; others are texts."""
MADE_BY = "make it with protoc --descriptor_set_out=F --include_imports"


class Method(NamedTuple):
    """The classes of its two messages."""

    request: type[Message]
    answer: type[Message]


class Sample(NamedTuple):
    """Stands for an item where a message is only tried."""

    jpeg: bytes = b"jpeg"
    text: str = "text"
    pixels: Any = np.zeros((1, 1), np.uint8)


class DeclaredGrpc(Codec):
    """`settings` has the tables `body` and `answer` of the endpoint's file, and as `descriptors` a protoset,
    in base64; the endpoint's path is that of the method.

    `body.message` is the request in protobuf's JSON, with placeholders: in a field of bytes `$jpeg` is the
    file, `$pixels` its numbers, the lowest byte first, and a string with `$text` in it that text. Raises
    ValueError, as `FIELD: what is wrong; give …`.
    """

    name, wire = "declared-grpc", "grpc"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        settings, contract = endpoint.settings, endpoint.contract
        self._method = method_of(settings.get("descriptors", ""), self.path)
        self._template = message_template(settings["body"], contract.max_batch)
        self._read = MessageReader(settings["answer"], self._method.answer.DESCRIPTOR, contract.dimension)
        if missing := self._message([Sample()]).FindInitializationErrors():
            raise ValueError(f"{MESSAGE}: lacks required fields; give {listed(missing)}")

    @property
    def path(self) -> str:
        """`/package.Service/Method`."""
        return f"/{self.endpoint.path.strip('/')}"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """The message, serialised; there is no place for an id."""
        contract = self.endpoint.contract
        message = self._message([StudyItem(images, at, contract) for at in indices])
        body = message.SerializeToString(deterministic=True)
        return PreparedRequest(body, indices, dimension=contract.dimension)

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """Where the answer's path leads."""
        return self._read(self._method.answer.FromString(bytes(answer.body)))

    def _message(self, items: Sequence[Item]) -> Message:
        message = self._method.request()
        fill(message, self._template.filled(items), ())
        return message


@functools.lru_cache(maxsize=8)
def method_of(descriptors: str, path: str) -> Method:
    """A unary method of those that a FileDescriptorSet in base64 describes. Raises ValueError."""
    try:
        files = FileDescriptorSet.FromString(base64.b64decode(descriptors, validate=True))
    except (ValueError, DecodeError):
        raise ValueError(f"protoset: is not a protoset; {MADE_BY}") from None
    pool = pool_of(files)
    service, _, name = path.strip("/").rpartition("/")
    try:
        found = pool.FindServiceByName(service).methods_by_name[name]
    except KeyError:
        fix = f"give {listed(methods_in(files))}" if methods_in(files) else MADE_BY
        raise ValueError(f"method: there is no {path:.80} in its protoset; {fix}") from None
    if found.client_streaming or found.server_streaming:
        raise ValueError(f"method: {path} is streaming; give a unary method")
    return Method(GetMessageClass(found.input_type), GetMessageClass(found.output_type))


def pool_of(files: FileDescriptorSet) -> DescriptorPool:
    """A pool of its own, with each file after those that it imports. Raises ValueError."""
    pool, left = DescriptorPool(), {file.name: file for file in files.file}

    def add(name: str) -> None:
        file = left.pop(name, None)
        if file is not None:
            for needed in file.dependency:
                add(needed)
            pool.AddSerializedFile(file.SerializeToString())

    try:
        for name in list(left):
            add(name)
    except TypeError as error:
        raise ValueError(f"protoset: is incomplete ({error}); {MADE_BY}") from None
    return pool


def methods_in(files: FileDescriptorSet) -> list[str]:
    """The unary ones, by their paths."""
    return [
        f"/{file.package}{'.' * bool(file.package)}{service.name}/{method.name}"
        for file in files.file
        for service in file.service
        for method in service.method
        if not (method.client_streaming or method.server_streaming)
    ]


def message_template(body: Mapping[str, Any], max_batch: int) -> Template:
    """The template of a file's table `body`. Raises ValueError."""
    message = body.get("message")
    if not isinstance(message, dict):
        raise ValueError(
            'body.message: is not a table; give the request\'s fields, such as { image = "$jpeg" }'
        )
    try:
        # What may stand in MessagePack may stand in a message, too.
        return Template(
            "msgpack", marked(message), body.get("repeat"), max_batch, bool(body.get("fetched_by_server"))
        )
    except ValueError as error:
        raise ValueError(str(error).replace("body.msgpack", MESSAGE)) from None


def marked(value: Any) -> Any:
    """The same with a mark before each string that has no placeholder, or is base64 of a file."""
    if isinstance(value, dict):
        return {name: marked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [marked(one) for one in value]
    own = isinstance(value, str) and (value == "$jpeg_base64" or not holds(value))
    return f"{BASE64}{value}" if own else value


def unmarked(value: Any) -> Any:
    """The same without the marks."""
    if isinstance(value, dict):
        return {name: unmarked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    return value.removeprefix(BASE64) if isinstance(value, str) else value


def fill(message: Message, values: Any, steps: Steps) -> None:
    """Write values into a message: by protobuf's rules for JSON, but for bytes and arrays.

    Raises ValueError.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{at(steps)}: is not a table; give fields of {message.DESCRIPTOR.name}")
    for name, value in values.items():
        put(message, named(message.DESCRIPTOR, name, at(steps)), value, (*steps, name))


def put(message: Message, field: FieldDescriptor, value: Any, steps: Steps) -> None:
    """Write a field. Raises ValueError."""
    target, own = getattr(message, field.name), is_own(field)
    if is_map(field) and isinstance(value, dict):
        put_each(message, field, value, steps)
    elif isinstance(value, np.ndarray) and field.is_repeated and field.cpp_type in NUMBERS:
        extend(target, field, value, at(steps))
    elif field.type == FieldDescriptor.TYPE_BYTES and not field.is_repeated:
        setattr(message, field.name, bytes_of(value, steps))
    elif field.type == FieldDescriptor.TYPE_BYTES and isinstance(value, list):
        target.extend(bytes_of(one, steps) for one in value)
    elif own and not field.is_repeated:
        target.SetInParent()
        fill(target, value, steps)
    elif own and isinstance(value, list):
        for one in value:
            fill(target.add(), one, steps)
    else:
        parse(message, field, value, at(steps))


def put_each(message: Message, field: FieldDescriptor, values: Mapping[str, Any], steps: Steps) -> None:
    """Write the values of a map. Raises ValueError."""
    target, kind = getattr(message, field.name), field.message_type.fields_by_name["value"]
    for name, value in values.items():
        key, place = key_of(field, name, at(steps)), (*steps, name)
        if is_own(kind):
            fill(target[key], value, place)
        elif kind.type == FieldDescriptor.TYPE_BYTES:
            target[key] = bytes_of(value, place)
        else:
            parse(message, field, {name: value}, at(steps))


def bytes_of(value: Any, steps: Steps) -> bytes:
    """What goes into a field of bytes: a file, an array's numbers, a text, or base64. Raises ValueError."""
    if isinstance(value, np.ndarray):
        return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and not value.startswith(BASE64):
        return value.encode()
    try:
        return binascii.a2b_base64(unmarked(value), strict_mode=True)
    except (TypeError, ValueError):
        shown = unmarked(value)
        raise ValueError(
            f"{at(steps)}: has type bytes, but {shown!r:.40} is not base64; give $jpeg, or base64"
        ) from None


def is_own(field: FieldDescriptor) -> bool:
    """Whether it holds messages whose fields are written one by one."""
    kind = field.message_type
    return bool(kind and not is_map(field) and not kind.full_name.startswith(KNOWN_TYPES))


def extend(target: Any, field: FieldDescriptor, array: NDArray[Any], where: str) -> None:
    """Append the numbers of an array, row by row. Raises ValueError."""
    try:
        target.extend(array.ravel().tolist())
    except TypeError:
        raise ValueError(
            f"{where}: has an integer type, but $pixels are {array.dtype}; use another field"
        ) from None


def at(steps: Steps) -> str:
    """`body.message.inputs.data`."""
    return ".".join((MESSAGE, *map(str, steps)))


def parse(message: Message, field: FieldDescriptor, value: Any, where: str) -> None:
    """Set a field from its JSON. Raises ValueError."""
    wanted = f"{'a list, each ' if field.is_repeated else ''}{kind_of(field)}"
    wanted = "a table" if is_map(field) else wanted
    if isinstance(value, bytes):
        raise ValueError(f"{where}: is {wanted}, which $jpeg is not; give $jpeg_base64 or $data_url")
    if isinstance(value, np.ndarray):
        raise ValueError(f"{where}: is {wanted}, which $pixels are not; put them into bytes or numbers")
    try:
        ParseDict({field.name: unmarked(value)}, message)
    except (ParseError, TypeError, ValueError):
        raise ValueError(f"{where}: is {wanted}, which {unmarked(value)!r:.40} is not; give one") from None
