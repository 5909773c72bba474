"""One run of a workload, with a look at what is left after every call it makes to the disk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from dataplane.records.batch import Record as Written
from dataplane.records.batch import build_batch, read_header
from dataplane.storage.log import appending, flushing
from tests.crashpoints.promises import BrokenPromiseError, Claim, contents
from tests.crashpoints.workload import HOME, Jobs, Key, Workload, open_manager
from tests.support.faulty_files import NAMES_ONLY, STRICT, FaultyFiles

if TYPE_CHECKING:
    from collections.abc import Collection

    from dataplane.storage.log import Log
    from dataplane.storage.manager import LogManager

KILL = "kill"
GARBLED = "power cut, chance"
DAMAGE = "wrong small file"
ENDS = (KILL, STRICT, NAMES_ONLY, GARBLED, DAMAGE)


@dataclass
class Failure:
    """A point where something was not as promised."""

    seed: int
    point: int
    step: str
    call: str
    end: str
    problem: str


@dataclass
class Outcome:
    """Of all runs so far."""

    points: int = 0
    opened: Counter[str] = field(default_factory=Counter)
    by_step: Counter[str] = field(default_factory=Counter)
    by_call: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


class Run:
    """One seed. `chances` is how many different power cuts are tried at each point, beside the two sharp ones.

    What happens at a point depends on the seed and the point alone, so `only` shows again what a longer run has found.
    """

    def __init__(
        self,
        seed: int,
        outcome: Outcome,
        *,
        steps: int,
        chances: int = 1,
        every: int = 1,
        only: Collection[int] = (),
    ) -> None:
        self._seed, self._outcome = seed, outcome
        self._steps, self._chances, self._every, self._only = steps, chances, every, only
        self._random = Random()
        self._point = 0
        self._files = FaultyFiles()
        self._workload: Workload | None = None

    def run(self) -> None:
        self._files.make_directory(HOME)
        self._files.sync_directory("/")
        self._workload = Workload(self._files, self._seed)
        self._files.observer = self._stopped_here
        for _ in range(self._steps):
            self._workload.step()

    def _stopped_here(self, call: str) -> None:
        self._point += 1
        outcome = self._outcome
        outcome.points += 1
        kind = call.partition(" /")[0]
        outcome.by_call[kind] += 1
        step = self._workload.now if self._workload is not None else "start"
        outcome.by_step[step] += 1
        if self._point not in self._only if self._only else self._point % self._every:
            return
        self._random.seed(f"{self._seed} {self._point}")
        ends: list[tuple[str, FaultyFiles]] = [(KILL, self._files.after_kill())]
        if not call.startswith("part of") or self._chances > 1:
            ends += [(how, self._files.after_power_cut(how)) for how in (STRICT, NAMES_ONLY)]
            ends.append((DAMAGE, _with_damage(self._files.after_kill(), self._random)))
        ends += [(GARBLED, self._files.after_power_cut(self._random)) for _ in range(self._chances)]
        for end, disk in ends:
            outcome.opened[end] += 1
            try:
                self._verify(disk, end)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                where = f"{type(error).__name__}: {error}"
                outcome.failures.append(Failure(self._seed, self._point, step, call, end, where))

    def _verify(self, disk: FaultyFiles, end: str) -> None:
        assert self._workload is not None
        claims = {key: [p.frozen() for p in promises] for key, promises in self._workload.promises.items()}
        power = end not in (KILL, DAMAGE)
        manager = open_manager(disk, jobs := Jobs(Random(1)))
        held = _check(manager, claims, power=power, damaged=end == DAMAGE)
        jobs.all()
        _goes_on(disk, manager, jobs, held, self._random)


def _check(manager: LogManager, claims: dict[Key, list[Claim]], *, power: bool, damaged: bool) -> dict[Key, dict]:
    held = {}
    for log in manager.logs():
        known = {claim.topic_id: claim for claim in claims.get((log.topic, log.partition), [])}
        claim = known.get(log.topic_id)
        if claim is None:
            raise BrokenPromiseError(f"{log.topic}-{log.partition} has the topic id {log.topic_id}")
        if damaged:
            claim.settled_start = 0  # what is not known any more cannot be kept; nothing is lost by it
        held[log.topic, log.partition] = claim.check(log, power=power)
    for key, of_key in claims.items():
        for claim in of_key:
            found = manager.get(*key)
            if claim.must_exist(power=power) and (found is None or found.topic_id != claim.topic_id):
                raise BrokenPromiseError(f"{key} is gone")
    return held


def _goes_on(disk: FaultyFiles, manager: LogManager, jobs: Jobs, held: dict[Key, dict], random: Random) -> None:
    """What was opened is appended to, flushed, and kept over a power cut, and over an orderly stop."""
    for key, records in held.items():
        log = manager.get(*key)
        assert log is not None
        epoch = 1_000 + random.randrange(2)  # the controller knows what the newest was, also where the log does not
        for number in range(3):
            offset = log.end_offset
            records[offset] = (_append(log, number, epoch), epoch)
        flushing.flush(log)
    again = open_manager(disk.after_power_cut(STRICT), Jobs(Random(2)))
    _same(again, held, "after a flush and a power cut")
    manager.close()
    jobs.all()
    _same(open_manager(disk.after_power_cut(STRICT), Jobs(Random(3))), held, "after an orderly stop")


def _append(log: Log, number: int, epoch: int) -> bytes:
    time = 90_000_000 + log.end_offset * 10 + number
    value = b"%s@%d" % (b"y" * 60, time)
    batch = build_batch([Written(None, value, (), time)], now_ms=0)
    appending.stage(log, memoryview(batch), read_header(batch), epoch)
    appending.commit(log)
    return value


def _same(manager: LogManager, held: dict[Key, dict], when: str) -> None:
    for key, records in held.items():
        log = manager.get(*key)
        if log is None:
            raise BrokenPromiseError(f"{key} is gone {when}")
        found = contents(log)
        missing = {offset for offset, record in records.items() if found.get(offset) != record}
        if missing:
            raise BrokenPromiseError(f"{key} has lost or changed {sorted(missing)} {when}")


def _with_damage(disk: FaultyFiles, random: Random) -> FaultyFiles:
    """One small file that can be built again is gone, or has another content."""
    small = (".index", ".timeindex", ".snapshot")
    paths = [path for path in disk.paths() if path.endswith(small) or path.startswith(f"{HOME}/recovery-point")]
    if paths:
        path = random.choice(paths)
        data = bytearray(disk.content(path))
        kind = random.randrange(4)
        if kind == 0:
            disk.remove(path)
        elif kind == 1:
            disk.damage(path, bytes(data[: random.randint(0, len(data))]))
        elif kind == 2:
            disk.damage(path, random.randbytes(random.choice((8, 12, 24, 48))))
        elif data and "recovery-point" not in path:  # there a bit more or less is another offset, as good as any
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            disk.damage(path, bytes(data))
    return disk
