"""Whether a cache answered, and no model, as an answer's headers tell."""

import re
from collections.abc import Mapping

WORDS = ("x-cache", "x-cache-status", "x-proxy-cache", "cf-cache-status")
"""Headers with a word of a proxy's own: nginx', Varnish's, Squid's, a CDN's."""
FROM_CACHE = re.compile("hit|stale|updating|revalidated", re.IGNORECASE)
STATUS, AGE = "cache-status", "age"
HIT = re.compile(r";\s*hit\b", re.IGNORECASE)
HEADERS = frozenset({*WORDS, STATUS, AGE})


def told_cached(headers: Mapping[str, str]) -> bool | None:
    """Whether a cache answered; None where no header tells. Names are in lower case.

    Source: RFC 9211 (Cache-Status), RFC 9111 (Age, in seconds).

    >>> told_cached({"x-cache": "HIT from edge"}), told_cached({"age": "0"}), told_cached({"date": "now"})
    (True, False, None)
    """
    if HEADERS.isdisjoint(headers):
        return None
    told = ",".join(headers.get(name, "") for name in WORDS).split(",")
    by_word = any(FROM_CACHE.search(one.partition(" from ")[0]) for one in told)  # from which host
    by_age = headers.get(AGE, "").strip("0").isdecimal()
    return by_word or by_age or bool(HIT.search(headers.get(STATUS, "")))
