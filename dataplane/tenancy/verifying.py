"""Proofs that take milliseconds each, verified beside the loop: one of an instance at a time, instances and sources in turn.

The threads are those that sync files too. So `AT_ONCE` of them work for logins; an instance whose clients all log in at once,
or whose attacker never stops, waits for itself, and within it each address waits for its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from dataplane.doors import Background
    from dataplane.security.exchange import Judged

AT_ONCE = 2
MOST_WAITING = 1_000
"""Of one instance; each holds a name and a password."""

Work = Callable[[], "Judged"]


class Job(Future["Judged"]):
    """One of them."""

    __slots__ = ("_queue", "work")

    def __init__(self, work: Work, queue: deque[Job]) -> None:
        super().__init__()
        self.work, self._queue = work, queue

    def forget(self) -> None:
        """Nobody wants to know: it is not begun if it has not been yet."""
        if self in self._queue:
            self._queue.remove(self)


class Verifying:
    """See the file's text."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: dict[str, dict[str, deque[Job]]] = {}  # by account and source; whose turn it is comes first
        self._busy: dict[str, None] = {}  # accounts

    def submit(self, account: str, source: str, work: Work) -> Job | None:
        """Have it done when its turn comes. None: too many wait."""
        sources = self._waiting.setdefault(account, {})
        if sum(map(len, sources.values())) >= MOST_WAITING:
            return None
        queue = sources.setdefault(source, deque())
        job = Job(work, queue)
        queue.append(job)
        self._go_on()
        return job

    def _go_on(self) -> None:
        for account in list(self._waiting):
            if len(self._busy) >= AT_ONCE:
                return
            if account in self._busy:
                continue
            job = self._next(account)
            if job is not None:
                self._start(account, job)

    def _next(self, account: str) -> Job | None:
        """Its next, of the source whose turn it is. It is the last of all accounts now, and the source of its sources."""
        sources = self._waiting.pop(account)
        job = None
        while sources and job is None:
            source = next(iter(sources))
            queue = sources.pop(source)
            if queue:
                job = queue.popleft()
            if queue:
                sources[source] = queue
        if sources:
            self._waiting[account] = sources
        return job

    def _start(self, account: str, job: Job) -> None:
        self._busy[account] = None

        def done(future: Future[Judged]) -> None:
            del self._busy[account]
            job.follow(future)
            self._go_on()

        self._background.run(job.work).then(done)
