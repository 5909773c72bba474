"""What a child process owes its parent: to be gone when the parent is gone, however the parent went.

`dies_with_parent()` makes a `preexec_fn`: the kernel then sends SIGTERM to the child when the *thread* that started it
ends. So start children from a thread that lives as long as they shall: a helper thread would take its children along.
"""

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1

# Loaded once, before any fork: between fork and exec nothing may import.
_libc = ctypes.CDLL(None, use_errno=True)


def dies_with_parent() -> Callable[[], None]:
    """What the child runs between fork and exec; the parent's pid is noted now."""
    parent = os.getpid()

    def ask_kernel() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)

    return ask_kernel
