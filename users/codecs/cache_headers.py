"""Whether a cache answered, and no model, as an answer's headers tell."""

import re
from collections.abc import Mapping

ENDINGS = ("-cache", "-cache-status")
"""Of headers with a word of a proxy's own: `x-cache` of Squid and CDNs, `cf-cache-status`, a gateway's."""
FROM_CACHE = re.compile("hit(?![a-z])|stale|updating|revalidated", re.IGNORECASE)
STATUS, AGE = "cache-status", "age"
HIT = re.compile(r";\s*hit\b(?!=\?0)", re.IGNORECASE)


def told_cached(headers: Mapping[str, str]) -> bool | None:
    """Whether a cache answered; None where no header tells. Names are in lower case.

    Source: RFC 9211 (Cache-Status), RFC 9111 (Age, in seconds).

    >>> told_cached({"x-cache": "HIT from edge"}), told_cached({"age": "0"}), told_cached({"date": "now"})
    (True, False, None)
    """
    words = ",".join(headers[name] for name in headers if name.endswith(ENDINGS))
    if not (words or STATUS in headers or AGE in headers):
        return None
    told = (one.partition(" from ")[0] for one in words.split(","))  # without the host that says it
    by_word = any(map(FROM_CACHE.search, told))
    by_age = headers.get(AGE, "").strip("0").isdecimal()
    return by_word or by_age or bool(HIT.search(headers.get(STATUS, "")))
