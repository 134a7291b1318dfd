"""From events to those who listen: each owner of listeners has a greenlet and a bounded queue of its own.

Nothing here delays or ends a measurement, and what a listener misses is counted and reported.
"""

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gevent
from gevent.queue import Full, Queue

from reports.format import plural
from swarm.events import StudyEvent

MOST_WAITING = 600
"""Events that may wait for listeners: three minutes of a run. Further ones are dropped."""
PATIENCE_S = 5.0
"""How long the end of a study waits for listeners."""
LONGEST = 200
"""Characters kept of an error's text."""
logger = logging.getLogger("inferswarm")
Heard = tuple[str, Callable[..., Any], str, Any]
"""The event, the listener, the name of its argument, and the value."""


class Mailbox:
    """The events of one owner of listeners, heard in order by a greenlet of its own.

    `failed` is called with its first error; `missed` says what it heard and could not pass on, or nothing.
    """

    def __init__(
        self,
        name: str,
        say: Callable[[str], None],
        failed: Callable[[str], None] = lambda fault: None,
        missed: Callable[[], str] = lambda: "",
    ) -> None:
        self._name, self._say, self.failed, self._missed = name, say, failed, missed
        self._told_missed = False
        self._waiting: Queue[Heard | None] = Queue(MOST_WAITING)
        self._busy = False
        self.given = self.dropped = self.raised = 0
        self.error = ""
        gevent.spawn(self._hear)

    def put(self, event: Heard) -> None:
        """One event more; dropped where too many wait."""
        self.given += 1
        try:
            self._waiting.put_nowait(event)
        except Full:
            self._drop(1, "it is too slow")

    def _drop(self, count: int, why: str) -> None:
        if not self.dropped:
            self._say(f"inferswarm: dropping events that {self._name} listens to: {why}")
        self.dropped += count

    def _hear(self) -> None:
        while True:
            event = self._waiting.get()
            if event is None:
                return
            self._busy = True
            name, listener, argument, told = event
            try:
                listener(**{argument: told})
            except (Exception, SystemExit) as error:
                self._failed(name, error)
            if not self._told_missed and (missed := self._missed()):
                self._told_missed = True
                self._say(f"inferswarm: {missed}")
            self._busy = False

    def _failed(self, name: str, error: BaseException) -> None:
        if not self.raised:
            self.error = f"{type(error).__name__}: {error}"[:LONGEST]
            logger.exception("a listener of events.%s raised", name)
            self._say(f"inferswarm: {self._name}, listening to events.{name}, raised {self.error}")
            self.failed(self.error)
        self.raised += 1

    @property
    def idle(self) -> bool:
        """Whether everything was heard."""
        return self._waiting.empty() and not self._busy

    def clear(self) -> None:
        """What still waits is dropped: nobody can wait any longer."""
        if count := self._waiting.qsize():
            self._drop(count, "it did not finish in time")
        while not self._waiting.empty():
            self._waiting.get_nowait()

    def close(self) -> None:
        """Nothing more comes: its greenlet ends, once it is done with what it hears now."""
        self.clear()
        self._waiting.put_nowait(None)

    @property
    def loss(self) -> str:
        """What was lost, in a sentence; nothing where all was heard."""
        given = plural(self.given, "event")
        lost = [f"{self.dropped} of {given} dropped"] if self.dropped else []
        lost += [f"{self.raised} of {given} raised an error, the first: {self.error}"] if self.raised else []
        own = [f"{self._name} missed events: {'; '.join(lost)}."] if lost else []
        return " ".join(filter(None, [*own, self._missed()]))


class Delivery:
    """Takes the events of one study to the listeners that there are when it begins.

    Listeners that are methods belong to their object, functions to their module: the listeners of one owner
    share a mailbox. One of our `own` may have a `flag`, the option that it is known by; `failed`, which is
    told of its first error; and `missed`, which returns a sentence on what it could not pass on since the
    study began, or nothing.
    """

    def __init__(
        self, say: Callable[[str], None], hooks: Mapping[str, StudyEvent[Any]], own: Sequence[object] = ()
    ) -> None:
        self._say = say
        self._own = {id(one) for one in own}
        self._boxes: dict[int | str, Mailbox] = {}
        self._heard: dict[str, list[tuple[Mailbox, Callable[..., Any], str]]] = {}
        for name, hook in hooks.items():
            ours = (getattr(one, f"on_{name}", None) for one in own)
            listeners = [*hook.listeners, *filter(None, ours)]
            self._heard[name] = [(self._box(one), one, hook.argument) for one in listeners]

    def _box(self, listener: Callable[..., Any]) -> Mailbox:
        owner = getattr(listener, "__self__", None)
        module = str(getattr(listener, "__module__", ""))
        key: int | str = module if owner is None else id(owner)
        if key not in self._boxes:
            ours = owner if id(owner) in self._own else None
            name = module_name(module) if owner is None else getattr(ours, "flag", type(owner).__name__)
            asked = {one: getattr(ours, one) for one in ("failed", "missed") if hasattr(ours, one)}
            self._boxes[key] = Mailbox(name, self._say, **asked)
        return self._boxes[key]

    def fire(self, name: str, told: Any) -> None:
        """To all listeners; raises nothing and does not wait."""
        for box, listener, argument in self._heard[name]:
            box.put((name, listener, argument, told))

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._boxes)

    def hears(self, name: str) -> bool:
        """Whether anybody listens to this event."""
        return bool(self._heard.get(name))

    def settle(self) -> None:
        """Wait until everything was heard, for PATIENCE_S at most; what is not in time is dropped."""
        deadline = time.monotonic() + PATIENCE_S
        while not all(box.idle for box in self._boxes.values()) and time.monotonic() < deadline:
            gevent.sleep(0.01)
        for box in self._boxes.values():
            box.clear()

    def fail(self, fault: str) -> None:
        """Why no more events come."""
        for box in self._boxes.values():
            box.failed(fault)

    def close(self) -> None:
        """The last event was heard, or dropped."""
        for box in self._boxes.values():
            box.close()

    @property
    def losses(self) -> list[str]:
        """A sentence for each owner whose listeners missed something."""
        return [box.loss for box in self._boxes.values() if box.loss]


def module_name(module: str) -> str:
    """A module as its author knows it: by its file."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return Path(path).name if path else module
