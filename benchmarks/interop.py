"""Does the suite's own gRPC client pass gRPC's interoperability tests against others' servers?

python -m benchmarks.interop                        all of them, about 3 minutes
python -m benchmarks.interop nginx 'grpc-*'         those with such names
python -m benchmarks.interop --client grpcio        grpcio in its place: are the servers right?

The first run downloads or builds each server into the cache. A server that this machine does not have is
named, and not counted.
"""

from __future__ import annotations

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import argparse
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase

import gevent

from benchmarks.interop_servers.callers import CALLERS
from benchmarks.interop_servers.cases import ROWS, Case, Wrong
from benchmarks.interop_servers.environments import NotHere
from benchmarks.interop_servers.servers import SERVERS, Running, Server
from server.errors import SetUpError
from users.errors import StatusError

HOLDS, NOT_ASKED, NOT_HERE = "holds", "–", "not here"
CASE_S = 240.0
NAME_WIDTH, WIDTH = 28, 13


def main(argv: Sequence[str] | None = None) -> int:
    """Ask them all; 0 where every case of every server that is here holds."""
    options = parsed(argv)
    columns: dict[str, dict[str, str]] = {}
    for server in chosen(options.names):
        print(f"{server.name}...", end=" ", flush=True)
        began = time.monotonic()
        columns[server.name] = found = asked(server, options.client)
        print(f"{time.monotonic() - began:.0f} s", *faults(found), sep="\n  ", flush=True)
    print(f"\nclient: {options.client}\n\n{table(columns)}")
    wrong = [name for name, found in columns.items() if faults(found) and found.get("") is None]
    here = [name for name, found in columns.items() if "" not in found]
    print(f"\nbroken: {', '.join(wrong)}" if wrong else f"\nall cases hold at {len(here)} servers")
    return int(bool(wrong))


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """`names`, each of which fits some server, and `client`."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.interop", description=(__doc__ or "").partition("\n")[0]
    )
    known = ", ".join(server.name for server in SERVERS)
    named = f"servers, or shell patterns of their names: {known} (default: all)"
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME", help=named)
    tested = "the client that is tested (default: own)"
    parser.add_argument("--client", choices=tuple(CALLERS), default="own", help=tested)
    options = parser.parse_args(argv)
    if unknown := [name for name in options.names if not chosen([name])]:
        parser.error(f"no server is called {unknown[0]}: choose from {known}")
    return options


def chosen(names: Sequence[str]) -> list[Server]:
    """Those with such names, which may be shell patterns."""
    return [one for one in SERVERS if any(fnmatchcase(one.name, name) for name in names)]


def asked(server: Server, client: str) -> dict[str, str]:
    """What came of each case: HOLDS, or what came instead. Of a server that is not here, why, under ""."""
    try:
        with server.start() as running:
            return {name: tried(case, running, client) for name, case in server.cases.items()}
    except NotHere as error:
        return {"": str(error)}
    except SetUpError as error:
        return dict.fromkeys(server.cases, str(error))


def tried(case: Case, running: Running, client: str) -> str:
    """One case on a channel of its own."""
    before = len(running.breaches())
    caller = CALLERS[client](running.address)
    try:
        with gevent.Timeout(CASE_S):
            case(caller)
    except (Wrong, StatusError, OSError, ValueError, gevent.Timeout) as error:
        said = f"{type(error).__name__}: {error}"
    else:
        said = HOLDS
    finally:
        caller.close()
    breaches = running.breaches()[before:]
    return (
        f"{said if said != HOLDS else 'answered'}; the server complains: {breaches[0]}" if breaches else said
    )


def faults(found: dict[str, str]) -> list[str]:
    """What does not hold, in a line each."""
    return [f"{name or NOT_HERE}: {said}" for name, said in found.items() if said != HOLDS]


def table(columns: dict[str, dict[str, str]]) -> str:
    """Rows are cases, columns servers."""
    rows = [["", *columns]]
    rows += [[name, *(word_of(found, name) for found in columns.values())] for name in ROWS]
    return "\n".join(
        f"{row[0]:<{NAME_WIDTH}}" + "".join(f"{cell:>{WIDTH}}" for cell in row[1:]) for row in rows
    )


def word_of(found: dict[str, str], name: str) -> str:
    """A cell of the table."""
    if "" in found:
        return NOT_HERE
    said = found.get(name, NOT_ASKED)
    return said if said in (HOLDS, NOT_ASKED) else "BROKEN"


if __name__ == "__main__":
    sys.exit(main())
