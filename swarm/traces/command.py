"""`inferswarm trace make | convert | show`: traces for --replay, and what is in one."""

import argparse
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reports.format import digits, one_line, plain, plural
from reports.ledger.files import check_regular
from reports.parser import Parser
from swarm.errors import UsageError
from swarm.traces import generate
from swarm.traces.access_logs import FORMATS, LOG_FORMAT, LogFilter, convert, find_form, said
from swarm.traces.times import MOST_S, RESOLUTION_FLAG, UNIT_FLAG, UNITS
from swarm.traces.trace import ArrivalTrace, read_trace, write_trace

OK = 0
WRITTEN = (".csv", ".jsonl")
GZIP = b"\x1f\x8b"
"""How a compressed file begins."""
MOST_SHOWN = 8
"""Endpoints and batches that are told one by one."""


def main(argv: list[str]) -> int:
    """Make, convert or show a trace. Raises UsageError."""
    arguments = parser().parse_args(argv)
    return int(arguments.run(arguments))


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each thing to do."""
    top = Parser(
        prog="inferswarm trace",
        description="Traces of requests, which a study replays with --replay: made by chance, converted from"
        " access logs, or shown.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add_make(commands)
    _add_convert(commands)
    shown = commands.add_parser("show", help="print a trace's length, rates, batches and endpoints")
    shown.add_argument("trace", metavar="TRACE", type=Path, help="a .csv, .jsonl or .parquet file")
    add_reading(shown)
    shown.set_defaults(run=run_show)
    return top


def _add_make(commands: "argparse._SubParsersAction[Parser]") -> None:
    made = commands.add_parser("make", help="make a trace by chance, the same for the same seed")
    processes = made.add_subparsers(required=True, metavar="PROCESS")
    poisson = processes.add_parser("poisson", help="independent requests at one rate")
    _add_numbers(poisson, rate="requests a second")
    poisson.set_defaults(times=lambda it: generate.poisson(it.rate, it.seconds, it.seed))
    mmpp = processes.add_parser("mmpp", help="bursts: a Poisson process whose rate changes between two")
    _add_numbers(
        mmpp,
        high_rate="requests a second in a burst",
        low_seconds="mean seconds between bursts",
        high_seconds="mean seconds of a burst",
    )
    mmpp.add_argument(
        "--rate", metavar="N", type=from_0, required=True, help="requests a second between bursts"
    )
    mmpp.set_defaults(
        times=lambda it: generate.mmpp(
            it.rate, it.high_rate, it.low_seconds, it.high_seconds, it.seconds, it.seed
        )
    )
    diurnal = processes.add_parser("diurnal", help="a day's course, shortened: lowest at both ends")
    _add_numbers(diurnal, rate="mean requests a second")
    diurnal.add_argument(
        "--swing", metavar="N", type=share, default=0.8, help="share of the rate by which it rises and falls"
        " (default: %(default)s)",
    )  # fmt: skip
    diurnal.set_defaults(times=lambda it: generate.diurnal(it.rate, it.swing, it.seconds, it.seed))
    for one in (poisson, mmpp, diurnal):
        _add_numbers(one, seconds="length of the trace in seconds")
        one.add_argument("--seed", metavar="N", type=whole, default=0, help="seed of the chance (default: 0)")
        one.add_argument("--batch-mix", metavar="MIX", default="", help="shares of requests by items, such as"
            " 1:0.7,4:0.2,16:0.1 (default: one item each)")  # fmt: skip
        _add_output(one)
        one.set_defaults(run=run_make)


def _add_numbers(parser: argparse.ArgumentParser, **named: str) -> None:
    for name, text in named.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, metavar="N", type=above_0, required=True, help=text)


def _add_convert(commands: "argparse._SubParsersAction[Parser]") -> None:
    converted = commands.add_parser(
        "convert",
        help="make a trace of an access log of nginx or Envoy",
        description="Reads nginx's format combined, whose times are to the second; lines of the format"
        f" {LOG_FORMAT} and Envoy's JSON lines with start_time, method and path have milliseconds. Prints how"
        " many lines were left out, and why.",
    )
    add = converted.add_argument
    add("log", metavar="LOG", type=Path, help="the access log")
    add(
        "--format", choices=FORMATS, default="", help="of the log (default: by its first line that is of one)"
    )
    add("--method", metavar="NAME", default="", help="only requests of this method, e.g. POST")
    add("--path", metavar="PREFIX", default="", help="only requests whose path begins so, e.g. /embed")
    add("--items", metavar="FIELD", default="", help="of Envoy's lines: the field with a request's items")
    add("--jitter", metavar="SEED", type=whole, default=0, help="where the log has whole seconds, spread"
        " requests over each at random from this seed (default: 0)")  # fmt: skip
    _add_output(converted)
    converted.set_defaults(run=run_convert)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How the times of a file are to be read, as a study's options have it."""
    parser.add_argument(UNIT_FLAG, choices=UNITS, default="", help="unit of the times (default: found)")
    parser.add_argument(
        RESOLUTION_FLAG, metavar="S", type=from_0,
        help="seconds over which rows of one time are spread, 0 for none (default: found)",
    )  # fmt: skip


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True,
        help="a .csv or .jsonl file that is not there yet",
    )  # fmt: skip


def run_make(arguments: argparse.Namespace) -> int:
    """A generated trace as a file."""
    check_output(arguments.output)
    try:
        trace = generate.with_batches(arguments.times(arguments), arguments.batch_mix, arguments.seed)
    except ValueError as error:
        raise UsageError(f"trace make: {error}") from error
    return save(trace, arguments.output)


def run_convert(arguments: argparse.Namespace) -> int:
    """A converted log as a file."""
    check_output(arguments.output)
    wanted = LogFilter(arguments.method, arguments.path, arguments.items)
    try:
        check_regular(arguments.log)
        with arguments.log.open("rb") as packed:
            if packed.read(len(GZIP)) == GZIP:
                raise ValueError("is compressed; unpack it first, e.g. with gunzip")
        with arguments.log.open(encoding="utf-8-sig", errors="replace") as lines:
            form = arguments.format or find_form(lines)
            lines.seek(0)
            made = convert(lines, form, wanted)
        resolution_s = 1.0 if made.coarse else 0.0
        rows = sorted(made.rows, key=lambda row: row.time_s)
        trace = ArrivalTrace.of(rows, (), "s", resolution_s, arguments.jitter)
    except ValueError as error:
        raise UsageError(f"{arguments.log}: {error}") from error
    except OSError as error:
        raise UsageError(f"{arguments.log}: cannot be read ({error.strerror}); name an access log") from error
    for sentence in (*said(made), *trace.notes):
        print(sentence)
    return save(trace, arguments.output)


def run_show(arguments: argparse.Namespace) -> int:
    """What is in a trace."""
    trace = read(arguments.trace, arguments.replay_unit, arguments.replay_resolution)
    print(one_line(str(arguments.trace)))
    for name, text in shown(trace):
        print(f"  {name:11} {text}")
    return OK


def read(path: Path | str, unit: str, resolution_s: float | None) -> ArrivalTrace:
    """The trace of a file. Raises UsageError, which names the file."""
    try:
        return read_trace(path, unit, resolution_s)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def shown(trace: ArrivalTrace) -> Iterator[tuple[str, str]]:
    """Its figures by name."""
    spread = generate.dispersion(trace.times_s, trace.seconds)
    yield "rows", f"{len(trace):,}"
    yield "seconds", f"{trace.seconds:,.1f}"
    yield "mean rate", f"{digits(trace.mean_per_s)} requests/s"
    yield "peak", f"{trace.most_in_a_second:,} requests in a second"
    yield "times", trace.told_times
    if spread is not None:
        yield "dispersion", f"{digits(spread)}: variance over mean of the seconds' counts, 1 for Poisson"
    yield "items", _shares(trace.items.tolist())
    if trace.endpoints:
        yield "endpoints", _shares(plain(one) or "none named" for one in trace.endpoints)
    if trace.pictures is not None:
        yield "pictures", f"{len(set(trace.pictures.tolist())):,} different"
    for note in trace.notes:
        yield "note", plain(note)


def _shares(values: Iterator[object] | Sequence[object]) -> str:
    """Each value with its share, the most frequent first."""
    counts = Counter(values)
    told = [f"{value} ({count / counts.total():.1%})" for value, count in counts.most_common(MOST_SHOWN)]
    others = [f"{len(counts) - MOST_SHOWN:,} others"] if len(counts) > MOST_SHOWN else []
    return ", ".join([*told, *others])


def check_output(path: Path) -> None:
    """Raises UsageError where a trace cannot be written there, before it is made."""
    if path.suffix.lower() not in WRITTEN:
        raise UsageError(f"-o {path}: give a file that ends in {' or '.join(WRITTEN)}")
    if path.exists():
        raise UsageError(f"-o {path}: already exists; name another file")


def save(trace: ArrivalTrace, path: Path) -> int:
    """Write it, whole or not at all. Raises UsageError."""
    text = io.StringIO()
    write_trace(trace, text, path.suffix.lower())
    temporary = path.with_name(f".{path.name}")
    try:
        temporary.write_text(text.getvalue(), encoding="utf-8")
        temporary.rename(path)
    except OSError as error:
        raise UsageError(f"-o {path}: cannot be written ({error.strerror}); name another file") from error
    finally:
        temporary.unlink(missing_ok=True)
    print(f"{plural(len(trace), 'request')} in {trace.seconds:,.1f} s: {one_line(str(path))}")
    return OK


def _number(holds: Callable[[float], bool], give: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text) if text.isascii() else math.nan
        except ValueError:
            value = math.nan
        if not holds(value):
            raise argparse.ArgumentTypeError(f"{text!r:.40}: give {give}")
        return value

    return read


above_0 = _number(lambda value: 0 < value <= MOST_S, f"a number above 0, up to {MOST_S:,}")
from_0 = _number(lambda value: 0 <= value <= MOST_S, f"a number from 0 to {MOST_S:,}")
share = _number(lambda value: 0 <= value <= 1, "a share from 0 to 1")


def whole(text: str) -> int:
    """A seed."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r:.40}: give a whole number from 0")
    return int(text)
