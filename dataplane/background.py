"""The background door: a small thread pool for calls that release the GIL, and processes for what would hold it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from dataplane import apart
from dataplane.doors import Loop
from dataplane.tasks import Future, without_traceback

T = TypeVar("T")


def _step_back() -> None:
    """Do not take the processor from a thread that runs, which may be the loop's: Linux would give it to us for 2 to 4 ms.

    SCHED_BATCH is that, and nothing else: as much of the processors as before, so that nobody waits long for the interpreter that
    we have, as they would with a lower priority.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):  # not allowed here: then it is as it was
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class ThreadBackground:
    """Runs work in threads and resolves its future on the loop."""

    def __init__(self, loop: Loop, threads: int = 4) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="background", initializer=_step_back)
        self._children: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Start `work` in a thread; the future is resolved on the loop."""
        future: Future[T] = Future()
        self._pool.submit(self._settle, work, future)
        return future

    def run_apart(self, work: Callable[[Callable[[int], None]], T], bytes_per_s: float) -> Future[T]:
        """Start `work` in a process of its own, which a thread of its own waits for."""
        future: Future[T] = Future()
        call = (lambda: self._in_child(work, bytes_per_s), future)
        threading.Thread(target=self._settle, args=call, name="background-child", daemon=True).start()
        return future

    def _in_child(self, work: Callable[[Callable[[int], None]], T], bytes_per_s: float) -> T:
        child = apart.start()
        self._children.append(child)
        if self._closed:
            child.kill()
        try:
            result: T = apart.ask(child, work, bytes_per_s)
        finally:
            self._children.remove(child)
        return result

    def _settle(self, work: Callable[[], T], future: Future[Any]) -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - the future carries it
            self._loop.call_threadsafe(partial(future.fail, without_traceback(error)))
        else:
            self._loop.call_threadsafe(lambda: future.resolve(value))

    def close(self) -> None:
        """End the processes, wait for what runs in the pool; start nothing more."""
        self._closed = True
        for child in list(self._children):
            child.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
