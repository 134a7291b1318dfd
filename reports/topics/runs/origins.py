"""Where the numbers come from: endpoints, images, options, fingerprint, links and hosts of the client."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from reports.cells_csv.sides import flat
from reports.format import MISSING, NS_PER_MS, known
from reports.page.question import Question
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.study.study import Study

_PAIR = ("what", "value")
LINK_HEADS = (
    *("link", "measured by", "round trip ms", "measured", "Mbit/s", "measured", "lost %", "measured"),
    *("queue or burst kB", "congestion control", "models"),
)
HOST_HEADS = (
    *("host", "kind", "workers", "machine", "cores", "load", "Python", "Locust", "commit", "open files"),
    "clock offset ms",
)


def origins(study: Study) -> Iterator[Table]:
    """Endpoints, what they take, the images sent, links, hosts, the options as resolved, the fingerprint."""
    yield endpoints(study)
    if not study.of_published_study:
        yield contracts(study)
    yield table_of("Images", _PAIR, flat(study.header.get("images") or {}))
    yield from (links(study), hosts(study))
    for title in ("Options", "Fingerprint"):
        yield table_of(title, _PAIR, flat(study.header.get(title.lower()) or {}), folded=True)


def endpoints(study: Study) -> Table:
    """Each endpoint with its address, model and weights."""
    used = {name: connected_to(study, name) for name in study.described}
    heads = ["endpoint", "address", "model", "weights", "server"]
    heads += ["connected to"] if any(used.values()) else []  # older ledgers do not tell
    rows = (
        (
            *(name, about.get("url", ""), about.get("model", ""), about.get("weights", ""), _server(about)),
            *([used[name] or MISSING] if any(used.values()) else []),
        )
        for name, about in study.described.items()
    )
    return table_of("Endpoints", heads, rows)


def connected_to(study: Study, endpoint: str) -> str:
    """The IP addresses that connections of an endpoint's runs went to; empty where that is not known."""
    paths = (run.path for run in study.runs if run.endpoint == endpoint and run.path)
    return ", ".join(sorted({address for path in paths for address in path.peers}))


def contracts(study: Study) -> Table:
    """How each endpoint is asked, as far as its ledger says: none for the model that all presets serve."""
    heads = ("endpoint", "codec", "space", "inputs", "prepared as", "vector", "most a request")
    names = ("codec", "space", "inputs", "prepare", "vector", "max_batch")
    rows = (
        (name, *(_listed(told.get(field)) for field in names))
        for name, about in study.described.items()
        if (told := {**about, "vector": [about.get("output"), about.get("dimension")]}).get("codec")
        and name not in study.floors.values()
    )
    return table_of("What is sent and read", heads, rows, numeric=(6,))


def _listed(value: object) -> str:
    """A text, or those of a list that are there; a dash without any."""
    texts = [str(one) for one in (value if isinstance(value, list) else [value]) if one]
    return ", ".join(texts) or MISSING


def _server(about: Mapping[str, Any]) -> str:
    """Whose it is, and what it computes on or whom it asks, where it said so."""
    whose = "embedded" if about.get("embedded") else "given"
    told = (whose, *(about.get(name) for name in ("provider", "precision", "upstream")))
    return ", ".join(str(text) for text in told if text)


def links(study: Study) -> Table:
    """One row for each emulated link and host that measured it: what was asked of it and what it is."""
    notes = Footnotes()
    emulators = sorted({str(link["emulator"]) for link in study.links if link.get("emulator")})
    how = f" Emulated by {' and '.join(emulators)}." if emulators else ""
    return table_of(
        "Links: asked and measured",
        LINK_HEADS,
        (row for link in study.links for row in _link_rows(link, notes)),
        caption="What each link's profile says, and beside it what real packets met before the first run."
        f"{how}",
        notes=notes,
        numeric=range(2, 9),
    )


def _link_rows(link: Mapping[str, Any], notes: Footnotes) -> Iterator[tuple[TableCell | str, ...]]:
    measured: Mapping[str, Mapping[str, Any]] = link.get("measured") or {MISSING: {}}
    head = TableCell(str(link.get("name", MISSING)), notes.marks(map(str, link.get("differences") or ())))
    one_way = link.get("one_way_ms")
    asked = (None if one_way is None else 2 * one_way, link.get("mbit_per_s"), link.get("loss_pct"))
    queue = link.get("queue_bytes") or link.get("burst_bytes")
    tail = (known(queue, 1e3), _text(link, "congestion_control"), _text(link, "published"))
    for host, found in measured.items():
        seen = (found.get("rtt_ms"), found.get("mbit_per_s"), found.get("loss_pct"))
        pairs = [text for pair in zip(asked, seen, strict=True) for text in map(known, pair)]
        yield (head, str(host), *pairs, *tail)


def hosts(study: Study) -> Table:
    """One row for each host that client processes ran on, by what it said of itself."""
    rows = [_host_row(host) for host in study.header.get("hosts") or ()]
    return table_of("Hosts", HOST_HEADS, rows, numeric=(2, 4, 5, 9, 10)) if rows else hosts_of_workers(study)


def hosts_of_workers(study: Study) -> Table:
    """Where others than `inferswarm run` started the workers: by name, and how many at once at most."""
    most: Counter[str] = Counter()
    for run in study.runs:
        most |= Counter(run.places)
    rows = [(name, str(workers)) for name, workers in sorted(most.items()) if name]
    return table_of("Hosts", ("host", "workers"), rows, numeric=(1,))


def _host_row(host: Mapping[str, Any]) -> tuple[str, ...]:
    facts: Mapping[str, Any] = host.get("facts") or {}
    return (
        *(_text(host, name) for name in ("name", "kind", "workers")),
        *(_text(facts, name) for name in ("hostname", "cores")),
        known(facts.get("load")),
        *(_text(facts, "python"), _text(facts.get("packages") or {}, "locust")),
        _text(facts, "commit")[:13],  # a + at its end says that files differ from it
        _text(facts, "files_soft"),
        clock(facts.get("clock_offset_ns"), facts.get("clock_doubt_ns")),
    )


def clock(offset_ns: float | None, doubt_ns: float | None) -> str:
    """How far a host's clock is from ours in milliseconds, and by how much that may be wrong.

    To three digits, however small: on a LAN both are below 0.1 ms.
    """
    if offset_ns is None:
        return MISSING
    doubt = "" if doubt_ns is None else f" ± {known(doubt_ns, NS_PER_MS)}"
    return f"{'−' if offset_ns < 0 else ''}{known(abs(offset_ns), NS_PER_MS)}{doubt}"


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name)
    return MISSING if value is None or value == "" else str(value)


ORIGINS = Question("origins", "Environment", (origins,))
