"""All codecs: those below this folder, from custom files, and from locustfiles."""

import functools
import hashlib
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import users.codecs
from users.codecs.base import Codec
from users.errors import TargetError

OWN = ".py"
"""The suffix of a codec that is a file."""
_registered: dict[str, type[Codec]] = {}


def register_codec(codec: type[Codec]) -> None:
    """Make a locustfile's codec known by its name, which every process of a study reads."""
    _registered[codec.name] = codec


def codecs_in(module: ModuleType) -> Iterator[type[Codec]]:
    """Those that a module itself defines."""
    for made in vars(module).values():
        own = isinstance(made, type) and issubclass(made, Codec) and made.__module__ == module.__name__
        if own and hasattr(made, "name"):
            yield made


@functools.cache
def _found() -> Mapping[str, type[Codec]]:
    found = pkgutil.walk_packages(users.codecs.__path__, f"{users.codecs.__name__}.")
    modules = [importlib.import_module(one.name) for one in found]
    return {codec.name: codec for module in modules for codec in codecs_in(module)}


def codec_named(name: str, sha256: str = "") -> type[Codec]:
    """The codec of a name, or in a file, which must have that digest. Raises TargetError."""
    if name.endswith(OWN):
        return codec_in_file(name, sha256)
    known = {**_found(), **_registered}
    if name not in known:
        raise TargetError(f"there is no codec {name!r}; there are {', '.join(known)}, or your own file, *.py")
    return known[name]


def digest_of(path: str) -> str:
    """A name for exactly what stands in a file. Raises TargetError."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise TargetError(
            f"the codec {path} cannot be read ({error.strerror}); name a readable file"
        ) from error


@functools.cache
def codec_in_file(path: str, sha256: str) -> type[Codec]:
    """The one codec that a file defines. Raises TargetError where it has another digest, or is none."""
    if digest_of(path) != sha256:
        raise TargetError(f"the codec {path} differs from the master's; put the same file there")
    spec = importlib.util.spec_from_file_location(f"codec_{sha256[:16]}", path)
    assert spec is not None, "its name ends in .py"
    assert spec.loader is not None, "as that of every file"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise TargetError(f"the codec {path} cannot be imported ({type(error).__name__}: {error})") from error
    found = list(codecs_in(module))
    if len(found) != 1:
        raise TargetError(
            f"the codec {path} defines {len(found)} codecs; give it exactly one subclass of users.Codec"
            f" with a name"
        )
    return found[0]
