"""The runtime of a coordinator: it owns the partitions of one internal topic that this broker leads.

    elected   -> the partition's log is replayed, in slices (`loading`); meanwhile COORDINATOR_LOAD_IN_PROGRESS
    failed    -> the log cannot be read: tried again and again; meanwhile COORDINATOR_NOT_AVAILABLE
    leading   -> each request is an event of the state machine, whose effects are carried out here
    resigned  -> every request that waits is answered NOT_COORDINATOR, and everything is forgotten

Events are handled one after another: one that comes up while another is being handled waits in a queue. Nothing is
answered before what it depends on is committed by acks=all.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dataplane.coordination.deadlines import PASSED_AT_ONCE, Deadlines
from dataplane.coordination.effects import Begin, CancelTimer, Effect, Gradually, OfOne, Reply, SetTimer, Store
from dataplane.coordination.errors import BEFORE_APPEND
from dataplane.coordination.log import NOT_APPENDED
from dataplane.coordination.machine import C, E, Machine
from dataplane.coordination.portions import Portions
from dataplane.coordination.shard import Shard
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import DecodeError
from dataplane.slices import Slices
from dataplane.tasks import CancelledError, Future

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.coordination.effects import KeyValue, Producer
    from dataplane.coordination.loading import Take, Transactions
    from dataplane.coordination.log import StateLog
    from dataplane.doors import Background, Loop
    from dataplane.records.steps import Steps

T = TypeVar("T")

REPLIES_AT_ONCE = 64
"""Of a turn. An answer is encoded where it is made, 50 us each: a thousand members who had joined were a turn of 60 ms."""
TIMERS_PER_PAUSE = 16
"""A few microseconds each, of everything that a partition holds."""
LOAD_RETRY_S = 5.0
"""After a partition could not be loaded. Its log may be read again, or be led by a broker that can."""

_log = logging.getLogger(__name__)


class Runtime(Generic[C, E]):
    """See the file's text. `transactions`: who is told of records that are appended in transactions, and of their ends."""

    def __init__(
        self,
        loop: Loop,
        background: Background,
        log: StateLog,
        machine: Machine[C, E],
        transactions: Callable[[C], Transactions] | None = None,
    ) -> None:
        self.slices = Slices(loop, background)  # its own: nobody waits for it behind what tenants have converted
        # an instance's, which it is charged for
        self._gradual = Slices(loop, background, loop.worked_for, loop.share_of)
        self._loop = loop
        self._records = log
        self._machine = machine
        self._transactions = transactions
        self._shards: dict[int, Shard[C]] = {}
        self._tokens = count()
        self._events: deque[tuple[Shard[C], E, Any]] = deque()
        self._handling = False
        self._replies = Portions(loop, REPLIES_AT_ONCE)
        self._passing = Portions(loop, PASSED_AT_ONCE)
        self._on_loaded: Callable[[Shard[C]], None] = lambda _shard: None
        self._on_resigned: Callable[[Shard[C]], None] = lambda _shard: None
        self._on_begin: Callable[[Shard[C], E, Any], None] | None = None

    def on_loaded(self, call: Callable[[Shard[C]], None]) -> None:
        """Called for each shard when it begins to serve."""
        self._on_loaded = call

    def on_resigned(self, call: Callable[[Shard[C]], None]) -> None:
        """Called for each shard that is led here no more, when everybody who waited is answered."""
        self._on_resigned = call

    def on_begin(self, call: Callable[[Shard[C], E, Any], None]) -> None:
        """Called with the work of each `Begin`."""
        self._on_begin = call

    # --- election -----------------------------------------------------------------------------------------------------

    def on_leadership(self, topic: str, index: int, leader_epoch: int | None) -> None:
        """This broker leads a partition in an epoch, or (None) does not lead it any more."""
        if topic != self._machine.topic:
            return
        shard = self._shards.get(index)
        if leader_epoch is None:
            self._resign(index)
        elif shard is not None and leader_epoch - shard.leader_epoch in (0, 1):
            shard.leader_epoch = leader_epoch  # every other leader would have had an epoch of its own
        else:
            self._resign(index)
            self._elect(index, leader_epoch)

    def stop(self) -> None:
        """Give every partition up: who waits is told to look for another coordinator."""
        for index in list(self._shards):
            self._resign(index)

    def _resign(self, index: int) -> None:
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close(ErrorCode.NOT_COORDINATOR)
            self._on_resigned(shard)

    def _elect(self, index: int, leader_epoch: int) -> None:
        shard = Shard(index, leader_epoch, self._machine.new_contents(self._new_timers))
        self._shards[index] = shard
        self._loop.call_soon(lambda: self._load(shard))

    def _new_timers(self) -> Deadlines:
        return Deadlines(self._loop, lambda event: self.dispatch(*event), self._passing)

    # --- loading ------------------------------------------------------------------------------------------------------

    def _load(self, shard: Shard[C]) -> None:
        if not shard.closed:
            take = partial(self._load_record, shard)
            transactions = None
            if self._transactions is not None:
                transactions = _Guarded(take, self._transactions(shard.contents))
            steps = self._records.read(shard.index, partial(take, shard.contents.apply), transactions)
            self.slices.run(self._machine.topic, steps).then(partial(self._was_read, shard))

    def _was_read(self, shard: Shard[C], future: Future[list[str]]) -> None:
        if shard.closed:
            return
        topic = self._machine.topic
        if future.error is not None:
            _log.error(
                "partition %d of %s cannot be loaded: %s; nothing of it is served, trying again in %d s",
                *(shard.index, topic, future.error, LOAD_RETRY_S),
            )
            shard.load_again(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._loop.call_later(LOAD_RETRY_S, lambda: self._load(shard))
            return
        for sentence in future.result():
            _log.error("a batch of partition %d of %s is passed over: %s", shard.index, topic, sentence)
        shard.is_read = True
        self.slices.run(topic, self._begin_timers(shard)).then(partial(self._serve, shard))

    def _begin_timers(self, shard: Shard[C]) -> Steps[None]:
        for number, (entry, timer) in enumerate(shard.contents.loaded(), 1):
            if shard.closed:
                return
            self.set_timer(shard, entry, timer)
            if number % TIMERS_PER_PAUSE == 0:
                yield None

    def _serve(self, shard: Shard[C], future: Future[None]) -> None:
        future.result()
        if not shard.closed:
            shard.loading = False
            self._on_loaded(shard)

    def _load_record(self, shard: Shard[C], take: Take, key: bytes, value: bytes | None) -> None:
        if shard.closed:
            raise CancelledError
        try:
            take(key, value)
        except (DecodeError, ValueError) as error:  # one that a newer broker wrote must not take the others with it
            _log.warning("a record of partition %d of %s is skipped: %s", shard.index, self._machine.topic, error)

    # --- finding shards -----------------------------------------------------------------------------------------------

    def shard(self, index: int) -> Shard[C] | ErrorCode:
        """A partition that is served here, or why it is not."""
        shard = self._shards.get(index)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard.problem if shard.loading else shard

    def read_shard(self, index: int) -> Shard[C] | None:
        """A partition whose log is read to its end: it is served, or will be in a moment."""
        shard = self._shards.get(index)
        return shard if shard is not None and shard.is_read else None

    def shards(self) -> list[Shard[C]]:
        """Every partition that is led here, those that are still loading as well, by index."""
        return [shard for _, shard in sorted(self._shards.items())]

    def serving(self) -> list[Shard[C]]:
        """Those that are loaded, by index."""
        return [shard for shard in self.shards() if not shard.loading]

    def has_failed(self, index: int) -> bool:
        """Whether this broker should serve a partition and cannot: then nobody need be sent here."""
        shard = self._shards.get(index)
        return shard is not None and shard.loading and shard.problem == ErrorCode.COORDINATOR_NOT_AVAILABLE

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask(
        self, shard: Shard[C], name: str, event_of: Callable[[int], Any], refuse: Callable[[ErrorCode], T]
    ) -> Future[T]:
        """Park a request and let its event happen. `event_of` gets the token that the event has to carry."""
        token, future = self.park(shard, refuse)
        event = event_of(token)
        self.dispatch(shard, shard.contents.open(name), event)
        return future

    def park(self, shard: Shard[C], refuse: Callable[[ErrorCode], T]) -> tuple[int, Future[T]]:
        """A request waits until `shard.answer` of the token; it gets `refuse(NOT_COORDINATOR)` when the shard is closed."""
        token, future = next(self._tokens), Future[T]()
        shard.park(token, future, refuse)
        return token, future

    def append(
        self,
        shard: Shard[C],
        records: list[KeyValue],
        done: Callable[[ErrorCode], None],
        producer: Producer | None = None,
    ) -> int:
        """Append to a shard's partition (`StateLog.append`); `done` is not called any more once the shard is closed."""
        if shard.closed:
            return NOT_APPENDED
        return self._records.append(shard.index, records, lambda e: None if shard.closed else done(e), producer)

    # --- events and effects -------------------------------------------------------------------------------------------

    def dispatch(self, shard: Shard[C], entry: E, event: Any) -> None:
        """Let an event happen, after those that wait already."""
        self._events.append((shard, entry, event))
        self._work()

    def _work(self) -> None:
        if self._handling:
            return
        self._handling = True
        try:
            while self._events:
                self._handle(*self._events.popleft())
        finally:
            self._handling = False
            if self._events:  # a bug in one entry's event: the others' are handled all the same
                self._loop.call_soon(self._work)

    def _handle(self, shard: Shard[C], entry: E, event: Any) -> None:
        if shard.closed:
            return  # its requests are answered already
        for effect in self._machine.handle(entry, event, self._loop.clock.now_ms()):
            self._perform(shard, entry, effect)
        shard.contents.drop_blank(self._machine.name_of(entry))

    def _perform(self, shard: Shard[C], entry: E, effect: Effect) -> None:
        if isinstance(effect, Reply):
            self._reply(shard, effect)
        elif isinstance(effect, SetTimer | CancelTimer):
            self._time(shard, entry, effect)
        elif isinstance(effect, Gradually):
            self._begin_gradually(shard, entry, effect.effects())
        elif isinstance(effect, Begin):
            assert self._on_begin is not None, "nobody does what the state machine begins"
            self._on_begin(shard, entry, effect.work)
        else:
            self._store(shard, entry, effect)

    def _begin_gradually(self, shard: Shard[C], entry: E, effects: Iterator[OfOne]) -> None:
        def ended(future: Future[None]) -> None:
            if future.error is not None:  # a bug in one of them: all others are carried out all the same
                self._begin_gradually(shard, entry, effects)
            future.result()

        self._gradual.run(self._machine.owner_of(entry), self._carry_out(shard, entry, effects)).then(ended)

    def _carry_out(self, shard: Shard[C], entry: E, effects: Iterator[OfOne]) -> Steps[None]:
        for number, effect in enumerate(effects, 1):
            if shard.closed:
                return  # its requests are answered already, its timers stopped
            if isinstance(effect, Reply):
                self._answer(shard, effect)
                yield None
            else:
                self._time(shard, entry, effect)
                if number % TIMERS_PER_PAUSE == 0:
                    yield None

    def _time(self, shard: Shard[C], entry: E, effect: SetTimer[Any] | CancelTimer) -> None:
        if isinstance(effect, SetTimer):
            self.set_timer(shard, entry, effect)
        else:
            entry.timers.cancel(effect.name)

    def _reply(self, shard: Shard[C], reply: Reply[Any]) -> None:
        """Now, or where a turn has brought many (of a thousand groups, one each), in a later one, in their order."""
        self._replies.run(partial(self._answer, shard, reply))

    @staticmethod
    def _answer(shard: Shard[C], reply: Reply[Any]) -> None:
        if not shard.closed:  # else it is answered already
            shard.answer(reply.token, reply.result)

    def set_timer(self, shard: Shard[C], entry: E, timer: SetTimer[Any]) -> None:
        """Of an entry; in place of its timer of the same name, unless that is to stay."""
        if timer.unless_running and entry.timers.is_running(timer.name):
            return
        entry.timers.set(timer.name, timer.delay_ms / 1000, (shard, entry, timer.event))

    def _store(self, shard: Shard[C], entry: E, effect: Store[Any, Any]) -> None:
        def done(error: ErrorCode) -> None:
            told = self._machine.told(error)
            if told != ErrorCode.NONE:
                _log.info("a record of %s was not stored: %s", self._machine.topic, error.name)
            then = effect.not_appended if error in BEFORE_APPEND else None
            self.dispatch(shard, entry, replace(then or effect.then, error=told))

        self.append(shard, self._machine.records(entry, effect.value), done)


class _Guarded:
    """Gives a partition's records of transactions to who takes them, as its other records are given: `guard` calls."""

    def __init__(self, guard: Callable[[Take, bytes, bytes | None], None], transactions: Transactions) -> None:
        self._guard = guard
        self._transactions = transactions
        self.end = transactions.end

    def take(self, producer_id: int, position: int, key: bytes, value: bytes | None) -> None:
        """See Transactions."""
        self._guard(partial(self._transactions.take, producer_id, position), key, value)
