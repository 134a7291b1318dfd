"""What each part of the master's bookkeeping costs: the same messages through one part after the other."""

from __future__ import annotations

from locust.rpc.protocol import Message

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.long_ledger import STARTED, planned
from benchmarks.scaling import told
from benchmarks.stand_in import Link
from reports.ledger.ledger import FILE_NAME, LedgerWriter
from swarm.distributed.collector import Collector
from swarm.exporters.live import Live
from swarm.output.dispatch import Dispatcher
from swarm.output.run_fold import RunFold

TAG = ("a-http/b1/c16", 1, "measure")
KINDS, SECOND = 16, 1_795_258_800


def second_of(workers: int) -> list[bytes]:
    """The messages of records that so many workers send in one second."""
    heads = [told.stamped(told.told(told.records(TAG, seed)), SECOND, 0) for seed in range(KINDS)]
    path = told.stamped(told.told(told.path(TAG)), SECOND, 0)
    return [
        told.whole(head, f"w{index}") for index in range(workers) for head in (heads[index % KINDS], path)
    ]


def progress_of(workers: int) -> list[bytes]:
    """One message of progress of each."""
    return [told.whole(told.progress(TAG, 1_000), f"w{index}") for index in range(workers)]


def shares(workers: int, times: int = 3) -> dict[str, float]:
    """Cores that each part takes for a second's messages of so many workers; the best of some times."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = LedgerWriter(Path(folder) / FILE_NAME)
        parts = dict(works(second_of(workers), progress_of(workers), ledger))
        try:
            return {name: min(cpu_s(work) for _ in range(times)) for name, work in parts.items()}
        finally:
            ledger.close()


def works(
    messages: Sequence[bytes], progress: Sequence[bytes], ledger: LedgerWriter
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The parts by name; the last is what the collector does, checks of the messages among it."""
    records = [record for message in messages for record in records_of(message)]
    collector = Collector(link := Link(), lambda worker: worker)  # type: ignore[arg-type]
    collector.begin_phase([TAG[:2]], TAG[2])
    yield "decoding messages of records", lambda: each(Message.unserialize, messages)
    yield "adding up the run", lambda: followed(records)
    yield "writing the ledger", lambda: each(ledger.write, records)
    yield "the same with events and a listener", lambda: followed(records, Live())
    yield "progress, one message each", lambda: each(link.deliver, progress)
    whole = Collector(whole_link := Link(), lambda worker: worker)  # type: ignore[arg-type]
    whole.begin_study(ledger)
    whole.begin_phase([TAG[:2]], TAG[2])
    yield "decoding, checking and ledger together", lambda: each(whole_link.deliver, messages)


def followed(records: Sequence[dict[str, Any]], *listeners: object) -> None:
    """A second, added up, and told to those who listen."""
    dispatcher, plan = Dispatcher(RunFold(), print), [planned("a-http", 1, 16)]
    dispatcher.begin({"plan": plan, "started_utc": STARTED}, listeners)
    tag = {"cell": TAG[0], "repeat": TAG[1]}
    workers = sorted({record["worker"] for record in records})
    start = {"kind": "run", **tag, "event": "start", "utc": STARTED, "workers": workers, "hosts": 1}
    each(dispatcher.on_record, [start, *records])
    dispatcher.finish()


def records_of(message: bytes) -> list[dict[str, Any]]:
    """What a message tells, with the worker's name, as the collector adds it."""
    found = Message.unserialize(message)
    return [{**record, "worker": found.node_id} for record in found.data["records"]]


def each(work: Callable[[Any], object], those: Sequence[Any]) -> None:
    """Do it to each."""
    for one in those:
        work(one)


def cpu_s(work: Callable[[], None]) -> float:
    """The processor time of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before
