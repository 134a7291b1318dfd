"""Workers in each run: what each did, whether the client was fit to measure, and what the kernel knew."""

from collections.abc import Iterator, Sequence
from statistics import median, median_high, median_low

from reports.fold.http2 import Http2
from reports.fold.path import Path
from reports.fold.records import ratio
from reports.fold.workers import WorkerShare
from reports.format import MISSING, counted, digits, known, ms
from reports.page.question import Question
from reports.page.study_table import StudyNotes
from reports.page.table import Table, TableCell, table_of
from reports.study.study import Study
from reports.summary.summary import Summary, users_busy
from reports.topics.runs.runs import run_name

HEADS = (
    *("run", "worker", "users", "requests", "failures", "images/s", "p50 ms", "p95 ms", "p99 ms"),
    *("CPU %", "loop lag p99 ms", "connections", "s"),
)
FOLDED_ROWS = 40
UNLIKE, LEAST_REQUESTS = 0.25, 100
"""Of the others' median, and how many requests that must be, since with fewer chance makes as much."""
HEALTH_HEADS = (
    *("run", "client", "workers", "CPU a request, µs", "busiest CPU %", "no core %", "loop lag p99 ms"),
    *("longest GC ms", "send delay p99 ms", "late", "abandoned", "X·R of N users"),
)
NS_PER_US = 1e3
PATH_HEADS = (
    *("run", "asked", "seen", "round trip ms", "least ms", "window KB", "sent again %", "busy %"),
    *("receiver %", "send buffer %", "window %", "wire KB an image", "Mbit/s up", "link's images/s"),
)
HTTP2_HEADS = (
    *("run", "connections", "streams at once", "allowed", "stream window KB", "frames a request"),
    *("stream waits", "stream stalls", "ms a stream stall", "connection stalls", "ms a connection stall"),
    *("ping ms", "least ping ms", "TCP round trip ms", "GOAWAYs", "retries"),
)


def per_worker(study: Study) -> Table:
    """One row for each run and worker."""
    notes = StudyNotes(study)
    workers = [(run, place) for run in study.started for place in range(len(run.per_worker))]
    return table_of(
        "Workers",
        HEADS,
        ((run_name(run), *_numbers(run, place, notes)) for run, place in workers),
        caption="What each worker did in the measure phase, by its own clock; CPU in percent of one core. "
        "Look for a worker that is slower than the others or did less, then at its CPU and lag. Marked where "
        f"requests or p50 are more than {100 * UNLIKE:g} % off the others' median, where that is "
        f"{LEAST_REQUESTS} requests or more, and where it made none beside others that did.",
        notes=notes,
        numeric=range(2, len(HEADS)),
        folded=len(workers) > FOLDED_ROWS,
    )


def _numbers(run: Summary, place: int, notes: StudyNotes) -> tuple[TableCell | str, ...]:
    share, others = run.per_worker[place], [*run.per_worker[:place], *run.per_worker[place + 1 :]]
    # Of users that follow a course, those of one worker may send for longer than those of the next.
    said = hints(run.load, share, others) if run.load == "open" or run.closed else ()
    return (
        TableCell(share.worker, notes.marks(said)),
        *(counted(share.users), f"{share.requests:,}", f"{share.failures:,}", known(share.images_per_s)),
        *map(ms, (share.latency_p50_ns, share.latency_p95_ns, share.latency_p99_ns)),
        *(known(share.cpu_pct), ms(share.loop_lag_p99_ns), counted(share.tcp_connections)),
        known(share.phase_ns, 1e9),
    )


def hints(load: str, share: WorkerShare, others: Sequence[WorkerShare]) -> Iterator[str]:
    """What sets a worker apart from the others of its run, which may be trouble on the client's side.

    In closed-loop load requests are compared by user, where the users are known: some workers have one more.
    """
    peers = [other for other in others if other.requests]
    if not peers:
        return
    if not share.requests:
        if load != "closed" or share.users != 0:
            yield _hint("no request, while others made some")
        return
    if median(part.requests for part in peers) < LEAST_REQUESTS:
        return
    by_user = load == "closed" and all(part.users for part in (share, *peers))
    done = [part.requests / ((part.users or 1) if by_user else 1) for part in (share, *peers)]
    if apart := _apart(done[0], done[1:]):
        yield _hint(f"requests{' a user' if by_user else ''} {apart}")
    middles = [part.latency_p50_ns for part in peers if part.latency_p50_ns]
    if middles and share.latency_p50_ns and (apart := _apart(share.latency_p50_ns, middles)):
        yield _hint(f"p50 {apart}")


def _apart(value: float, others: Sequence[float]) -> str:
    """By how much it is off the others' median, in words; empty within the bound.

    Of an even number the nearer of the two in the middle counts: one odd worker among them shifts their mean.
    """
    off = min((value / middle(others) - 1 for middle in (median_low, median_high)), key=abs)
    if abs(off) <= UNLIKE:
        return ""
    return f"{digits(100 * abs(off))} % {'above' if off > 0 else 'below'} the others' median"


def _hint(said: str) -> str:
    return (
        f"{said}: a hint of trouble on the client's side, such as a busy host or a longer way, and no proof"
    )


def generator_health(study: Study) -> Table:
    """One row for each run that was begun; none where no worker told of its health."""
    notes = StudyNotes(study)
    told = any(run.generator.worker_cpu_pct is not None or run.sent.late is not None for run in study.started)
    return table_of(
        "Generator health",
        HEALTH_HEADS,
        (_health(run, notes) for run in study.started if told),
        caption="The worst worker in the measure phase; CPU in percent of one core; no core is the time in "
        "which it was ready to run and had none; GC is Python's own. CPU a request is of all workers with "
        "all their threads, over the requests that came back, right or wrong; the fixed work of each second "
        "(probes, shipping) is in it, so it is high at few requests a second, and in phases of a second or "
        "two it is coarse. Client: prepared sent what was made before the load, library made each request "
        "anew. X·R is the rate times the mean service time: by Little's law so many users waited for an "
        "answer on average, or thought, where they think (X·(R+Z)).",
        notes=notes,
        numeric=range(2, len(HEALTH_HEADS)),
    )


def _health(run: Summary, notes: StudyNotes) -> tuple[TableCell | str, ...]:
    bound = (caveat.text for caveat in run.caveats if caveat.code == "client-bound")
    return (
        TableCell(run_name(run), notes.marks(f"client-bound: {text}" for text in bound)),
        *(run.client or MISSING, f"{run.workers or 0}"),
        TableCell(known(run.client_cpu.ns, NS_PER_US), notes.marks(run.client_cpu.doubts)),
        *map(known, (run.generator.worker_cpu_pct, run.generator.cpu_wait_pct)),
        *map(ms, (run.generator.loop_lag_p99_ns, run.generator.gc_max_ns, run.send_delay.p99_ns)),
        *map(counted, (run.sent.late, run.counts.abandoned)),
        _littles_law(run),
    )


def _littles_law(run: Summary) -> str:
    """Requests in flight on average, of so many users: `7.97 of 8`."""
    share = users_busy(run)
    return MISSING if share is None else f"{digits(share * run.level)} of {run.level:g}"


def connections_and_path(study: Study) -> Table:
    """One row for each run whose connections were looked at."""
    notes = StudyNotes(study)
    rate = "the emulated link" if study.links else "the rate given by --link-mbit"
    return table_of(
        "Connections and path",
        PATH_HEADS,
        ((run_name(run), *_path_numbers(run, run.path)) for run in study.started if run.path),
        caption="From the kernel's TCP_INFO, all workers together. Of the connections' time, busy is when "
        "bytes were under way; of that, held up by the receiver's window, by the send buffer, and by "
        "neither: the congestion window and the wire. Wire bytes are both ways, headers included; the link's "
        f"images/s are what {rate} allows.",
        notes=notes,
        numeric=range(1, len(PATH_HEADS)),
        folded=True,
    )


def link_images_per_s(run: Summary) -> float | None:
    """What a link of the given rate allows in its busier direction; None where one of the two is unknown."""
    if run.path is None or not run.counts.images or not run.link_bytes_per_s:
        return None
    ways = (run.path.sent_wire_bytes, run.path.received_wire_bytes)
    busier = max((way for way in ways if way is not None), default=0)
    return run.link_bytes_per_s * run.counts.images / busier if busier else None


def _path_numbers(run: Summary, path: Path) -> tuple[str, ...]:
    again = ratio(path.bytes_retransmitted, path.bytes_sent)
    shares = (again, path.busy_share, path.rwnd_share, path.sndbuf_share, path.cwnd_share)
    return (
        *(counted(count) for count in (path.asked, path.connections)),
        *(ms(path.rtt_ns), ms(path.min_rtt_ns)),
        known(path.cwnd_bytes, 1e3),
        *(known(share, 0.01) for share in shares),
        known(path.wire_bytes_per_image, 1e3),
        known(path.wire_bytes_per_s, 1e6 / 8),
        known(link_images_per_s(run)),
    )


def http2_connections(study: Study) -> Table:
    """One row for each run whose gRPC calls went over the suite's own HTTP/2 connections."""
    return table_of(
        "HTTP/2 connections",
        HTTP2_HEADS,
        (
            (run_name(run), *_http2_numbers(run, run.path, run.path.http2))
            for run in study.started
            if run.path and run.path.http2
        ),
        caption="What the suite's own gRPC client saw of its connections in the measure phase, all workers "
        "together. Streams at once: the most on one connection, beside the limit that the server allows. "
        "Frames a request: those sent. Stream waits: calls that waited for a free stream. Stalls: how often "
        "the server's window of a stream, or of a connection, was closed to bytes that were ready, and for "
        "how long on average. PINGs go out after an answer, once a second at most; a PING may take longer "
        "than TCP's round trip: it also waits for what the kernel has not sent, and for the server to read. "
        "GOAWAYs: connections that the server ended. Retries: calls that it had not processed, sent again.",
        notes=StudyNotes(study),
        numeric=range(1, len(HTTP2_HEADS)),
        folded=True,
    )


def _http2_numbers(run: Summary, path: Path, seen: Http2) -> tuple[str, ...]:
    return (
        *map(counted, (seen.connections, seen.streams, seen.streams_allowed)),
        known(seen.stream_window_bytes, 1e3),
        known(ratio(seen.frames_sent, run.counts.requests)),
        *(counted(seen.stream_waits), *_stalls(seen.stream_stalls, seen.stream_stalled_ns)),
        *_stalls(seen.connection_stalls, seen.connection_stalled_ns),
        *map(ms, (seen.ping_ns, seen.ping_min_ns, path.rtt_ns)),
        *map(counted, (seen.goaways, seen.retried)),
    )


def _stalls(count: int | None, stalled_ns: int | None) -> tuple[str, str]:
    """How many, and how long each took."""
    return counted(count), ms(ratio(stalled_ns, count))


WORKERS = Question(
    "workers",
    "Workers and connections",
    (per_worker, generator_health, connections_and_path, http2_connections),
)
