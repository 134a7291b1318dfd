from locust.env import Environment

import signal
from collections.abc import Callable

import gevent
import psutil
import pytest

from swarm.locust_patches.signals import INTERRUPTED, MasterSignals, handle, send_workers_home


class Runner:
    def __init__(self) -> None:
        self.environment, self.quitted = Environment(), 0

    def quit(self) -> None:
        """A worker that has only just come makes such a report."""
        self.quitted += 1
        self.environment.events.worker_report.fire(client_id="w", data={})


class Child:
    def __init__(self, words: list[str]) -> None:
        self.words, self.signals = words, list[int]()

    def cmdline(self) -> list[str]:
        return self.words

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


class EndedChild(Child):
    def cmdline(self) -> list[str]:
        raise psutil.ZombieProcess(1)


def test_going_home_signals_the_forked_workers_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twin, stranger = Child(psutil.Process().cmdline()), Child(["tritonserver"])
    monkeypatch.setattr(psutil.Process, "children", lambda _: [EndedChild([]), twin, stranger])
    runner, heard = Runner(), list[str]()
    runner.environment.events.worker_report.add_listener(lambda client_id, **_: heard.append(client_id))
    send_workers_home(runner)  # type: ignore[arg-type]
    assert heard == []
    assert (runner.quitted, twin.signals, stranger.signals) == (1, [signal.SIGTERM], [])


def test_a_signal_before_the_study_ends_the_process_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers: list[Callable[[], None]] = []
    monkeypatch.setattr(gevent, "signal_handler", lambda number, handler: handlers.append(handler))
    monkeypatch.setattr(psutil.Process, "children", lambda _: [])
    runner = Runner()
    MasterSignals(runner.environment, runner, None)  # type: ignore[arg-type]
    gevent.get_hub().loop.run_callback(handlers[0])
    with pytest.raises(SystemExit) as left:
        gevent.sleep(60)
    assert (left.value.code, runner.quitted) == (INTERRUPTED, 1)
    assert capsys.readouterr().err == "inferswarm: stopped before the study began\n"


def test_what_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    handled = list[int]()
    monkeypatch.setattr(gevent, "signal_handler", lambda number, _: handled.append(number))
    monkeypatch.setattr(
        signal, "getsignal", {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_DFL}.__getitem__
    )
    handle(lambda: None, signal.SIGINT, signal.SIGTERM)
    assert handled == [signal.SIGTERM]
