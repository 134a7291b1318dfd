"""gRPC over HTTP as a heat map."""

from reports.study import Study
from reports.tables.ratio_map import LESS, METHOD, MORE, SHADED, TOLD, RatioMap, closed_runs, ratio_map
from reports.tables.seeds import protocol_pairs
from reports.tables.table import Table

ABOUT = RatioMap(
    "gRPC over HTTP, with its interval",
    f"{METHOD} {MORE}: gRPC is faster, {LESS}: HTTP is faster, {TOLD} {SHADED}",
    "backend",
)


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users in closed load, one column for each batch."""
    return ratio_map(study, ABOUT, protocol_pairs(study, closed_runs(study)))
