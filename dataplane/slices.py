"""Long Python work in slices between the turns of the loop, a fifth of a millisecond each, fairly shared among owners.

What is run are `records.steps`: generators that yield None every 50 to 100 microseconds of work, or a call for the
background door (codecs). A piece of work begins at once, and most of it is over within its first slice. What is not goes
on in later turns: `SLICE_S` per turn in all, so that long work, however much is asked for, takes a bounded part of the
loop; half of that for a greedy tenant while others come as well (`share`). Owners (instances) take turns, so one owner's long
work delays another's by a slice at a time, and what the loop spent on a slice is told to `charge`: not of the part that runs
inside `run`, which is the caller's own time.

Of one owner one piece is under way at a time, and `MAX_UNDER_WAY` in all: that bounds the memory that half-done work
holds. What waits has not begun, and so holds only what it was given. The cluster's own work (`INTERNAL`: other brokers,
the control plane; `CONTROLLER`: its words to this broker) has places of its own, several pieces at a time, and every second
slice while it has any: a controller's word, without which partitions have no leader, must wait neither for the tenants' work
nor for listings that operators asked for.

The future of a piece is a `tasks.Later`: it can be given up (it is dropped, and what it held is let go in slices, too: what
half a request of a broker has become takes 20 ms), and the connection
it is for is read no further until it is done (`held_until`), as Kafka handles one request of a connection at a time: that
bounds what waits by the number of connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.protocol.release import abandoned
from dataplane.tasks import CancelledError, Future, Later, without_frames

if TYPE_CHECKING:
    from dataplane.doors import Background, Loop
    from dataplane.records.steps import Steps

T = TypeVar("T")
SLICE_S = 0.000_2
AT_ONCE_S = 0.000_25
"""Of a turn, for work that begins in it; what comes later in the turn begins in the next one."""
STEPS_PER_SLICE = 32
"""At most, whatever the clock says: in a simulation it stands still during a turn."""
MAX_UNDER_WAY = 16
MAX_INTERNAL_UNDER_WAY = 8
INTERNAL, CONTROLLER = "", "the controller"
"""Owners of what is not an instance's."""
_OWN = (CONTROLLER, INTERNAL)


class Job(Later[T]):
    """The result of a piece of work."""

    __slots__ = ("_slices", "answer", "error_thrown", "has_begun", "is_running", "owner", "steps")

    def __init__(self, slices: Slices, owner: str, steps: Steps[T]) -> None:
        super().__init__()
        self._slices, self.owner, self.steps = slices, owner, steps
        self.answer: Any = None  # of the call that the steps made last
        self.error_thrown: Exception | None = None
        self.has_begun = self.is_running = False

    @property
    def held_until(self) -> Future[T]:
        """Itself: of one connection one long request is worked on at a time."""
        return self

    def waited_s(self, _began_s: float, _now_s: float) -> float:
        """Never: it was worked on."""
        return 0.0

    def give_up(self) -> None:
        """Drop it."""
        if not self.done:
            self._slices.drop(self)


def _nothing(_owner: str, _seconds: float) -> None:
    """Nobody counts."""


def _whole(_owner: str) -> float:
    """Nobody else comes."""
    return 1.0


class Slices:
    """See the module. `charge` is told whose slice took how many seconds; `share` says which part of a slice is a tenant's."""

    def __init__(
        self,
        loop: Loop,
        background: Background,
        charge: Callable[[str, float], None] = _nothing,
        share: Callable[[str], float] = _whole,
    ) -> None:
        self._loop, self._background, self._charge, self._share = loop, background, charge, share
        self._clock = loop.clock.monotonic
        self._under_way: dict[str, int] = {}  # how many of each owner
        self._waiting: dict[str, deque[Job[Any]]] = {}  # in the order in which owners came
        self._ready: dict[str, deque[Job[Any]]] = {}  # whose turn is next
        self._closing: deque[Job[Any]] = deque()  # that were given up
        self._last: str | None = None  # who had the slice before
        self._is_scheduled = False
        self._at_once_s, self._at_once_in = 0.0, -1  # spent at once, and in which turn

    def run(self, owner: str, steps: Steps[T], *, at_once: bool = True) -> Job[T]:
        """The future has what the steps return or raise; it is done already where they did not take long.

        `at_once` is False for what is long for certain: in this turn others are served first.
        """
        job = Job(self, owner, steps)
        if not self._may_begin(owner) or owner in self._waiting:
            self._waiting.setdefault(owner, deque()).append(job)
            return job
        self._begin(job)
        if self._at_once_in != self._loop.turn_number:
            self._at_once_s, self._at_once_in = 0.0, self._loop.turn_number
        if not at_once or self._at_once_s >= AT_ONCE_S:
            self._later(job)
            return job
        since = self._clock()
        self._run_slice(job, since + SLICE_S)
        self._at_once_s += self._clock() - since
        return job

    def drop(self, job: Job[Any]) -> None:
        """What `Job.give_up` does."""
        if job.has_begun:
            if not job.is_running:
                job.steps = abandoned(job.steps)
                self._closing.append(job)
                self._schedule()
            self._over(job)
        else:
            job.steps.close()
        job.fail(CancelledError())  # where it waits in a line, it is passed over when its turn comes

    # --- slices -------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """One slice, shared by those who do not need a whole one; the others in later turns."""
        self._is_scheduled = False
        since = now = self._clock()
        steps = 0
        try:
            if self._closing:
                now = self._let_go(self._closing[0], since)
            slice_s = SLICE_S
            while steps < STEPS_PER_SLICE and now - since < slice_s and (job := self._next()) is not None:
                slice_s = min(slice_s, SLICE_S * self._share_of(job.owner))
                steps += self._run_slice(job, since + slice_s)
                before, now = now, self._clock()
                self._spent(job.owner, now - before)
        finally:
            self._schedule()  # a bug in what waits for one piece of work: the others go on

    def _let_go(self, dropped: Job[Any], since: float) -> float:
        """Half a slice of what was given up; the time."""
        until, ended = since + SLICE_S / 2, False
        for _ in range(STEPS_PER_SLICE):
            ended = next(dropped.steps, self) is self
            now = self._clock()
            if ended or now >= until:
                break
        if ended:
            self._closing.popleft()
        self._spent(dropped.owner, now - since)
        return now

    def _share_of(self, owner: str) -> float:
        return (
            1.0 if owner in _OWN else self._share(owner)
        )  # whitelists and ACLs are in force by it, within two seconds

    def _spent(self, owner: str, seconds: float) -> None:
        self._charge(INTERNAL if owner in _OWN else owner, seconds)

    def _next(self) -> Job[Any] | None:
        """Whose turn it is: the cluster's own work every second time."""
        ready = self._ready
        while ready:
            is_clusters = self._last not in _OWN
            owner = next((o for o in ready if (o in _OWN) == is_clusters), next(iter(ready)))
            self._last = owner
            line = ready.pop(owner)
            job = line.popleft()
            if line:
                ready[owner] = line  # behind the others
            if not job.done:
                return job
        return None

    def _run_slice(self, job: Job[Any], until: float) -> int:
        """Steps until the time is over; how many."""
        steps, clock = job.steps, self._clock
        done = 0
        job.is_running = True
        try:
            while True:
                done += 1
                work = self._step(job)
                if job.done:  # given up meanwhile
                    steps.close()
                    break
                if work is not None:
                    self._elsewhere(job, work)
                    break
                if done >= STEPS_PER_SLICE or clock() >= until:
                    self._later(job)
                    break
        except StopIteration as stop:
            self._ended(job)
            job.resolve(stop.value)
        except Exception as failure:  # noqa: BLE001 - the future carries it
            self._ended(job)
            job.fail(without_frames(failure, 2))  # this one and `_step`'s
        job.is_running = False
        return done

    @staticmethod
    def _step(job: Job[Any]) -> Callable[[], Any] | None:
        error, answer = job.error_thrown, job.answer
        job.error_thrown = job.answer = None
        return job.steps.throw(error) if error is not None else job.steps.send(answer)

    def _elsewhere(self, job: Job[Any], work: Callable[[], Any]) -> None:
        def done(future: Future[Any]) -> None:
            if job.done:
                return
            error = future.error
            if error is None:
                job.answer = future.result()
            else:
                assert isinstance(error, Exception)
                job.error_thrown = error
            self._later(job)

        self._background.run(work).then(done)

    def _later(self, job: Job[Any]) -> None:
        self._ready.setdefault(job.owner, deque()).append(job)
        self._schedule()

    def _schedule(self) -> None:
        if (self._ready or self._closing) and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    # --- who may begin ------------------------------------------------------------------------------------------------

    def _may_begin(self, owner: str) -> bool:
        if owner in _OWN:
            return self._under_way.get(owner, 0) < MAX_INTERNAL_UNDER_WAY
        return owner not in self._under_way and not self._is_full()

    def _is_full(self) -> bool:
        return len(self._under_way) - sum(owner in self._under_way for owner in _OWN) >= MAX_UNDER_WAY

    def _begin(self, job: Job[Any]) -> None:
        job.has_begun = True
        self._under_way[job.owner] = self._under_way.get(job.owner, 0) + 1

    def _ended(self, job: Job[Any]) -> None:
        if not job.done:
            self._over(job)

    def _over(self, job: Job[Any]) -> None:
        """Let those who wait begin, in a later turn."""
        left = self._under_way[job.owner] - 1
        if left:
            self._under_way[job.owner] = left
        else:
            del self._under_way[job.owner]
        while (owner := self._next_waiting()) is not None:
            queue = self._waiting.pop(owner)
            following = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # behind the other owners
            if not following.done:
                self._begin(following)
                self._later(following)

    def _next_waiting(self) -> str | None:
        for owner in _OWN:
            if owner in self._waiting and self._may_begin(owner):
                return owner
        if self._is_full():
            return None
        return next((o for o in self._waiting if o not in _OWN and o not in self._under_way), None)
