"""The run under way, added up as its report will: for a search, which goes on by what the report will say."""

from reports.fold.run_records import RunRecords, planned_of
from reports.ledger.ledger import Record, tag_of
from reports.study.summarise import summarise
from reports.summary.summary import Summary

AT_ONCE = 200
"""Records that are added up together: few enough that the master is never held up for long."""


class RunFold:
    """Follows the ledgers of those studies that it is told to, run by run."""

    def __init__(self) -> None:
        self._header: Record = {}
        self._plan: list[Record] = []
        self._run: RunRecords | None = None

    def follow(self, header: Record) -> None:
        """The records of this study come next."""
        self._header, self._plan, self._run = header, [*header["plan"]], None

    def on_record(self, record: Record) -> None:
        """Any record of the ledger, as it is written."""
        if not self._header:
            return
        if record["kind"] == "plan":
            self._plan += record["runs"]
        elif record["kind"] == "run" and record["event"] == "start":
            planned = next(entry for entry in self._plan if tag_of(entry) == tag_of(record))
            self._run = RunRecords(planned_of(planned), at_once=AT_ONCE)
        if self._run and "repeat" in record and tag_of(record) == tag_of(self._run.planned):
            self._run.add(record)

    def summary(self) -> Summary | None:
        """Of the last run that has begun; None before the first, and where its records are of no run."""
        if self._run is None:
            return None
        try:
            options, links = self._header.get("options") or {}, self._header.get("links") or ()
            return summarise(self._run.settled(), options, links)
        except ValueError:
            # What the report will refuse, too.
            return None
