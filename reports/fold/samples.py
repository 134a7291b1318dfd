"""What the master sampled each second of a run: GPUs, whether the server could be asked, and what it cost."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.health import SECOND_NS
from reports.fold.records import epoch_s
from reports.fold.replicas import Seen
from reports.fold.server_facts import CpuReadings
from reports.ledger.ledger import Record
from reports.machines.gpus import Gpus, GpuSums, GpuUse, ServersGpus, in_use, mean, of_all, together

HOUR_S = 3600
LEAST_NAMED_CORES = 0.05
COUNTED_S = 3
"""Between the first and the last reading of a counter that a mean is taken by."""
COUNTERS = ("server", "pending_requests", "host")
"""What of a sample is counted from a start on."""


@dataclass(frozen=True)
class OthersUse:
    """Cores that processes took which are neither the study's nor the server's: all, and some by name."""

    cores: float
    named: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """1.5 cores (yes 1.2, python3 0.3)."""
        told = ", ".join(f"{name} {cores:.2g}" for name, cores in self.named if cores >= LEAST_NAMED_CORES)
        return f"{self.cores:.2g} cores{f' ({told})' if told else ''}"


class OthersSums:
    """What others took between the first look and the last; each tells what it was since the one before."""

    def __init__(self) -> None:
        self._taken_ns = Counter[str]()
        self._looks = list[int]()
        """The seconds of the first and the last."""

    def add(self, second: int, taken_ns: Mapping[str, int]) -> None:
        """Takes in a look."""
        if self._looks:  # the first one tells of time before it
            self._taken_ns.update(taken_ns)
        self._looks = [*self._looks[:1], second]

    @property
    def found(self) -> OthersUse | None:
        """None of fewer than two looks."""
        span_ns = (self._looks[-1] - self._looks[0]) * SECOND_NS if self._looks else 0
        if not span_ns:
            return None
        named = tuple((name, ns / span_ns) for name, ns in self._taken_ns.most_common())
        return OthersUse(sum(cores for _, cores in named), named)


class Readings:
    """Of the GPUs and the master's host in several seconds."""

    def __init__(self, samples: Iterable[Record] = ()) -> None:
        self._cpu = array("d")
        self._others = OthersSums()
        self._of_server, self._mark = ServersGpus(), ""
        self._forget_gpus()
        for sample in samples:
            self.add(sample)

    def _forget_gpus(self) -> None:
        """As where none was read yet: what was added up while it was not known which are the server's."""
        self._util, self._power = array("d"), array("d")
        self._most_bytes, self._slowest_mhz = list[float](), list[float]()
        self._energy = list[tuple[int, dict[Any, float]]]()
        """The first and the last reading of all GPUs' counters of energy: the second, and joules by GPU."""
        self._counts = True
        """Whether each of these came after the one before, of the same GPUs, and was more for each."""
        self._gpus = 0
        self._each = defaultdict[object, GpuSums](GpuSums)
        self._came_or_went = False
        """Whether one second had readings of fewer GPUs than another that had some."""

    def add(self, sample: Record) -> None:
        """Takes in a second."""
        gpus, host = self._of_server.of(sample), sample.get("host") or {}
        if self._mark != self._of_server.mark:
            self._mark = self._of_server.mark
            self._forget_gpus()
        now = together(gpus)
        self._util.extend(_known(now.util_pct))
        self._power.extend(_known(now.power_w))
        for gpu in gpus:
            self._each[gpu.get("id")].add(gpu)
        if of_all(gpus, "energy_j"):
            self._add_energy(sample["second"], {gpu.get("id"): gpu["energy_j"] for gpu in gpus})
        self._cpu.extend(_known(host.get("cpu_pct")))
        if (taken_ns := sample.get("others_ns")) is not None:
            self._others.add(sample["second"], taken_ns)
        self._most_bytes = [max(known)] if (known := [*self._most_bytes, *_known(now.memory_bytes)]) else []
        self._slowest_mhz = [min(known)] if (known := [*self._slowest_mhz, *_known(now.sm_clock_mhz)]) else []
        self._came_or_went |= bool(gpus) and self._gpus not in (0, len(gpus))
        self._gpus = max(self._gpus, len(gpus))

    def _add_energy(self, second: int, joules: dict[Any, float]) -> None:
        for at, before in self._energy[-1:]:
            same = second > at and joules.keys() == before.keys()
            self._counts = self._counts and same and all(joules[gpu] > before[gpu] for gpu in joules)
        self._energy = [*self._energy[:1], (second, joules)]

    @property
    def over(self) -> Gpus:
        """Mean utilisation and power, most memory, slowest clock.

        Utilisation is of the GPUs in use. Memory and power are of all that hold the server's process: what
        they draw idle is drawn for it, too.
        """
        each, working = self.each_gpu, in_use(self.each_gpu)
        known = [gpu.util_pct for gpu in working if gpu.util_pct is not None]
        util_pct = mean(self._util if len(working) == len(each) else known)
        most_bytes, slowest_mhz = (next(iter(one), None) for one in (self._most_bytes, self._slowest_mhz))
        return Gpus(util_pct, most_bytes, self._mean_power_w, slowest_mhz)

    @property
    def _mean_power_w(self) -> float | None:
        """By counters of energy, which miss nothing between two readings; without these, by the readings.

        A counter that stands still is of a page that is renewed more seldom than read: its steps are not
        of these seconds. One that falls began again. Where a GPU came or went, it is unknown what all drew.
        """
        if self._came_or_went:
            return None
        (began, before), (ended, after) = (*self._energy, (0, {}), (0, {}))[:2]
        # A reading may come some tenths of a second late.
        if not self._counts or ended - began < COUNTED_S:
            return mean(self._power)
        return (sum(after.values()) - sum(before.values())) / (ended - began)

    @property
    def host_cpu_pct(self) -> float | None:
        """The mean of the master's machine, in percent of all its cores; None where untold."""
        return mean(self._cpu)

    @property
    def others(self) -> OthersUse | None:
        """What other processes of the master's machine took; None where untold."""
        return self._others.found

    @property
    def gpus(self) -> int | None:
        """The most GPUs of the server that a second had readings of; None where none had."""
        return self._gpus or None

    @property
    def each_gpu(self) -> tuple[GpuUse, ...]:
        """What each of them did."""
        return tuple(sums.over(gpu) for gpu, sums in self._each.items())


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


class Samples:
    """The samples of a run, added up as they come, and by the spans of its timeline.

    `spans` has those of each span by its first second, one made of all once it is closed. `measured` are the
    readings in the measure phase, `requests` what its samples say that the server had counted so far.
    `of_server` knows which GPUs are the server's, by all samples so far.
    """

    def __init__(self) -> None:
        self.spans = defaultdict[int, list[Record]](list)
        self.measured = Readings()
        self.of_server = ServersGpus()
        self.requests = array("q")
        self._identities = list[str]()
        self.cpu = CpuReadings()
        self._read = set[int]()
        """Seconds with the server's counters."""
        self._missing = list[tuple[int, str, str]]()
        """What could not be read: the second, its phase, and what was said."""
        self._measure = range(0)
        """From the first second of the measure phase to the last."""

    def add(self, sample: Record, span: int) -> None:
        """Takes in one, which belongs to the span that begins at `span`."""
        self.spans[span].append(sample)
        self.of_server.of(sample)
        at, phase, server = sample["second"], sample["phase"], sample.get("server")
        self._missing += [(at, phase, intern(text)) for text in sample.get("missing") or ()]
        if server is not None:  # a server that tells nothing was asked, too
            self._read.add(at)
        if phase == "measure":
            known = self._measure or range(at, at + 1)
            self._measure = range(min(at, known.start), max(at + 1, known.stop))
            self.measured.add(sample)
            if cpu := sample.get("server_cpu"):
                self.cpu.add(at, cpu, sample.get("identity") or "")
            if server and "requests" in server:
                self.requests.append(server["requests"])
                self._identities.append(intern(sample.get("identity") or ""))

    def close(self, span: int, width_s: int) -> None:
        """Of this span nothing more comes."""
        if width_s > 1 and span in self.spans:
            self.spans[span] = [{**merged(self.spans[span]), "second": span}]

    @property
    def seen(self) -> list[Seen]:
        """What the samples of the measure phase tell of the requests counted, and of who answered."""
        return [Seen(*one) for one in zip(self.requests, self._identities, strict=True)]

    def missed(self, phase: str) -> list[str]:
        """What was said in a phase of what could not be read."""
        return [text for _, at_phase, text in self._missing if at_phase == phase]

    def gap(self, phases: Sequence[Record], watched: bool) -> Iterator[Caveat]:
        """The caveat where seconds of the measure phase lack the server's counters, or another source.

        `watched`: whether the run was one to be sampled at all; those of older ledgers were not.
        """
        seconds = self._measured_seconds(phases)
        if not watched or not seconds:
            return
        texts = [text for at, _, text in self._missing if at in seconds]
        unread = {"server": len(seconds) - len(self._read.intersection(seconds))} | _failed_sources(texts)
        said = [
            f"{count} of {len(seconds)} seconds without a {name} reading{_reason(texts, name)}"
            for name, count in unread.items()
            if count
        ]
        if said:
            yield caveat("probe-gap", "; ".join(said))

    def _measured_seconds(self, phases: Sequence[Record]) -> range:
        """The seconds that ended in the measure phase, by the master's clock, as its samples are."""
        begins = {line["phase"]: int(epoch_s(line["utc"])) for line in phases}
        if "measure" in begins and "drain" in begins:
            return range(begins["measure"], begins["drain"])
        return self._measure


def merged(samples: Sequence[Record]) -> dict[str, Any]:
    """Samples as one: of what is counted from a start on the last word, of GPUs and CPU the mean."""
    last: dict[str, Any] = {}
    for sample in samples:
        last |= {name: sample[name] for name in COUNTERS if sample.get(name) is not None}
    readings = Readings(samples)
    gpus = {name: value for name, value in vars(readings.over).items() if value is not None}
    if readings.host_cpu_pct is not None:
        last["host"] = {**last["host"], "cpu_pct": readings.host_cpu_pct}
    return {**samples[-1], **last, "gpus": [gpus] if gpus else []}


def _failed_sources(texts: Iterable[str]) -> dict[str, int]:
    """In how many seconds each source but the server could not be read."""
    names = Counter(text.partition(": ")[0] for text in texts)
    return {name: count for name, count in sorted(names.items()) if name != "server"}


def _reason(texts: Iterable[str], name: str) -> str:
    """What was said of a source most often, in brackets; empty where nothing was."""
    said = Counter(text.removeprefix(f"{name}: ") for text in texts if text.startswith(f"{name}: "))
    return f" ({said.most_common(1)[0][0]})" if said else ""


@dataclass(frozen=True)
class Cost:
    """Images for a US dollar, joules for an image; None where rate, price or power is unknown or 0."""

    images_per_usd: float | None = None
    joules_per_image: float | None = None


def costs(images_per_s: float | None, power_w: float | None, options: Mapping[str, Any]) -> Cost:
    """By the header's options, whose `usd_per_hour` is what the servers cost together.

    `power_w` is the mean over the measure phase of the server's GPUs, or of all that were sampled where it is
    not known which it uses, with what they draw idle: by their counters of energy where they have these.
    """
    usd = options.get("usd_per_hour")
    return Cost(
        images_per_usd=images_per_s * HOUR_S / usd if images_per_s and usd else None,
        joules_per_image=power_w / images_per_s if images_per_s and power_w else None,
    )
