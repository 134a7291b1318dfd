"""What servers that were started with the study held in memory, and its parts."""

from collections.abc import Iterator, Sequence

from reports.fold.server_facts import Memory, MemoryReading
from reports.format import MISSING, known
from reports.page.question import Question
from reports.page.study_table import StudyNotes
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_figures.figures import of_three_backends
from reports.stats.repeats import Runs
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.topics.runs.runs import run_name

MB = 1e6
TITLE = "Memory of the servers"
CAPTION = (
    "Resident MB (10⁶ bytes) of each server with all its processes: tritonserver, the Python processes of "
    "its models, and what guards it. A page that several processes map is divided among them: what servers "
    "share, their libraries, is counted once over all of them, and one alone would hold more. Of a Triton "
    "some 45 MB are not its model's: itself, its guard and the null model. Read before and after measure "
    "phases, in the order the runs were made; what a large batch has taken is not always given back."
)
AT_FIRST = "before its first run"
RSS = "pages that its processes share count for each of them: the kernel did not tell how they are shared"
AFTER_LARGER = "a larger batch had been sent before"
ALL_OF_GPU = "all memory in use on the GPUs while measuring, whoever held it; the driver did not tell whose"
OWN_OF_GPU = "of the server's own processes, as the driver tells it"
THEIR_GPU = "It is given as one for all three backends, is a GPU's, and no measure of a host's memory."
RUN_HEADS = ("run", "server", "before", "after", "allocated", "of files", "shared", "on GPU", "processes")
PARTS = ("resident", "anonymous", "file", "shared", "gpu_memory")


def memory_table(study: Study) -> Table:
    """One row for each server whose memory was read, then what was published of others."""
    notes = StudyNotes(study)
    groups = list(by_server(study).values())
    batches = sorted({batch_of(run) for runs in groups for run in runs})
    ends = list(dict.fromkeys([*batches[:1], *batches[-1:]]))
    heads = ("server", "processes", AT_FIRST, *(f"after batch {batch}" for batch in ends), "most", "on GPU")
    rows = [_row(runs, ends, notes) for runs in groups]
    rows += _published(study, len(heads), notes) if rows else ()
    numeric = range(1, len(heads))
    return table_of(TITLE, heads, rows, caption=CAPTION, notes=notes, numeric=numeric)


def memory_by_run(study: Study) -> Table:
    """One row for each run, in the order they were made, with what the memory after it consists of."""
    notes = StudyNotes(study)
    return table_of(
        f"{TITLE}, run by run",
        RUN_HEADS,
        ((run_name(run), *_of_run(run.memory)) for run in study.started if run.memory),
        caption="MB, in the order the runs were made. Allocated, of files and shared are what it was after "
        "the run: pages of no file, pages of files such as libraries and weights, and memory that processes "
        "share.",
        notes=notes,
        numeric=range(2, len(RUN_HEADS)),
        folded=True,
    )


def by_server(study: Study) -> dict[str, Runs]:
    """The runs with a reading by the names of their servers, in the order of endpoints."""
    read = [run for run in study.started if run.memory]
    ranked = sorted(read, key=lambda run: study.endpoints.index(run.endpoint))
    names = dict.fromkeys(run.memory.server for run in ranked if run.memory)
    return {name: [run for run in read if run.memory and run.memory.server == name] for name in names}


def most_resident(runs: Runs) -> int:
    """The most that a server held at any reading of some runs, in bytes."""
    return max(held.resident_bytes for held in _readings(runs))


def _readings(runs: Runs) -> list[MemoryReading]:
    both = (held for run in runs if run.memory for held in (run.memory.before, run.memory.after))
    return [held for held in both if held]


def _row(runs: Runs, ends: Sequence[Batch], notes: StudyNotes) -> tuple[TableCell | str, ...]:
    first, readings = runs[0].memory, _readings(runs)
    assert first is not None
    mapped = [RSS] if any(held.how == "rss" for held in readings) else []
    return (
        TableCell(first.server, notes.marks(mapped)),
        str(max(held.processes for held in readings)),
        _mb(first.before.resident_bytes if first.before else None),
        *(_after(runs, batch, notes) for batch in ends),
        _mb(most_resident(runs)),
        _on_gpu(runs, notes),
    )


def _after(runs: Runs, batch: Batch, notes: Footnotes) -> TableCell:
    """The first reading after a run of that batch, marked where a run of a larger one had come before."""
    for place, run in enumerate(runs):
        if batch_of(run) == batch and run.memory and run.memory.after:
            larger = any(before.batch > batch.most for before in runs[:place])
            return _mb(run.memory.after.resident_bytes, notes.marks([AFTER_LARGER] if larger else []))
    return TableCell(MISSING)


def _on_gpu(runs: Runs, notes: Footnotes) -> TableCell:
    """The most of the server's own, or else of all on the GPUs; a dash where there is none."""
    own = [held.gpu_memory_bytes for held in _readings(runs) if held.gpu_memory_bytes is not None]
    if own:
        return _mb(max(own), notes.marks([OWN_OF_GPU]))
    all_of_it = [run.gpu.memory_bytes for run in runs if run.gpu.memory_bytes is not None]
    return _mb(max(all_of_it), notes.marks([ALL_OF_GPU])) if all_of_it else TableCell(MISSING)


def _published(study: Study, columns: int, notes: Footnotes) -> Iterator[tuple[TableCell | str, ...]]:
    """What was published of GPU memory, which is not the memory of a host."""
    for name, figures in of_three_backends(study).items():
        for it in figures:
            if (held := it.numbers.get("gpu_memory_bytes")) is not None:
                told = _mb(held, notes.marks([f"published: {it.source}. {THEIR_GPU}"]))
                yield f"published {name}: {it.backend}", *[MISSING] * (columns - 2), told


def _of_run(memory: Memory) -> tuple[TableCell | str, ...]:
    before, after = memory.before, memory.after
    parts = (getattr(after, f"{name}_bytes", None) for name in PARTS)
    held = _mb(before.resident_bytes if before else None)
    return memory.server, held, *map(_mb, parts), str(after.processes) if after else MISSING


def _mb(value: float | None, marks: tuple[int, ...] = ()) -> TableCell:
    return TableCell(known(value, MB), marks, value)


MEMORY = Question("memory", "Memory", (memory_table, memory_by_run))
