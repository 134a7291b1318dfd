"""The fields of an endpoint's TOML file: which there are, and what each may hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from swarm.options.endpoint_url import RPC, SERVICE, TRITON, V2
from users.backends.declared import COUNTS
from users.codecs.declared.answer_path import DTYPES, ENCODINGS
from users.codecs.packing import ALGORITHMS
from users.codecs.server_timing import NS, PARTS
from users.contract import DECLARED

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value will do, and what will."""

LONGEST = 1_000
MOST_BATCH = 65_536
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""Of a header. Source: RFC 9110."""
UNITS = "|".join(NS)
STATED = re.compile(f"(?:{'|'.join(PARTS)}) (?:{UNITS})")
METRIC = "[A-Za-z_:][A-Za-z0-9_:]*"


def is_text(value: object) -> bool:
    """Whether it is one line that says something."""
    return isinstance(value, str) and len(value) <= LONGEST and value.isprintable() and bool(value.strip())


def is_string(value: object) -> bool:
    """Whether it is a text, which may be empty."""
    return isinstance(value, str)


def is_table(value: object) -> bool:
    """Whether it is one that says something."""
    return isinstance(value, dict) and bool(value)


def are_texts(value: object) -> bool:
    """Whether it is a table of texts."""
    return isinstance(value, dict) and bool(value) and all(map(is_text, value.values()))


def is_count(value: object) -> bool:
    """Whether it is a whole number from 1, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_BATCH


def are_statuses(value: object) -> bool:
    """Whether it is a list of statuses that mean success."""
    return (
        isinstance(value, list) and bool(value) and all(is_count(one) and 200 <= one < 300 for one in value)
    )


def are_algorithms(value: object) -> bool:
    """Whether it is a list of algorithms of compression."""
    return isinstance(value, list) and bool(value) and all(one in ALGORITHMS for one in value)


def are_inputs(value: object) -> bool:
    """Whether it is a table that says what inputs hold."""
    return isinstance(value, dict) and all(one in DECLARED for one in value.values())


def like(form: str | re.Pattern[str], what: str) -> Rule:
    """A text of a form."""
    pattern = re.compile(form)
    return lambda value: isinstance(value, str) and bool(pattern.fullmatch(value)), what


def one_of(words: Mapping[str, object] | tuple[str, ...]) -> Rule:
    """One of these words."""
    return lambda value: isinstance(value, str) and value in words, " or ".join(f'"{word}"' for word in words)


TEXT: Rule = (is_text, "a text in quotes, on one line")
TABLE: Rule = (is_table, "a table")
TRUTH: Rule = (lambda value: isinstance(value, bool), "true or false")
COUNT: Rule = (is_count, f"a whole number from 1 to {MOST_BATCH}")
PATH = like(r"/[!\"$->@-~]*", 'the path of a URL, such as "/health"')
COUNTER = like(METRIC, "the name of a metric, such as app_requests_total")
TIME = like(f"{METRIC} (?:{UNITS})", f"the name of a metric and its unit, one of {', '.join(NS)}")

TOP: Mapping[str, Rule] = {
    "url": TEXT,
    "model": TEXT,
    "host": like(
        r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,126}\.?)(?::[0-9]{1,5})?",
        "a host, with its port if it has one, such as clip.example",
    ),
    "space": TEXT,
    "server": TEXT,
    "prepare": TEXT,
    "max_batch": COUNT,
    "output": TEXT,
    "shape": (are_texts, 'a table of shapes by input, such as { pixel_values = "B,3,384,384" }'),
    "input": (are_inputs, f'a table of {", ".join(DECLARED)} by input, such as {{ sentences = "text" }}'),
    "codec": TEXT,
    "tokenizer": TEXT,
    "metrics": TEXT,
    "method": like(r"/?[A-Za-z_][\w.]*/[A-Za-z_]\w*", 'a method of gRPC, such as "package.Service/Method"'),
    "protoset": TEXT,
    "proto": like(r".+\.proto", "the path of a .proto"),
    "stands_for": TEXT,
    "computes": TRUTH,
    "compression": (are_algorithms, f"a list of {' and '.join(ALGORITHMS)}, or of one of them"),
    "headers": (are_texts, "a table of texts"),
    "body": TABLE,
    "answer": TABLE,
    "ready": TABLE,
    "times": TABLE,
}
"""All that may stand above the tables, and these."""
COMMON = (
    "url",
    "host",
    "space",
    "server",
    "prepare",
    "max_batch",
    "codec",
    "stands_for",
    "computes",
    "compression",
)
KEYS: Mapping[str, tuple[str, ...]] = {
    SERVICE: (*COMMON, "model", "shape", "headers", "body", "answer", "ready", "times"),
    RPC: (*COMMON, "model", "shape", "method", "protoset", "proto", "headers", "body", "answer", "times"),
    TRITON: (*COMMON, "output", "shape", "input", "tokenizer", "metrics", "headers"),
    V2: (*COMMON, "output", "shape", "input", "tokenizer", "headers"),
}
"""By backend those of them that an endpoint has."""
BODY: Rule = (lambda value: isinstance(value, (dict, list, str)), "what a request holds: a table or a list")
REPEAT: Mapping[str, Rule] = {
    "repeat": (is_string, "the path of an array in the body, such as input"),
    "fetched_by_server": TRUTH,
}
TABLES: Mapping[str, Mapping[str, Rule]] = {
    "body": {
        "json": BODY,
        "multipart": TABLE,
        "msgpack": BODY,
        "raw": (is_string, 'a text, such as "$jpeg"'),
        **REPEAT,
    },
    "answer": {
        "vectors": (is_string, 'a path, such as "data[].embedding", or "." for all'),
        "encoding": one_of(ENCODINGS),
        "dtype": one_of(tuple(DTYPES)),
        "dimension": COUNT,
        "order": TEXT,
        "success": (are_statuses, "a list of those of success, such as [200, 201]"),
    },
    "ready": {"path": PATH},
    "times": {
        "header": like(NAME, 'the name of a header, such as "Server-Timing"'),
        "headers": (are_texts, 'a table, such as { x-queue-time = "queue ms" }'),
        "metrics": (
            are_texts,
            "a table with the url of a page, and of requests, queue and compute the metric",
        ),
    },
}
"""The fields of each table."""
RPC_TABLES: Mapping[str, Mapping[str, Rule]] = {
    "body": {"message": TABLE, **REPEAT},
    "answer": {name: rule for name, rule in TABLES["answer"].items() if name != "success"},
    "times": {"metrics": TABLES["times"]["metrics"]},
}
"""The same over gRPC."""
METRICS: Mapping[str, Rule] = {
    "url": TEXT,
    **dict.fromkeys(COUNTS, COUNTER),
    **dict.fromkeys(PARTS, TIME),
}
STATED_IN_HEADER = like(STATED, f'a part and its unit, such as "queue ms"; parts are {", ".join(PARTS)}')


def check(prefix: str, told: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Each field must be known, and what it may be. Raises ValueError, as `FIELD: what is wrong; give …`."""
    for key, value in told.items():
        if key not in rules:
            above = "; it goes above all tables" if prefix and key in TOP else ""
            raise ValueError(f"{prefix}{key:.40}: is unknown here{above}; give {', '.join(rules)}")
        check_one(f"{prefix}{key}", value, rules[key])


def check_headers(prefix: str, told: Mapping[str, Any], rule: Rule) -> None:
    """Each is a header's name, and has what it may have. Raises ValueError."""
    for name, value in told.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"{prefix}{name:.40}: is no header's name; give one such as X-Api-Version")
        check_one(f"{prefix}{name}", value, rule)


def check_one(field: str, value: Any, rule: Rule) -> None:
    """Raises ValueError where a value is not valid."""
    sound, what = rule
    if not sound(value):
        raise ValueError(f"{field}: cannot be {value!r:.40}; give {what}")
