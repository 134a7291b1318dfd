"""Thresholds that stopped a study: what was certain then, unless something else was wrong with the run."""

from collections.abc import Mapping

from reports.gates.claim import FAIL, INCONCLUSIVE, Claim
from reports.gates.source import Source
from reports.gates.thresholds import Threshold
from reports.ledger.ledger import Record

_BY_STOPPING = frozenset({"aborted", "cut-short", "failures", "no-data", "unfinished"})
"""What stopping brings with it, or what the threshold itself has judged."""


def stopped(threshold: Threshold, source: Source) -> Mapping[str, Claim]:
    """By cell, where this threshold stopped a study; one that was broken for sure goes before the others."""
    claims = [
        _claim(threshold, one, source)
        for one in source.stopped
        if one["threshold"] == threshold.number and one["require"] == threshold.require.text
    ]
    return {claim.cell: claim for claim in sorted(claims, key=lambda claim: claim.settled == FAIL)}


def _claim(threshold: Threshold, stop: Record, source: Source) -> Claim:
    cell, why = str(stop["cell"]), str(stop["why"]).rstrip(".")
    codes = [
        doubt.code
        for run in source.runs.get(cell, ())
        if run.repeat == stop["repeat"] and source.sides[run.study].status != "complete"
        for doubt in run.row.disqualified
        if doubt.code not in _BY_STOPPING
    ]
    outcome = INCONCLUSIVE if codes else FAIL
    if codes:
        why = f"{why}, and that run does not count ({', '.join(dict.fromkeys(codes))})"
    return Claim(threshold=threshold, cell=cell, settled=outcome, why=why, runs=1)
