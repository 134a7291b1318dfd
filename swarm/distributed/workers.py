"""The master's view of its workers: who is connected, who runs which cell, and waiting for answers."""

from locust.runners import STATE_MISSING, MasterRunner, Runner

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gevent

from swarm.distributed.protocol import ASK, HELLO, PARTING, REPLY, careful, is_hello, is_parting, is_reply
from swarm.errors import RunFailedError

SILENCE_S = 3.0
"""A worker reports its state every second; one silent for this long is lost."""
BUSY_S = 1.0
"""A master that was busy for this long cannot blame the workers for their silence."""


@dataclass
class Answers:
    """What came back: replies by worker, and who was lost or silent."""

    op: str = ""
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """The sentences of the workers that could not do it."""
        return [f"{worker}: {reply['error']}" for worker, reply in self.replies.items() if "error" in reply]


class Workers:
    """Asks every worker at once, on Locust's own link; in a single process, the local one."""

    def __init__(self, runner: Runner, say: Callable[[str], None]) -> None:
        self._runner = runner
        self._say = say
        self._numbers = itertools.count(1)
        self._open: dict[int, Answers] = {}
        self._standing: dict[str, dict[str, Any]] = {}
        self._parted: set[str] = set()
        self._last_words: dict[str, dict[str, Any]] = {}
        self._hosts: dict[str, str] = {}
        self._seated: set[str] | None = None
        """The workers that take part in the current cell, where it names a number; else all do."""
        runner.register_message(REPLY, careful(REPLY, is_reply, self._on_reply))
        runner.register_message(HELLO, careful(HELLO, is_hello, self._on_hello))
        runner.register_message(PARTING, careful(PARTING, is_parting, self._on_parting))

    def taking_part(self) -> list[str]:
        """The ids of the workers that are alive and have a part in the cell under way."""
        seated = self._seated
        return [worker for worker in self.alive() if seated is None or worker in seated]

    def alive(self) -> list[str]:
        """The ids of all workers that are alive."""
        if not isinstance(self._runner, MasterRunner):
            return ["local"]
        present = (node.id for node in self._runner.clients.all if node.state != STATE_MISSING)
        return [worker for worker in present if worker not in self._parted]

    def host(self, worker: str) -> str:
        """The name of the client host that a worker runs on."""
        return self._hosts.get(worker) or worker.rpartition("_")[0]

    @property
    def strangers(self) -> list[str]:
        """Workers that have connected, but have not said yet where they are."""
        return [worker for worker in self.alive() if worker != "local" and worker not in self._hosts]

    def choose(self, workers: int, hosts: int) -> None:
        """Only so many workers on so many hosts have a part from here on, 0 is all; nobody has users now.

        Raises RunFailedError where there are not so many.
        """
        self._seated = None
        self.drop_missing()
        if workers or hosts:
            by_host: dict[str, list[str]] = {}
            for worker in sorted(self.alive(), key=lambda worker: (self.host(worker), self.name(worker))):
                by_host.setdefault(self.host(worker), []).append(worker)
            self._seated = set(seated(by_host, workers, hosts))
            for worker in set(self.alive()) - self._seated:
                message = {"op": "rest", "seq": next(self._numbers), "share": (0, 0)}
                self._runner.send_message(ASK, message, worker)
        self._seat()

    def _seat(self) -> None:
        """Tell Locust's dispatcher, which would spread users over all workers."""
        runner = self._runner
        if not isinstance(runner, MasterRunner) or runner._users_dispatcher is None:
            return
        dispatcher = runner._users_dispatcher
        takes_part, had = self.taking_part(), {node.id: node for node in dispatcher._worker_nodes}
        for worker in takes_part:
            if worker not in had:
                dispatcher.add_worker(runner.clients[worker])
        for worker, node in had.items():
            if worker not in takes_part:
                dispatcher.remove_worker(node)

    def keep_seats(self) -> list[str]:
        """The names of those dismissed, since Locust has given them users meant for others.

        It does so with a worker that comes, or comes back, whether the cell has a seat for it or not.
        """
        if self._seated is None or self._runner._users_dispatcher is None:
            return []
        dispatcher = self._runner._users_dispatcher
        strays = [node.id for node in dispatcher._worker_nodes if node.id not in self._seated]
        names = [self.name(worker) for worker in strays]
        for worker in strays:
            self.drop(worker)
        return names

    def drop_missing(self) -> None:
        """Forget those that went missing while nobody looked."""
        if isinstance(self._runner, MasterRunner):
            for node in [node for node in self._runner.clients.all if node.state == STATE_MISSING]:
                self.drop(node.id)

    def name(self, worker: str) -> str:
        """A short, stable name: `w0`, `w1`, … in the order they came."""
        if not isinstance(self._runner, MasterRunner):
            return "w0"
        return f"w{self._runner.get_worker_index(worker)}"

    def drop(self, worker: str) -> None:
        """Forget a lost worker for good; if it is still alive, it is dismissed: it would keep sending.

        Locust itself would give its users to the others a minute later, and users of every class at that.
        """
        runner = self._runner
        if isinstance(runner, MasterRunner) and worker in runner.clients:
            runner.send_message("quit", None, worker)
            node = runner.clients[worker]
            del runner.clients[worker]
            if runner._users_dispatcher is not None:
                runner._users_dispatcher.remove_worker(node)

    def ask(self, op: str, data: Mapping[str, Any], patience_s: float) -> Answers:
        """Send to all, and wait until each has answered, has gone, or `patience_s` is over.

        Each is told its `share`: which of how many it is. One that comes late has none.
        """
        seq = next(self._numbers)
        message = {**data, "op": op, "seq": seq, "share": (0, 0)}
        self._remember(op, message)
        answers = self._open[seq] = Answers(op)
        if op == "drain":
            answers.replies, self._last_words = self._last_words, {}
        asked = self.taking_part()
        for index, worker in enumerate(asked):
            self._runner.send_message(ASK, {**message, "share": (index, len(asked))}, worker)
        deadline = time.monotonic() + patience_s
        while not self._answered(asked, answers) and time.monotonic() <= deadline:
            gevent.sleep(0.005)
        del self._open[seq]
        answers.lost = [worker for worker in asked if worker not in answers.replies]
        return answers

    def _answered(self, asked: list[str], answers: Answers) -> bool:
        """Whether nobody is left who was asked, is there, and has not answered."""
        there = set(self.taking_part())
        return all(worker in answers.replies for worker in asked if worker in there)

    def _remember(self, op: str, message: dict[str, Any]) -> None:
        """Keep what a late worker must be told: the study, the cell, and the phase while it lasts."""
        if op in ("cell", "cool_down", "drain"):
            self._standing.pop("phase", None)
        if op in ("study", "cell", "phase"):
            self._standing[op] = message

    def forget(self) -> None:
        """Nothing stands any more: a worker that comes now is told nothing."""
        self._standing.clear()
        self.choose(0, 0)

    def _on_reply(self, msg: Any, **_: Any) -> None:
        data = dict(msg.data)
        answers = self._open.get(data.pop("seq"))
        if answers is not None and (answers.op != "drain" or "error" in data or is_parting(data)):
            answers.replies[msg.node_id] = data
        elif answers is None and "error" in data:
            # Only a late worker answers a question that is closed; with others' pictures it is of no use.
            self._say(f"worker {self.name(msg.node_id)} cannot take part and is dismissed: {data['error']}")
            self._runner.send_message("quit", None, msg.node_id)

    def _on_parting(self, msg: Any, **_: Any) -> None:
        """One that leaves by itself has drained: its answer to the drain under way, or to the next."""
        self._parted.add(msg.node_id)
        under_way = (answers.replies for answers in self._open.values() if answers.op == "drain")
        next(under_way, self._last_words)[msg.node_id] = dict(msg.data)

    def _on_hello(self, msg: Any, **_: Any) -> None:
        """Note where it is, and bring a late worker up to the others."""
        self._hosts[msg.node_id] = str(msg.data.get("host", ""))
        for op in ("study", "cell", "phase"):
            if op in self._standing:
                self._runner.send_message(ASK, self._standing[op], msg.node_id)


class RunWorkers:
    """The workers of one run; `heard` has the time of each one's last message, by `clock`."""

    def __init__(self, workers: Workers, heard: Mapping[str, float], clock: Callable[[], float]) -> None:
        self._workers, self._heard, self._clock = workers, heard, clock
        self._since = self._looked = clock()
        workers.drop_missing()
        self.ids = workers.taking_part()
        """The workers present when the run begins, without the lost ones, with those that join."""
        self._came: dict[str, float] = {}

    def begin_phase(self) -> None:
        """From here on every worker is to be heard of each second."""
        self._since = self._looked = self._clock()

    @property
    def names(self) -> list[str]:
        """The workers' short names."""
        return [self._workers.name(worker) for worker in self.ids]

    @property
    def places(self) -> list[str]:
        """The client host of each."""
        return [self._workers.host(worker) for worker in self.ids]

    def lost(self) -> list[str]:
        """Those that have left or gone silent since the last check."""
        now = self._clock()
        if now - self._looked > BUSY_S:
            self._since = now
        self._looked = now
        there = set(self._workers.taking_part())
        return [worker for worker in self.ids if worker not in there or self._silent(worker, now)]

    def _silent(self, worker: str, now: float) -> bool:
        last = max(self._since, self._heard.get(worker, 0.0), self._came.get(worker, 0.0))
        return now - last > SILENCE_S

    def drop(self, workers: list[str]) -> Iterator[str]:
        """Do without them from here on; the names of those that took part."""
        for worker in workers:
            if worker in self.ids:
                self.ids.remove(worker)
                self._workers.drop(worker)
                yield self._workers.name(worker)

    def joined(self) -> Iterator[str]:
        """Take in those that have come since the run began; their names."""
        known = set(self.ids)
        for worker in self._workers.taking_part():
            if worker not in known:
                self.ids.append(worker)
                self._came[worker] = self._clock()
                yield self._workers.name(worker)


def seated(by_host: Mapping[str, Sequence[str]], workers: int, hosts: int) -> list[str]:
    """`workers` of the workers there are by host, each host giving one in its turn; 0 is all there are.

    Raises RunFailedError where there are not so many.

    >>> seated({"h1": ["a", "b"], "h2": ["c"]}, workers=2, hosts=2)
    ['a', 'c']
    """
    if len(by_host) < hosts:
        raise RunFailedError(f"it asks for {hosts} hosts and {len(by_host)} are available")
    # Where not all are needed, those with most room.
    roomy = sorted(by_host.values(), key=len, reverse=True)[:hosts]
    chosen = roomy or list(by_host.values())
    turns = itertools.zip_longest(*chosen)
    found = [worker for turn in turns for worker in turn if worker is not None]
    if len(found) < workers:
        where = f" on {hosts} hosts" if hosts else ""
        raise RunFailedError(f"it asks for {workers} workers{where} and {len(found)} are there")
    return found[: workers or len(found)]
