"""The keeper: stands between the runner and a job, so that whatever the job has started ends with it.

::

    runner ── keeper ── job ── JVM, Python workers, …

A job that is killed leaves what it has started behind, and the kernel gives that to process 1, where nobody looks for it. The
keeper is a *child subreaper* (prctl(2)): what loses its parent below it becomes its own child. When the job has ended it ends its
children, and what becomes its child by that, until there are none; then it ends as the job did, by the same status or signal.

============================ ============================================================================================
the job ends, or is killed   what it has left gets SIGTERM, and after `REST_WITHIN_S` SIGKILL
the keeper gets SIGTERM      so does the job; after as long as the runner says, SIGKILL
the runner is gone           the kernel sends the keeper SIGTERM
the keeper is killed         the kernel sends the job SIGTERM; what that has started may live on
============================ ============================================================================================

It signals only its own children, and by pid: until it has waited for a child, no other process can have that number. All stay in
the runner's process group, by which a local stack ends what is left. What makes a group of its own (PySpark's workers do) is
ended here all the same.

`python -I -S keeper.py <pid of the runner> <fd> <seconds> <program> <word> …`: standard library only. To the fd goes the number
of the error where the program could not be started, and nothing where it was; then it is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
REST_WITHIN_S = 2.0
GIVES_UP_AFTER_S = 5.0
"""After SIGKILL: what the kernel does not let go of (a disk that does not answer) keeps the keeper no longer."""
ENDS_WITHIN_S = REST_WITHIN_S + GIVES_UP_AFTER_S
"""After the job."""
LOOKS_EVERY_S, LONGEST_WAIT_S = 0.05, 60.0
NOT_STARTED = 126


def is_possible() -> bool:
    """Whether this system has what it takes: Linux."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "prctl")


def words(command: Sequence[str], *, fd: int, stops_within_s: float) -> list[str]:
    """What the runner starts in the place of a command."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(fd), str(stops_within_s), *command]


def main(arguments: Sequence[str]) -> int:
    """The job's status; where a signal has ended the job, so does it this process."""
    parent, fd, stops_within_s = int(arguments[0]), int(arguments[1]), float(arguments[2])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*STOPPING, signal.SIGCHLD})
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the kernel was asked
        return NOT_STARTED
    try:
        job = subprocess.Popen(arguments[3:], preexec_fn=_of_job(libc, before))  # noqa: PLW1509, S603  # one thread; ours
    except OSError as error:
        os.write(fd, str(error.errno).encode())
        return NOT_STARTED
    os.close(fd)
    status = _followed(job, stops_within_s)
    _end_rest()
    return status if status >= 0 else _die(-status)


def _of_job(libc: ctypes.CDLL, mask: set[int | signal.Signals]) -> Callable[[], None]:
    """What the job runs between fork and exec."""
    keeper = os.getpid()

    def ask_kernel() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if os.getppid() != keeper:
            os._exit(NOT_STARTED)

    return ask_kernel


def _followed(job: subprocess.Popen[bytes], stops_within_s: float) -> int:
    """How the job ends; it is told to, and after a while made to, once this process is told to."""
    kill_at: float | None = None
    while job.pid not in (ended := _waited_for()):
        wait_s = LONGEST_WAIT_S if kill_at is None else max(0.0, kill_at - time.monotonic())
        told = signal.sigtimedwait({*STOPPING, signal.SIGCHLD}, wait_s)
        if told is not None and told.si_signo in STOPPING and kill_at is None:
            kill_at = time.monotonic() + stops_within_s
            os.kill(job.pid, signal.SIGTERM)
        elif kill_at is not None and time.monotonic() >= kill_at:
            os.kill(job.pid, signal.SIGKILL)
            kill_at += stops_within_s
    job.returncode = ended[job.pid]
    return job.returncode


def _end_rest() -> None:
    """End what the job has left, and what that leaves."""
    began, asked = time.monotonic(), set[int]()
    while children := _children():
        past_s = time.monotonic() - began
        if past_s >= ENDS_WITHIN_S:
            return
        for child in children:
            with contextlib.suppress(PermissionError):  # it has become another user's
                if past_s >= REST_WITHIN_S:
                    os.kill(child, signal.SIGKILL)
                elif child not in asked:
                    asked.add(child)
                    os.kill(child, signal.SIGTERM)
        time.sleep(LOOKS_EVERY_S)


def _waited_for() -> dict[int, int]:
    """Children that have ended, and how."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def _children() -> list[int]:
    """This process's own, once those that have ended are waited for: the numbers stay theirs."""
    _waited_for()
    own, found = os.getpid(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # "7 (a name) S 5 …": the name may have anything in it, the parent is behind it.
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == own:
                    found.append(int(folder.name))
    return found


def _die(number: int) -> int:
    """By the same signal, without a core of its own."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
