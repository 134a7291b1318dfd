"""Other people's servers, each described by a URL or a file of examples/endpoints: are they asked rightly?

python -m benchmarks.strangers                   all of them, about 10 minutes
python -m benchmarks.strangers mosec 'triton-*'  those with such names
python -m benchmarks.strangers --show            with what `swarm probe` says of each

The first time, it installs each server in an environment of its own in the cache (1.5 GB together).
"""

from __future__ import annotations

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

from benchmarks.bounds import Bounds
from benchmarks.strange_servers.described import STRANGERS, TRITON, Stranger
from benchmarks.strange_servers.servers import served
from benchmarks.strange_servers.tritonserver import triton
from benchmarks.strange_servers.trying import LEAST_COSINE, LEVELS, SECONDS, Outcome, faults, tried
from server.errors import SetUpError
from server.models.export import export, onnx_path, weights_folder
from server.spec import ModelSpec


def main(argv: Sequence[str] | None = None) -> int:
    """Ask them all; 0 where each was asked rightly."""
    options = parsed(argv)
    export(ModelSpec(), weights_folder())
    onnx = onnx_path(ModelSpec())
    bounds = Bounds(
        f"Cosine with the right vectors; requests in {SECONDS} s at {LEVELS[0]} and {LEVELS[1]} users"
    )
    for server, strangers in groupby(chosen(options.names), lambda one: one.server):
        with running(server, onnx) as addresses:
            for stranger in strangers:
                with tempfile.TemporaryDirectory() as folder:
                    tell(bounds, stranger, tried(stranger, addresses, onnx, Path(folder), options.show))
    return bounds.exit_code()


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """`names`, each of which fits some stranger, and `show`."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strangers", description=(__doc__ or "").partition("\n")[0]
    )
    known = ", ".join(one.name for one in STRANGERS)
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME", help=f"of {known} (default: all)")
    parser.add_argument("--show", action="store_true", help="print what `swarm probe` says of each")
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if not chosen([name])]:
        parser.error(f"{unknown[0]} is no stranger: give some of {known}")
    return options


def chosen(names: Sequence[str]) -> list[Stranger]:
    """Those with such names, which may be shell patterns."""
    return [one for one in STRANGERS if any(fnmatchcase(one.name, name) for name in names)]


@contextmanager
def running(server: str, onnx: Path) -> Iterator[tuple[str, str]]:
    """A server's addresses for HTTP and gRPC, once it is ready."""
    try:
        with triton(onnx) if server == TRITON else served(server, onnx) as found:
            yield found.http, found.grpc
    except SetUpError as error:
        raise SystemExit(str(error)) from error


def tell(bounds: Bounds, stranger: Stranger, found: Outcome) -> None:
    """One line, and what is wrong, if anything is."""
    wrong = faults(found)
    by = f"{found.lines} lines" if found.lines else "a URL"
    counts = " and ".join(str(requests) for _, requests in found.requests) or "none"
    cosine = "" if found.cosine is None else f"{found.cosine:.6f}"
    bounds.verdict(
        f"{stranger.name}, {by}: {counts}", cosine, f"≥ {LEAST_COSINE}", "BROKEN" if wrong else "holds"
    )
    for fault in wrong:
        print(f"  {fault}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
