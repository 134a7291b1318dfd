"""The end of a study, whatever brought it about: its last records, its report, its exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reports.ledger import LedgerWriter
from swarm import rendering
from swarm.collector import Collector
from swarm.conductor import Conductor
from swarm.embedded import EmbeddedServers
from swarm.folder import utc_now

PASSED, FAILED, USAGE, INCONCLUSIVE = 0, 1, 2, 3


@dataclass(frozen=True)
class Ending:
    """A study that has come to its end: `status` is complete, interrupted or failed."""

    conductor: Conductor
    collector: Collector
    ledger: LedgerWriter
    folder: Path
    servers: EmbeddedServers
    say: Callable[[str], None]
    max_failure_ratio: float

    def close(self, status: str, reason: str) -> tuple[str, int]:
        """End the run under way, close the ledger, write the report: what to print, and the exit code."""
        footer = {"kind": "footer", "status": status, "reason": reason, "utc": utc_now()}
        try:
            self.conductor.abort(reason)
            self.collector.end_study()
            self.ledger.write(footer)
            self.ledger.close()
            self.collector.raw.write(self.folder)
            self.servers.copy_logs(self.folder / "logs")
        except OSError as error:
            self.say(f"inferswarm: {self.folder} cannot be written ({error.strerror}); it may lack its end")
        text, rendered = rendering.show(self.folder)
        whole = status == "complete" and not self.conductor.doubtful and rendered
        return text, self._verdict(whole)

    def _verdict(self, whole: bool) -> int:
        """Without all the data there is neither a pass nor a fail."""
        requests, failures = self.collector.requests, self.collector.failures
        if not whole or not requests or self.collector.fault:
            return INCONCLUSIVE
        return PASSED if failures <= self.max_failure_ratio * requests else FAILED
