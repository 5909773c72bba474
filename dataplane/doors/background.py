"""The door to work that would block the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from dataplane.tasks import Future

T = TypeVar("T")


class Background(Protocol):
    """Work that would block the loop."""

    def run(self, work: Callable[[], T]) -> Future[T]:
        """What releases the GIL for its whole length: fsync, unlink, cold reads, codecs.

        The future is resolved on the loop.
        """
        ...

    def run_apart(self, work: Callable[[Callable[[int], None]], T], bytes_per_s: float) -> Future[T]:
        """What is Python, and long: in a process of its own, with what `work` was made of copied there.

        It gets a function to tell every number of bytes it has read or written; that sleeps, so that they are at most
        `bytes_per_s`. The process ends with ours, at whatever place it is then.
        """
        ...
