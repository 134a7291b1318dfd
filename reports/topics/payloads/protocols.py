"""gRPC over HTTP as a heat map."""

from reports.page.ratio_map import LESS, METHOD, MORE, SHADED, TOLD, RatioMap, closed_runs, ratio_map
from reports.page.table import Table
from reports.study.study_reports import Study
from reports.topics.payloads.matrix import protocol_pairs

ABOUT = RatioMap(
    "gRPC over HTTP, with its interval",
    f"{METHOD} {MORE}: gRPC is faster, {LESS}: HTTP is faster, {TOLD} {SHADED}",
    "backend",
)


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users in closed load, one column for each batch."""
    return ratio_map(study, ABOUT, protocol_pairs(study, closed_runs(study)))
