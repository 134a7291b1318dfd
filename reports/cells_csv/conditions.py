"""What a study must have met as another did, so that the server alone can tell the two apart."""

from fnmatch import fnmatchcase

from reports.cells_csv.side import Side
from reports.cells_csv.stated import stated

MUST = (
    *("images.*", "endpoints.*.model", "endpoints.*.weights", "link", "link.*", "host", "host.*"),
    *("cpu", "cpu.*", "cores", "gpus", "system", "tcp_congestion_control"),
    *("options.client", "options.channels", "options.arrivals", "options.max_in_flight", "options.trace"),
    "options.load_profile",
)
"""Of what a study states, by dotted names."""


def conditions(side: Side, endpoint: str) -> dict[str, str]:
    """Those that a study states, as to one of its endpoints."""
    told = stated(side, [endpoint])
    return {what: text for what, text in told.items() if any(fnmatchcase(what, must) for must in MUST)}
