"""Whether a study has the data that a verdict can rest on."""

from reports.study.study_reports import Study

# A share of failed requests is judged against what is allowed, by whoever allows it.
_JUDGED_ELSEWHERE = frozenset({"failures"})
# A search overloads the server on purpose; only a run that was cut off or lost a worker misleads it.
_SPOIL_A_SEARCH = frozenset({"aborted", "unfinished", "worker-lost"})


def inconclusive_because(study: Study) -> tuple[str, ...]:
    """Why a study allows no verdict, each reason once; empty where it allows one.

    The reasons are `study-` and the study's status where it is not complete, `no-data` where no request of it
    succeeded, and the codes of its runs' caveats that disqualify. Those of floors do not count: no verdict
    rests on them, and without a model the client is easily the limit.
    """
    ended = [] if study.status == "complete" else [f"study-{study.status}"]
    judged = [run for run in study.started if not run.is_floor]
    silent = [] if any(run.succeeded for run in judged) else ["no-data"]
    found = [doubt.code for run in judged for doubt in run.caveats if doubt.tainted]
    searched = bool((study.header.get("options") or {}).get("find_rate"))
    spoilt = [
        code for code in found if (code in _SPOIL_A_SEARCH if searched else code not in _JUDGED_ELSEWHERE)
    ]
    return tuple(dict.fromkeys([*ended, *silent, *spoilt]))
