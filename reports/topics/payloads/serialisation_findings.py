"""What a study of serialisation found."""

from reports.format import known
from reports.page.grid import resting_on, typical
from reports.study.study_reports import Study
from reports.topics.payloads.serialisation import encode_ms, pairs, payload_kb, ratio_said
from reports.topics.payloads.serialisation_tables import ENCODING, FEW, doubts_of


def serialisation_finding(study: Study) -> str:
    """What JSON costs at the largest batch that was sent both ways; empty where nothing was."""
    both = [pair for pair in pairs(study) if ratio_said(pair, encode_ms) and ratio_said(pair, payload_kb)]
    if not both:
        return ""
    pair = max(both, key=lambda it: it.batch)
    took = [known(typical(runs, encode_ms)) for runs in (pair.json, pair.binary)]
    times = str(ratio_said(pair, encode_ms))
    behind = [run for runs in (pair.json, pair.binary) for run in resting_on(runs, encode_ms)]
    doubts = dict.fromkeys(doubts_of(behind, ENCODING))
    scarce = [*([] if "(" in times else ["in one run"]), *([FEW] if FEW in doubts else [])]
    others = "; ".join(doubt for doubt in doubts if doubt != FEW)
    hedged = (f", {' '.join(scarce)}" if scarce else "") + (f" ({others})" if others else "")
    return (
        f"Encoding JSON takes {took[0]} ms at batch {pair.batch} where binary takes {took[1]} ms: "
        f"{times}{hedged}; its payload is {ratio_said(pair, payload_kb)} as large."
    )
