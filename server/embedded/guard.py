"""`guard.py COMMAND...`: becomes a command that does not outlive the process at the other end of its stdin.

A fork stays behind in the command's process group and reads stdin, which ends however that process does.
Then it stops the whole group, helpers included: while they start, tritonserver's notice nothing themselves.

A word of the command with `$INFERSWARM_MODEL_CONTROL` in it gets that variable's value where no other user of
this machine sees it: every user can read a command line, but only its owner a process's environment. What
such a command writes is its owner's alone to read, too.
"""

import os
import signal
import sys
import time

SECRET = "INFERSWARM_MODEL_CONTROL"
WORD = "INFERSWARM_WORD_"
"""The prefix of the variables that hold the words as the command gets them."""
STOP_S = 4.0
# Of <linux/ptrace.h> and <linux/prctl.h>.
CONT, DETACH, SEIZE, TRACE_EXEC, EVENT_EXEC = 7, 17, 0x4206, 0x10, 4
SET_PTRACER = 0x59616D61
POINTER = 8


def main(argv: list[str]) -> None:
    """Become the command; run it as the leader of its process group."""
    leader = os.getpid()
    value = os.environ.get(SECRET, "")
    words = {i: word.replace(f"${SECRET}", value) for i, word in enumerate(argv) if f"${SECRET}" in word}
    asked, answer = os.pipe(), os.pipe()
    watcher = os.fork()
    if watcher == 0:
        if words:
            os.read(asked[0], 1)
            put_in(leader, words, answer[1])
        watch(leader)
    os.close(answer[1])
    environ = dict(os.environ)
    if words and is_watched(watcher, asked[1], answer[0]):
        environ |= {f"{WORD}{i}": word for i, word in words.items()}
    elif words:
        print(f"guard: no ptrace here, so other users can read ${SECRET} in the command line", flush=True)
        argv = [words.get(i, word) for i, word in enumerate(argv)]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if words:
        # Shared memory with pictures in it, and traces: nobody else's to read.
        os.umask(0o077)
    os.execvpe(argv[0], argv, environ)


def is_watched(watcher: int, ask: int, answer: int) -> bool:
    """Whether the watcher may look into this process, which it is asked to."""
    # Where Yama restricts it, only an ancestor may, unless told.
    ptrace("prctl", SET_PTRACER, watcher)
    os.write(ask, b"?")
    return os.read(answer, 1) == b"y"  # nothing, where the watcher has died of it


def put_in(leader: int, words: dict[int, str], answer: int) -> None:
    """Have the leader's arguments point into its environment, once it has become the command.

    It is stopped as soon as it has, before it has run an instruction. What fails then ends it.
    """
    seized = ptrace("ptrace", SEIZE, leader, 0, TRACE_EXEC) == 0
    os.write(answer, b"y" if seized else b"n")
    while seized:
        _, status = os.waitpid(leader, 0)
        if not os.WIFSTOPPED(status):
            return
        if status >> 16 == EVENT_EXEC:
            try:
                repoint(leader, words)
            except (OSError, ValueError, KeyError) as error:
                print(f"guard: cannot set the words with ${SECRET} ({error!r})", flush=True)
                os.kill(leader, signal.SIGKILL)
            ptrace("ptrace", DETACH, leader, 0, 0)
            return
        ptrace("ptrace", CONT, leader, 0, os.WSTOPSIG(status) if not status >> 16 else 0)


def repoint(leader: int, words: dict[int, str]) -> None:
    """The leader's argv as it lies on its stack: a count, pointers to words, 0, pointers to variables, 0.

    Source: figure 3.9 of the System V ABI for AMD64; AArch64's is alike. `startstack` is its address.
    """
    with open(f"/proc/{leader}/stat") as stat, open(f"/proc/{leader}/mem", "r+b", buffering=0) as memory:
        start = int(stat.read().rpartition(")")[2].split()[28 - 3])

        def pointer(number: int) -> int:
            return int.from_bytes(os.pread(memory.fileno(), POINTER, start + number * POINTER), sys.byteorder)

        count = pointer(0)
        variables = {}
        number = count + 2
        while place := pointer(number):
            name = os.pread(memory.fileno(), len(WORD) + 8, place).split(b"\0")[0].partition(b"=")[0]
            variables[os.fsdecode(name)] = place + len(name) + 1
            number += 1
        for i, word in words.items():
            if not os.pread(memory.fileno(), 4096, pointer(1 + i)).split(b"\0")[0].endswith(SECRET.encode()):
                raise ValueError(f"word {i} differs, as with a script's interpreter")
            place = variables[f"{WORD}{i}"]
            if os.pread(memory.fileno(), len(os.fsencode(word)), place) != os.fsencode(word):
                raise ValueError(f"word {i} is not at its expected address")
            os.pwrite(memory.fileno(), place.to_bytes(POINTER, sys.byteorder), start + (1 + i) * POINTER)


def ptrace(name: str, *arguments: int) -> int:
    """A call of the C library's, with whole numbers and addresses."""
    # Only tritonserver is given secrets: others do not pay for the import.
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), name)
    call.restype = ctypes.c_long
    return int(call(*map(ctypes.c_ulong, arguments)))


def watch(leader: int) -> None:
    """Wait for stdin to end, then ask the group to stop, and end what has not after 4 s."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    # We are the leader's child for as long as it lives.
    while os.getppid() == leader and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
