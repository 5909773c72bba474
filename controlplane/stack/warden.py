"""The warden: stops the stack's processes when the supervisor is gone, even by SIGKILL.

It is a process of its own that reads a pipe from the supervisor: `+<pid>` is a process (group) that began, `-<pid>` one
that ended. End of file means that the supervisor is gone: what is still noted gets SIGTERM, and SIGKILL after a while.
The kernel's own parent-death signal reaches only direct children; the warden reaches whole groups (Celery's pool,
granian's workers) and does not take no for an answer. It inherits the supervisor's lock on the folder, so a second
`make up` waits until the ports are free again.

Runs as `python -I warden.py`: standard library only.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable

GRACE_S = 8.0
POLL_S = 0.1


def main() -> None:
    """Follow the pipe on standard input until it ends, then end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_groups(follow(sys.stdin))


def follow(lines: Iterable[str]) -> list[int]:
    """The groups that began and did not end, in the order of their beginning."""
    groups: dict[int, None] = {}
    for line in lines:
        pid = int(line[1:])
        if line.startswith("+"):
            groups[pid] = None
        else:
            groups.pop(pid, None)
    return list(groups)


def end_groups(groups: list[int]) -> None:
    """SIGTERM to each group, last come first; SIGKILL to those still there after GRACE_S."""
    left = [group for group in reversed(groups) if send(group, signal.SIGTERM)]
    deadline = time.monotonic() + GRACE_S
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [group for group in left if send(group, 0)]
    for group in left:
        send(group, signal.SIGKILL)


def send(group: int, number: int) -> bool:
    """Signal a whole process group; False when nobody is in it any more."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
