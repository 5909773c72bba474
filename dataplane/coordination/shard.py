"""One partition of a coordinator's topic, for as long as this broker leads it: what it holds, and who waits for it.

loading --> read --> serving --> closed          `problem` says what is told until it is serving
^  |
+--+  could not be read: COORDINATOR_NOT_AVAILABLE until it can

When it is read, its timers begin, which takes long where there are many. What is appended from then on has to be told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from dataplane.coordination.machine import C
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.tasks import Future

Refuse = Callable[[ErrorCode], Any]
"""Makes the answer that says nothing but an error."""


class Shard(Generic[C]):
    """See the file's text. `leader_epoch` is that of the partition."""

    def __init__(self, index: int, leader_epoch: int, contents: C) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.contents = contents
        self.loading = True  # until it is serving
        self.is_read = False
        self.closed = False
        self.problem = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._parked: dict[int, tuple[Future[Any], Refuse]] = {}  # by token

    def load_again(self, problem: ErrorCode) -> None:
        """It could not be loaded: know nothing, and say so until it is."""
        self.problem = problem
        self.contents.clear()

    def park(self, token: int, future: Future[Any], refuse: Refuse) -> None:
        """A request waits."""
        self._parked[token] = (future, refuse)

    def answer(self, token: int, result: Any) -> None:
        """It need not wait any longer."""
        future, _ = self._parked.pop(token)
        future.resolve(result)

    def close(self, error: ErrorCode) -> None:
        """Not ours any more: everybody who waits is told so, in order."""
        self.closed = True
        for entry in self.contents.all_entries():
            entry.timers.cancel_all()
        parked, self._parked = self._parked, {}
        for future, refuse in parked.values():
            future.resolve(refuse(error))
