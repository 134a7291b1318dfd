"""What a gRPC service's methods take and give, as a FileDescriptorSet: read, or compiled from a .proto."""

import base64
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from reports.ledger.files import check_regular, whole_file
from swarm.errors import UsageError

PROTO = ".proto"
COMPILER = "grpc_tools"
PACKAGE = "grpcio-tools==1.80.1"
"""The newest that works with protobuf 6; later ones need 7, which tritonclient does not support."""
PROTOSET = "a protoset made by protoc --descriptor_set_out=F --include_imports"
PATIENCE_S = 60
LOGGED = re.compile(r"[IW]\d{4} ")
"""How a line of the compiler begins that is not an error."""


def descriptors(path: str) -> str:
    """The methods that a .proto or a protoset describes, in base64: an endpoint's `descriptors`.

    Raises UsageError.
    """
    made = compiled(path) if path.endswith(PROTO) else protoset(path)
    return base64.b64encode(made).decode("ascii")


def protoset(path: str) -> bytes:
    """A FileDescriptorSet from a file. Raises UsageError."""
    try:
        read = whole_file(path)
        known = FileDescriptorSet.FromString(read).file
    except OSError as error:
        raise UsageError(
            f"protoset {path}: cannot be read ({error.strerror}); name a .proto, or {PROTOSET}"
        ) from None
    except DecodeError:
        known = ()
    if not known:
        raise UsageError(f"protoset {path}: is not a protoset; give {PROTOSET}, or the .proto itself")
    return read


def compiled(path: str) -> bytes:
    """The FileDescriptorSet of a .proto and of what it imports out of its folder. Raises UsageError."""
    try:
        check_regular(path)
    except OSError as error:
        raise UsageError(
            f"proto {path}: cannot be read ({error.strerror}); name a .proto, or {PROTOSET}"
        ) from None
    if importlib.util.find_spec(COMPILER) is None:
        raise UsageError(f"proto {path}: needs a compiler; pip install {PACKAGE}, or give {PROTOSET}")
    whole = Path(path).resolve()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "set")
        options = [f"-I{whole.parent}", "--include_imports", f"--descriptor_set_out={made}", str(whole)]
        said = run([sys.executable, "-m", f"{COMPILER}.protoc", *options])
        if said is not None:
            said = said.replace(f"{whole.parent}/", "")
            raise UsageError(f"proto {path}: does not compile ({said}); fix it, or give {PROTOSET}")
        return made.read_bytes()


def run(command: list[str]) -> str | None:
    """What a compiler complains of first; None where it has done its work."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return f"not within {PATIENCE_S} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.decode("utf-8", "replace").split("\n")
    return next(
        (line.rstrip(".") for line in lines if PROTO in line and not LOGGED.match(line)),
        f"exit code {done.returncode}",
    )
