"""The background door: a small thread pool for calls that release the GIL for their whole length."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from dataplane.doors import Loop
from dataplane.tasks import Future

T = TypeVar("T")


class ThreadBackground:
    """Runs work in threads and resolves its future on the loop."""

    def __init__(self, loop: Loop, threads: int = 4) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="background")

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Start `work` in a thread; the future is resolved on the loop."""
        future: Future[T] = Future()

        def settle() -> None:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - the future carries it
                failure = error
                self._loop.call_threadsafe(lambda: future.fail(failure))
            else:
                self._loop.call_threadsafe(lambda: future.resolve(value))

        self._pool.submit(settle)
        return future

    def close(self) -> None:
        """Wait for what runs; start nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)
