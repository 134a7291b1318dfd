"""What a side states of itself, by dotted names, and what of it must be alike for a fair comparison."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from reports.cells_csv.side import Side

# Where things were written, what judges them, and what never changes a number.
IDLE_OPTIONS = frozenset(
    (
        *("command", "results_dir", "size", "prometheus_port", "prometheus_host", "raw_results"),
        *("gate", "baseline", "repeat_until_decided", "kube_url"),
        *("tls_ca", "tls_client_cert", "tls_client_key", "tls_no_verify"),
    )
)
OF_ENDPOINT = ("model", "weights", "emulated", "embedded", "tls")
OF_LINK = ("name", "one_way_ms", "mbit_per_s", "loss_pct", "queue_bytes", "congestion_control", "emulator")
OF_HOST = ("name", "kind", "workers", "cores", "system", "tcp_congestion_control")
MUST = (
    *("images.*", "endpoints.*.model", "endpoints.*.weights", "link", "link.*", "host", "host.*"),
    *("cpu", "cpu.*", "cores", "gpus", "system", "tcp_congestion_control"),
    *("options.client", "options.channels", "options.arrivals", "options.max_in_flight", "options.trace"),
    "options.load_profile",
)
"""Of what a study states, by dotted names."""


def stated(side: Side, endpoints: Collection[str]) -> dict[str, str]:
    """All of it as texts; of endpoints only those named. Without a header it is studies and sources alone."""
    told = {"study": side.studies, "source": side.sources}
    if side.known:
        told |= dict(flat(_of_header(side.header, endpoints)))
    return {name: text for name, text in told.items() if text not in ("", "null")}


def _of_header(header: Mapping[str, Any], endpoints: Collection[str]) -> dict[str, Any]:
    options, described = header.get("options") or {}, header.get("endpoints") or {}
    hosts = [{**host, **(host.get("facts") or {})} for host in header.get("hosts") or ()]
    return {
        "size": header["size"],
        **{
            f"endpoints.{name}": _some(described[name], OF_ENDPOINT)
            for name in described
            if name in endpoints
        },
        "images": header.get("images") or {},
        **_listed("link", header.get("links") or (), OF_LINK),
        **_listed("host", hosts, OF_HOST),
        **{name: fact for name, fact in (header.get("fingerprint") or {}).items() if name != "targets"},
        "options": {name: value for name, value in options.items() if name not in IDLE_OPTIONS},
    }


def _listed(word: str, things: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Things that have names; a single one goes without, since the other side's may be called otherwise."""
    if len(things) == 1:
        return {word: _some(things[0], names)}
    each = {f"{word}.{thing.get('name')}": _some(thing, names[1:]) for thing in things}
    return {word: {"name": ", ".join(str(thing.get("name")) for thing in things) or "none"}, **each}


def _some(about: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: about[name] for name in names if name in about}


def conditions(side: Side, endpoint: str) -> dict[str, str]:
    """Those that a study states, as to one of its endpoints."""
    told = stated(side, [endpoint])
    return {what: text for what, text in told.items() if any(fnmatchcase(what, must) for must in MUST)}


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and texts, those of a list between commas; other values as JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield f"{prefix}{name}", ", ".join(value)
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)
