"""A coordinator of something simpler than groups: locks, each held by one client at a time until it lets go or its lease ends.

Here so that the runtime is tried with a state machine that shares nothing with groups but the protocol.
"""

from dataclasses import dataclass, replace

from dataplane.coordination import errors
from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.coordination.runtime import Runtime
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.coordination.support import MemoryLog
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork

TOPIC = "__locks"
LEASE_MS = 5_000


@dataclass(frozen=True)
class Lock:
    name: str
    holder: str | None = None
    queue: tuple[tuple[int, str], ...] = ()  # token and name of each who waits
    storing: bool = False


@dataclass(frozen=True)
class Acquire:
    who: str
    token: int


@dataclass(frozen=True)
class Ended:
    """The lease of a holder."""

    who: str


@dataclass(frozen=True)
class Stored:
    holder: str | None
    error: ErrorCode = ErrorCode.NONE


def handle(lock, event):
    if isinstance(event, Acquire):
        return _given(replace(lock, queue=(*lock.queue, (event.token, event.who))))
    if isinstance(event, Ended):
        return replace(lock, storing=True), [Store(None, Stored(None))]
    lock = replace(lock, storing=False)
    if event.error != ErrorCode.NONE:
        return replace(lock, queue=()), [Reply(token, event.error) for token, _ in lock.queue]
    lock = apply(lock, event.holder)
    if event.holder is None:
        freed, effects = _given(lock)
        return freed, [CancelTimer("lease"), *effects]
    (token, _), *queue = lock.queue
    return replace(lock, queue=tuple(queue)), [
        Reply(token, ErrorCode.NONE),
        SetTimer("lease", LEASE_MS, Ended(event.holder)),
    ]


def _given(lock):
    if lock.holder is not None or lock.storing or not lock.queue:
        return lock, []
    who = lock.queue[0][1]
    return replace(lock, storing=True), [Store(who, Stored(who))]


def apply(lock, holder):
    return replace(lock, holder=holder)


class Entry:
    def __init__(self, name, timers):
        self.lock, self.timers = Lock(name), timers


class Locks:
    def __init__(self, new_timers):
        self.entries, self._new_timers = {}, new_timers

    def apply(self, key, value):
        name = key.decode()
        entry = self.open(name)
        entry.lock = apply(entry.lock, None if value is None else value.decode())
        self.drop_blank(name)

    def clear(self):
        self.entries = {}

    def loaded(self):
        for entry in self.entries.values():
            yield entry, SetTimer("lease", LEASE_MS, Ended(entry.lock.holder))

    def all_entries(self):
        return self.entries.values()

    def open(self, name):
        if name not in self.entries:
            self.entries[name] = Entry(name, self._new_timers())
        return self.entries[name]

    def drop_blank(self, name):
        if name in self.entries and self.entries[name].lock == Lock(name):
            del self.entries[name]


class LockMachine:
    topic = TOPIC

    def new_contents(self, new_timers):
        return Locks(new_timers)

    def name_of(self, entry):
        return entry.lock.name

    def owner_of(self, entry):
        return entry.lock.name

    def handle(self, entry, event, now_ms):
        entry.lock, effects = handle(entry.lock, event)
        return effects

    def records(self, entry, value):
        return [(entry.lock.name.encode(), None if value is None else value.encode())]

    def told(self, error):
        return errors.told(error)


class World:
    """A broker that leads partition 0, over a log that commits in the next turn."""

    def __init__(self):
        self.network = VirtualNetwork(seed=1)
        self.loop = self.network.loop("broker")
        self.log = MemoryLog(self.loop)
        self.background = ImmediateBackground()
        self.runtime = self.new_runtime()

    def new_runtime(self):
        return Runtime(self.loop, self.background, self.log, LockMachine())

    def elect(self, epoch=1):
        self.runtime.on_leadership(TOPIC, 0, epoch)
        self.run(0.01)

    def resign(self):
        self.runtime.on_leadership(TOPIC, 0, None)

    def run(self, seconds):
        self.network.run_for(seconds)

    def acquire(self, who, name="l"):
        shard = self.runtime.shard(0)
        asked = self.runtime.ask(shard, name, lambda token: Acquire(who, token), lambda error: error)
        self.run(0.01)
        return asked

    def holder(self, name="l"):
        entry = self.runtime.shard(0).contents.entries.get(name)
        return None if entry is None else entry.lock.holder
