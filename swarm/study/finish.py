"""The end of a study, whatever brought it about: its last records, its report, its exit code."""

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reports.ledger.ledger import LedgerWriter
from reports.ledger.results import FILE_NAME
from swarm.clock import utc_now
from swarm.distributed.collector import Collector
from swarm.launcher.launch_info import BEGAN
from swarm.output import report_process
from swarm.output.dispatch import Dispatcher
from swarm.output.gate import Gate
from swarm.redaction import copy_escaped
from swarm.study.conductor import Conductor
from swarm.targets.embedded import EmbeddedServers

PASSED, FAILED, USAGE, INCONCLUSIVE = 0, 1, 2, 3


@dataclass(frozen=True)
class StudyEnd:
    """A study that has come to its end: `status` is complete, interrupted or failed."""

    conductor: Conductor
    collector: Collector
    ledger: LedgerWriter
    folder: Path
    servers: EmbeddedServers
    say: Callable[[str], None]
    max_failure_ratio: float
    gate: Gate
    events: Dispatcher
    worker_logs: str = ""
    """The folder of what the workers have written, if it is here."""
    tables: bool = False
    """Whether the report's tables are printed below its first screen."""

    def close(self, status: str, reason: str) -> tuple[str, int]:
        """End the run under way, close the ledger, write the report: what to print, and the exit code."""
        footer = {"kind": "footer", "status": status, "reason": reason, "utc": utc_now(), **self.gate.facts()}
        try:
            self.conductor.abort(reason)
            self.collector.end_study()
            missed = self.events.finish()
            self.ledger.write({**footer, "events": missed} if missed else footer)
            self.ledger.close()
            self.servers.copy_logs(self.folder / "logs")
            if self.worker_logs:
                ignored, logs = shutil.ignore_patterns(BEGAN), self.folder / "logs"
                shutil.copytree(
                    self.worker_logs, logs, ignore=ignored, copy_function=copy_escaped, dirs_exist_ok=True
                )
        except OSError as error:
            self.say(f"inferswarm: {self.folder} cannot be written ({error.strerror}); it may lack its end")
        self._write_raw()
        text, code = self._judged() if self.gate.given else self._shown()
        return text, INCONCLUSIVE if self.collector.fault else code

    def _shown(self) -> tuple[str, int]:
        """By the share of failures; without all the data there is neither a pass nor a fail."""
        text, code = report_process.show(self.folder, self.tables)
        requests, failures = self.collector.requests, self.collector.failures
        if code != PASSED or self._inconclusive() or not requests:
            return text, INCONCLUSIVE
        return text, PASSED if failures <= self.max_failure_ratio * requests else FAILED

    def _judged(self) -> tuple[str, int]:
        """By the gate; where that cannot be done, the report without it."""
        text, code = self.gate.judge(self.tables)
        if code in (PASSED, FAILED, INCONCLUSIVE):
            return text, code
        report, _ = report_process.show(self.folder, self.tables)
        fix = f"fix that, and judge it again with inferswarm gate {shlex.quote(str(self.folder))}"
        return f"{report}\n{text}\ninferswarm: there are no verdicts on this study; {fix}", INCONCLUSIVE

    def _write_raw(self) -> None:
        """The single requests; without them the study is as good as with them."""
        try:
            self.collector.raw.write(self.folder)
        except Exception as error:
            self.say(f"inferswarm: {self.folder}/{FILE_NAME} cannot be written ({error})")

    def _inconclusive(self) -> bool:
        """What the report says of the study's own figures."""
        try:
            about = json.loads((self.folder / "study.json").read_text())
        except (OSError, ValueError):
            return True
        return bool(about["inconclusive"])
