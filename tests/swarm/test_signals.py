import signal

import psutil
import pytest

from swarm.signals import send_workers_home


class Runner:
    quitted = 0

    def quit(self) -> None:
        self.quitted += 1


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


def test_going_home_signals_the_forked_workers_alone_and_passes_over_one_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twin, stranger = Child(psutil.Process().cmdline()), Child(["tritonserver"])
    monkeypatch.setattr(psutil.Process, "children", lambda _: [EndedChild([]), twin, stranger])
    runner = Runner()
    send_workers_home(runner)  # type: ignore[arg-type]
    assert (runner.quitted, twin.signals, stranger.signals) == (1, [signal.SIGINT], [])
