"""What a worker makes of orders, and how Locust's own figures are tuned."""

from locust.env import Environment

import gc
import resource
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import gevent
import numpy as np
import pytest
from gevent.event import Event
from gevent.pool import Group

from swarm.clock import wall_ns
from swarm.distributed import worker
from swarm.distributed.protocol import ASK, PARTING, RECORDS, REPLY
from swarm.distributed.shipper import Shipper
from swarm.distributed.worker import Worker, start_ns
from swarm.distributed.worker_cell import YOUNG_OBJECTS, settle_memory
from swarm.locust_patches.patches import three_digits
from swarm.plan.cell import Cell, PlannedRun
from tests.pictures import image_set
from tests.presets import preset
from tests.swarm.fakes import FakeRunner
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.inputs.images import POOL_BYTES
from users.load.assignment import Assignment
from users.load.pacing import OpenPacer, offsets_ns
from users.load.user import InferenceUser
from users.result import Result

S, MS = 1_000_000_000, 1_000_000
IMAGES = image_set(3)
ONNX = preset("onnx-http", "h:1", "m")
EMULATED = preset("emulated-http", "h:1")


@pytest.mark.parametrize(
    ("ahead_ns", "start"),
    [
        (50 * MS, 7 * S + 50 * MS),
        (0, 7 * S),
        (-200 * MS, 7 * S - 200 * MS),  # the order came late, and so are its first arrivals
        (5 * S, 7 * S),  # the clocks differ: there is no common moment
        (-5 * S, 7 * S),
    ],
)
def test_when_a_phase_begins_here(ahead_ns: int, start: int) -> None:
    assert start_ns(1_000 * S + ahead_ns, 1_000 * S, 7 * S) == start


@pytest.mark.parametrize(
    ("exact", "kept"), [(0.41234, 0.412), (57.44, 57.4), (105.2, 105), (1974.4, 1970), (10_512, 10_500)]
)
def test_locust_keeps_three_digits(exact: float, kept: float) -> None:
    assert three_digits(exact) == kept


class AnyUser(InferenceUser):
    """Of the tests."""


class WorkerRunner(FakeRunner):
    """With a place for greenlets; `ask` waits for the answer to one order."""

    user_count = 0
    worker: Worker

    def __init__(self) -> None:
        super().__init__()
        self.greenlet, self._numbers = Group(), count(1)

    def told(self, kind: str) -> list[dict[str, Any]]:
        """What was sent of one kind."""
        return [data for sent, data, _ in self.sent if sent == kind]

    def ask(self, op: str, **data: Any) -> dict[str, Any]:
        seq = next(self._numbers)
        self.deliver(ASK, {"share": (0, 1), **data, "op": op, "seq": seq})
        for _ in range(1000):
            answers = [reply for reply in self.told(REPLY) if reply["seq"] == seq]
            if answers:
                return answers[0]
            gevent.sleep(0.005)
        raise AssertionError(f"no answer to {op}")


@pytest.fixture
def environment() -> Environment:
    return Environment(user_classes=[AnyUser])


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, environment: Environment) -> Iterator[WorkerRunner]:
    monkeypatch.setattr(worker, "load_images", lambda folder, texts, pool_bytes, kinds: IMAGES)
    monkeypatch.setattr(AnyUser, "assignment", None)
    made = WorkerRunner()
    made.worker = Worker(environment, made)  # type: ignore[arg-type]
    yield made
    made.greenlet.kill()


def study_of(**settings: Any) -> dict[str, Any]:
    """What the master says of a study."""
    return {
        "images": "", "texts": "", "pool_bytes": POOL_BYTES, "kinds": [], "sha256": IMAGES.sha256,
        "golden": {}, "min_cosine": 0.99, "timeout_s": 5.0, "raw_results": 0, "slo": "",
        "trace": False, **settings,
    }  # fmt: skip


def task(endpoint: Endpoint, **changed: Any) -> dict[str, Any]:
    """What the master says of a cell of that endpoint."""
    cell = replace(Cell(endpoint, 2, 1, 0, 0), channels="per-user", client="prepared")
    about = {"endpoint": endpoint.to_dict(), "addresses": {}, "users": 1}
    return {**PlannedRun(cell, 1).to_record(), **about, **changed}


def assigned(
    runner: WorkerRunner,
    endpoint: Endpoint,
    golden: Mapping[str, bytes] = {},
    cell: Mapping[str, Any] = {},
    **settings: Any,
) -> Assignment:
    """The assignment of a cell at `endpoint`; `golden` embeddings are by space."""
    assert "error" not in runner.ask("study", **study_of(golden=golden, **settings))
    told = {name: value for name, value in cell.items() if name != "share"}
    assert "error" not in runner.ask("cell", cells=[task(endpoint, **told)], share=cell.get("share", (0, 1)))
    assert AnyUser.assignment is not None
    return AnyUser.assignment


OURS, THEIRS = np.eye(3, 512, dtype=np.float32), np.ones((3, 768), dtype=np.float32)
GOLDEN = {ONNX.space: OURS.tobytes(), EMULATED.space: OURS.tobytes(), "another": THEIRS.tobytes()}
WIDE = replace(ONNX, space="another", contract=replace(ONNX.contract, dimension=768))


@pytest.mark.parametrize(
    ("endpoint", "golden", "expected"),
    [
        (ONNX, GOLDEN, OURS),
        (WIDE, GOLDEN, THEIRS),
        (replace(ONNX, space="a third"), GOLDEN, None),
        (ONNX, {ONNX.space: b""}, None),
        (ONNX.floor(), GOLDEN, None),
        (EMULATED, GOLDEN, None),
    ],
)
def test_golden_embeddings_are_those_of_its_own_space_where_a_model_computes(
    runner: WorkerRunner, endpoint: Endpoint, golden: Mapping[str, bytes], expected: Any
) -> None:
    found = assigned(runner, endpoint, golden).golden
    assert found is None if expected is None else np.array_equal(found, expected)  # type: ignore[arg-type]


def test_other_pictures_or_texts_than_the_masters_are_refused(runner: WorkerRunner) -> None:
    reply = runner.ask("study", **study_of(sha256="0" * 64))
    assert reply["error"] == (
        "its pictures or texts are not the master's; put the same files at the same path there"
    )


def test_a_codec_that_is_a_file_must_be_the_masters(runner: WorkerRunner, tmp_path: Path) -> None:
    assigned(runner, ONNX)
    path = tmp_path / "mine.py"
    path.write_text("raise AssertionError('nobody runs it')")
    for codec, said in (
        (path, f"the codec {path} differs from the master's; put the same file there"),
        (tmp_path / "none.py", f"the codec {tmp_path}/none.py cannot be read (No such file or directory)"),
    ):
        endpoint = replace(ONNX, codec=str(codec), codec_sha256="0" * 64)
        error = runner.ask("cell", cells=[task(endpoint)])["error"]
        assert f"{ONNX.name}: {said}" in error


def test_how_the_client_makes_and_carries_its_requests(runner: WorkerRunner) -> None:
    assignment = assigned(runner, ONNX, cell={"repeat": 3}, min_cosine=0.97, timeout_s=7.5)
    assert (assignment.images, assignment.channels) == (None, "per-user")
    assert [prepared.indices for prepared in assignment.pool] == [(0, 1), (2, 0)]
    about = (assignment.cell, assignment.repeat, assignment.min_cosine, assignment.timeout_s)
    assert about == ("onnx-http/b2/c1", 3, 0.97, 7.5)
    assignment = assigned(runner, ONNX, cell={"client": "library", "channels": "shared"})
    assert (assignment.images, assignment.channels) == (IMAGES, "shared")


@pytest.mark.parametrize("client", ["prepared", "library"])
def test_of_a_mix_every_class_has_requests_of_its_own_and_all_no_more_room_than_one(
    runner: WorkerRunner, client: str
) -> None:
    mixed = assigned(runner, ONNX, cell={"batch_mix": "1:0.5,2:0.3,3:0.2", "batch": 3, "client": client})
    indices = [prepared.indices for prepared in mixed.pool]
    assert {label: [indices[at] for at in own] for label, own in mixed.classes.items()} == {
        **{"b1": [(0,)], "b2": [(0, 1)], "b3": [(0, 1, 2)]},
    }
    two = assigned(runner, ONNX, cell={"batch_mix": "1:0.5,2:0.5", "client": client})
    assert {label: len(own) for label, own in two.classes.items()} == {"b1": 1, "b2": 1}
    assert [bool(prepared.body) for prepared in two.pool] == [client == "prepared"] * 2
    assert assigned(runner, ONNX).classes == {}


def test_a_cell_over_a_link_is_sent_to_the_address_that_its_own_host_reaches(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"addresses": {"near": "198.18.0.1", "far": "198.18.0.5"}}
    monkeypatch.setenv("INFERSWARM_HOST", "far")
    assert assigned(runner, ONNX, cell=addresses).endpoint.address == f"198.18.0.5:{ONNX.port}"
    monkeypatch.setenv("INFERSWARM_HOST", "elsewhere")
    assert assigned(runner, ONNX, cell=addresses).endpoint.address == ONNX.address


def test_a_host_that_does_not_reach_an_endpoint_says_so(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERSWARM_HOST", "far")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = replace(ONNX, address=f"127.0.0.1:{port}").to_dict()
        assert "error" not in runner.ask("reach", endpoints=[there], ways=[{}, {"far": "127.0.0.1"}])
    reply = runner.ask("reach", endpoints=[there], ways=[{}])
    assert reply["error"] == (
        f"host far cannot connect to {ONNX.name} at 127.0.0.1:{port} (Connection refused);"
        " give a URL that every host can reach"
    )


@pytest.mark.parametrize(("trace", "has_a_place"), [(False, False), (True, True)])
def test_a_traced_stage_has_a_place_for_ids(runner: WorkerRunner, trace: bool, has_a_place: bool) -> None:
    assignment = assigned(runner, EMULATED, trace=trace)
    assert [prepared.id_at >= 0 for prepared in assignment.pool] == [has_a_place] * len(assignment.pool)


def test_more_users_than_a_process_may_have_files(
    runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 20_000))
    assert assigned(runner, ONNX, cell={"users": 236}).pool
    assert assigned(runner, ONNX, cell={"users": 300, "share": (0, 2)}).pool
    assert assigned(runner, ONNX, cell={"users": 300, "share": (0, 0)}).pool, (
        "who comes late has no share yet"
    )
    monkeypatch.setattr(AnyUser, "assignment", None)
    error = runner.ask("cell", cells=[task(ONNX, users=200), task(EMULATED, users=37)])["error"]
    assert "237 users on one worker need about 301 open files" in error
    assert "may open 300; raise `ulimit -n`, or spread them over more workers (--processes)" in error


def test_a_cells_memory_is_settled(runner: WorkerRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "settle_memory", settle_memory)
    before = gc.get_threshold()
    gc.unfreeze()
    try:
        assigned(runner, ONNX)
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] == YOUNG_OBJECTS
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def orders_for(phase: str, **ways: Any) -> dict[str, Any]:
    """What the master says of a cell's phase."""
    closed = {"arrivals": "", "rate": 1, "profile": "", "seconds": 0, "users": 1}
    closed |= {"seed": "", "order_seed": ""}
    return {"phase": phase, **closed, **ways}


class Sending:
    """Users of a worker, as its assignment and its recorder see them."""

    def __init__(self, runner: WorkerRunner, environment: Environment, **settings: Any) -> None:
        self.runner, self.environment = runner, environment
        self.assignment = assigned(runner, EMULATED, **settings)
        self.ns = 0

    def phase(self, name: str, **ways: Any) -> dict[str, Any]:
        told = {"start_utc_ns": 0, "patience_s": 5}
        told |= {key: ways.pop(key) for key in ("start_utc_ns", "share") if key in ways}
        orders = [orders_for(name, **ways)] * len(self.runner.worker._parts)
        return self.runner.ask("cool_down" if name == "drain" else "phase", orders=orders, **told)

    def drained(self, patience_s: float = 1) -> dict[str, Any]:
        """What it says of its one cell once it is drained."""
        (told,) = self.runner.ask("drain", patience_s=patience_s)["parts"]
        return dict(told)

    def begin(self, count: int) -> None:
        """So many users begin a request in the phase under way."""
        self.assignment.sent += count
        self.assignment.under_way[self.assignment.phase] += count

    def end(self, phase: str, count: int, error: RequestError | None = None) -> None:
        """So many, each of its own user, come back of those that began in a phase: after a second each."""
        for user in range(count):
            self.assignment.under_way[phase] -= 1
            self.ns += S
            about = {"cell": self.assignment.cell, "repeat": 1, "phase": phase, "user": user, "images": 1}
            times = {"intended_ns": self.ns - S, "start_ns": self.ns - S, "end_ns": self.ns}
            made = Result(**about, **times, request_bytes=1, error=error)
            self.environment.events.request.fire(result=made)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """What has come to the master."""
        told = [record for message in self.runner.told(RECORDS) for record in message["records"]]
        return [record for record in told if record["kind"] == kind]

    def shipped(self) -> Counter[str]:
        """How many requests, by the phase in which they began."""
        found = Counter[str]()
        for one in self.records("window"):
            found[one["phase"]] += one["ok"] + sum(one["failures"].values())
        return found

    def healths(self, phase: str) -> int:
        """How often a phase's health."""
        return sum(record["phase"] == phase for record in self.records("health"))


def test_requests_belong_to_the_phase_in_which_they_began_and_the_load_goes_on(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment)
    users.phase("warm-up")
    users.begin(8)
    users.end("warm-up", 4)
    users.end("warm-up", 1, RequestError(ErrorKind.RESET, ""))
    runner.ask("mark")
    users.begin(2)  # between the mark and the order to measure, when the server's counters are read
    users.phase("measure")
    assert users.assignment.start_event.is_set()
    users.begin(3)
    users.end("warm-up", 5)
    cooling = gevent.spawn(users.phase, "drain")
    gevent.sleep(0.05)
    assert users.assignment.phase == "drain"
    assert users.assignment.start_event.is_set(), "the load goes on until what was measured has come back"
    users.begin(4)
    runner.ask("share", share=(0, 1))
    assert not cooling.ready(), "another order need not wait for it"
    users.end("measure", 2)
    users.end("measure", 1, RequestError(ErrorKind.RESET, ""))
    assert cooling.get(timeout=10)["succeeded"] == [2]
    users.end("drain", 4)
    told = users.drained()
    assert not users.assignment.start_event.is_set()
    assert (told["users"], told["finished"], told["sent"], told["abandoned"]) == (2, 3, 3, 0)
    # two users: from the first's first request to its next one of the drain, 3 s, and the second's likewise
    assert told["users_ns"] == 3 * S + 3 * S
    # 5 that had not come back at the mark, and 4 of the drain
    assert told["other_phases"] == 9
    assert users.shipped() == {"warm-up": 10, "measure": 3, "drain": 4}, "the last second's, too"
    users.assignment = assigned(runner, EMULATED)
    users.phase("warm-up")
    users.begin(2)
    users.phase("measure")
    users.end("warm-up", 2)
    assert users.drained()["other_phases"] == 2, "the mark was of the cell before"


def test_a_request_that_begins_while_the_path_is_looked_at_may_be_counted_in_the_next_phase(
    runner: WorkerRunner, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Sending(runner, environment)
    users.phase("warm-up")
    runner.ask("mark")
    monkeypatch.setattr(Shipper, "end_path", lambda _: users.begin(1))
    users.phase("measure")
    monkeypatch.undo()
    users.end("warm-up", 1)
    assert users.drained()["other_phases"] == 1


@pytest.mark.parametrize("order", ["measure", "drain"])
def test_an_order_that_waited_until_the_phase_was_drained_sends_nothing(
    order: str, runner: WorkerRunner, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, looked = Sending(runner, environment), Event()
    users.phase("measure")
    waits = [looked.wait, lambda: None]
    monkeypatch.setattr(Shipper, "end_path", lambda _: waits.pop(0)())
    late = gevent.spawn(users.phase, order)
    gevent.sleep(0.05)
    runner.ask("drain", patience_s=1)
    looked.set()
    late.get(timeout=10)
    assert not users.assignment.start_event.is_set()


def test_what_never_comes_back_is_abandoned_in_the_phase_in_which_it_began(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment)
    users.phase("measure")
    users.begin(2)
    users.end("measure", 1)
    told = users.drained(patience_s=0.05)
    assert (told["finished"], told["abandoned"], told["other_phases"]) == (1, 1, 0)
    users.end("measure", 1)
    assert runner.ask("drain", patience_s=1)["parts"] == [], "it has no cell any more"
    assert users.shipped() == {"measure": 1}, "what comes back later is nobody's"


def test_a_worker_that_parts_waits_for_what_is_under_way_and_says_what_it_has_done(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment)
    users.phase("measure")
    users.begin(2)
    before = -1
    while before != (before := users.healths("measure")):  # none has just been told
        gevent.sleep(0.12)
    gevent.spawn_later(0.05, users.end, "measure", 2)
    runner.worker.part()
    assert users.healths("measure") > before, "what its last second was like is told under the phase"
    (parting,) = runner.told(PARTING)
    (told,) = parting["parts"]
    assert (told["finished"], told["abandoned"], told["sent"], told["due"]) == (2, 0, 2, None)
    assert 0 < told["phase_ns"] < 60 * S, "until it was told to leave"
    assert users.shipped() == {"measure": 2}


def test_an_open_phase_has_this_workers_share_of_the_schedule_and_another_where_one_is_lost(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment, timeout_s=2.5)
    schedule = ("poisson", 40, "a seed", "ramp:9,hold:9")
    orders = dict(zip(("arrivals", "rate", "seed", "profile"), schedule, strict=True))
    users.phase("measure", **orders, share=(1, 3), start_utc_ns=wall_ns() + S - MS)
    pacer = users.assignment.pacer
    assert isinstance(pacer, OpenPacer)
    assert (pacer.index, pacer.of, pacer.patience_ns) == (1, 3, 2.5 * S)
    assert [*islice(pacer.offsets, 5)] == [*islice(offsets_ns(*schedule), 6)][1:]
    assert 0 < pacer.start_ns - time.perf_counter_ns() <= S
    runner.ask("share", share=(0, 2))
    assert (pacer.index, pacer.of) == (0, 2)
    pacer.due, pacer.dropped, pacer.overslept = 9, 3, 1
    pacer.dropped_by_s.update({4: 1, 2: 2})
    told = users.drained()
    assert (told["due"], told["dropped"], told["overslept"]) == (9, 3, 1)
    assert told["dropped_by_s"] == [(2, 2), (4, 1)]
    assert pacer.over.is_set(), "nobody's turn comes any more"


def test_arrivals_that_still_wait_at_the_end_are_dropped(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment)
    users.phase("measure", arrivals="constant", rate=100, start_utc_ns=wall_ns() - S // 2)
    told = users.drained()
    assert 50 <= told["due"] == told["dropped"] == sum(count for _, count in told["dropped_by_s"])


def test_single_results_are_kept_by_all_workers_together(
    runner: WorkerRunner, environment: Environment
) -> None:
    users = Sending(runner, environment, raw_results=10, share=(0, 3))
    users.phase("measure")
    users.begin(6)
    users.end("measure", 6)
    runner.ask("drain", patience_s=1)
    rows = [each["columns"]["user"] for message in runner.told(RECORDS) for each in message["raw"]]
    assert rows == [[0, 1, 2, 3]]
