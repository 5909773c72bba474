"""What goes wrong in a round, one kind each. A fault begins, lasts, and ends healed, though perhaps not yet recovered.

leader           SIGKILL of the leader of a partition, started again some time later
any              SIGKILL of any broker, likewise
bounce           SIGKILL, and a new start at once, within its session
controller       SIGKILL of the controller
twice            SIGKILL of a leader, and, while it comes back, of the one that took over
alone            SIGKILL of two: the third must acknowledge nothing
all              SIGKILL of all three at once
pause            SIGSTOP for longer than the session, and SIGCONT
expire           a broker's session with ZooKeeper is closed behind its back
keeper-pause     SIGSTOP of ZooKeeper, mostly for longer than the sessions
keeper-restart   SIGKILL of ZooKeeper, and a new start on its data
outage           ZooKeeper is away for minutes: who leads goes on leading, and acknowledges
keeper-cut       one broker does not reach ZooKeeper, but everybody else: a leader that does not know it is none
minority         two of three ZooKeepers are killed: the third reads only, and who leads goes on leading
keeper-leader    the leader of three ZooKeepers is killed
cut              two brokers do not hear each other, or one of them does not hear the other
island           one broker hears no other
torn             SIGKILL of a broker, bytes off the ends of its newest segments, and a new start as a follower
disk             no space is left on one broker's disk; then there is, and it is started again
clock            one broker's date jumps, by up to a day, to and fro
rolling          each broker in turn is stopped by SIGTERM and started again
creation         SIGKILL of the controller while topics are created

Those that are aimed at one mechanism: `directed.py`.
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos import directed
from tests.chaos.broker import set_clock
from tests.chaos.clients import PARTITIONS
from tests.chaos.cluster import SESSION_S, SMALL_DISK_BROKER, ChaosCluster
from tests.chaos.keepers import NUMBERS
from tests.chaos.steps import NotMadeError
from tests.chaos.tearing import newest_segment, tear, vouch_for_nothing
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = (
    "leader",
    "any",
    "bounce",
    "controller",
    "twice",
    "alone",
    "all",
    "pause",
    "expire",
    "keeper-pause",
    "keeper-restart",
    "outage",
    "keeper-cut",
    "cut",
    "island",
    "torn",
    "disk",
    "clock",
    "rolling",
    "creation",
    *directed.KINDS,
    "minority",
    "keeper-leader",
)
OF_THREE_KEEPERS = ("minority", "keeper-leader")
"""These need another cluster than the others, so they come together at the end of each turn."""
ON_ITS_WAY_S = 1.0  # what was replicated before may still be acknowledged


class SkippedError(Exception):
    """This machine cannot do it; the text says why."""


def schedule(seed: int, rounds: int, kinds: tuple[str, ...]) -> list[tuple[str, int]]:
    """The kind of each round and the seed of its choices. Every kind comes before any comes again."""
    drawn, found = random.Random(seed), []
    while len(found) < rounds:
        turn = list(kinds)
        drawn.shuffle(turn)
        turn.sort(key=lambda kind: kind in OF_THREE_KEEPERS)
        found += [(kind, drawn.getrandbits(32)) for kind in turn]
    return found[:rounds]


class Faults:
    """Makes one after the other on a cluster."""

    def __init__(self, cluster: ChaosCluster, say: Callable[[str], None], outage_s: float) -> None:
        self._cluster, self._say, self._outage_s = cluster, say, outage_s
        self._random = random.Random()
        self.topic = ""  # the round's, by its physical name
        self.bootstrap = ""
        self.alone: list[tuple[float, float]] = []  # when only one broker ran
        self.served: list[tuple[float, float]] = []  # when every partition had to go on

    def make(self, kind: str, seed: int) -> bool:
        """From beginning to end; whether it came about. Raises SkippedError."""
        self._random.seed(seed)
        if kind not in directed.KINDS:
            getattr(self, "_" + kind.replace("-", "_"))()
            return True
        try:
            directed.Directed(self._cluster, self.topic, self._random, self._say).make(kind)
        except NotMadeError as error:
            self._say(f"{kind} did not come about: {error}")
            self.end()
            return False
        return True

    def end(self) -> None:
        """Whatever is still cut, stopped or wrong, after an error in the middle of a fault."""
        self._cluster.continue_all()
        self._cluster.links.heal()
        self._free_disk()
        for broker in BROKERS:
            set_clock(self._cluster.clock_file(broker), 0)
        with contextlib.suppress(AssertionError):
            self._cluster.revive_keeper()

    # --- kills --------------------------------------------------------------------------------------------------------

    def _leader(self) -> None:
        leaders = self._cluster.leaders(self.topic, PARTITIONS)
        self._kill(leaders[self._random.randrange(PARTITIONS)])

    def _any(self) -> None:
        self._kill(self._random.choice(BROKERS))

    def _bounce(self) -> None:
        self._kill(self._random.choice(BROKERS), 0.0, 0.5)

    def _controller(self) -> None:
        self._kill(self._cluster.controller())

    def _kill(self, broker: int | None, shortest_s: float = 0.5, longest_s: float = 6.0) -> None:
        broker = broker if broker in BROKERS else self._random.choice(BROKERS)
        self._say(f"kill {broker}")
        self._cluster.brokers[broker].kill()
        self._sleep(shortest_s, longest_s)
        self._cluster.brokers[broker].start()

    def _twice(self) -> None:
        partition = self._random.randrange(PARTITIONS)
        first = self._leader_of(partition)
        self._cluster.brokers[first].kill()
        wait_for(lambda: self._leader_of(partition) not in (first, -1), 15, "another leader")
        second = self._leader_of(partition)
        self._sleep(0.0, 2.0)
        self._cluster.brokers[first].start()
        self._sleep(0.0, 1.5)
        self._say(f"kill {first}, and then {second}")
        self._cluster.brokers[second].kill()
        self._sleep(0.5, 5.0)
        self._cluster.brokers[second].start()

    def _leader_of(self, partition: int) -> int:
        return self._cluster.leaders(self.topic, PARTITIONS)[partition]

    def _alone(self) -> None:
        one, other = self._random.sample(BROKERS, 2)
        self._cluster.brokers[one].kill()
        self._sleep(0.0, 3.0)
        self._cluster.brokers[other].kill()
        began = time.monotonic()
        self._sleep(2 * SESSION_S, 4 * SESSION_S)
        self.alone.append((began + ON_ITS_WAY_S, time.monotonic()))
        for broker in self._random.sample((one, other), 2):
            self._cluster.brokers[broker].start()
            self._sleep(0.0, 3.0)

    def _all(self) -> None:
        for broker in self._random.sample(BROKERS, len(BROKERS)):
            self._cluster.brokers[broker].kill()
        self._sleep(0.0, 4.0)
        for broker in self._random.sample(BROKERS, len(BROKERS)):
            self._cluster.brokers[broker].start()
            self._sleep(0.0, 0.7)

    def _torn(self) -> None:
        victim = self._random.choice(BROKERS)
        self._cluster.brokers[victim].kill()
        if self._random.random() < 0.5:
            wait_for(lambda: victim not in self._cluster.registered(), 15, "its session to end")
        vouch_for_nothing(self._cluster, victim)
        cut = 0
        for partition in range(PARTITIONS):
            segment = newest_segment(self._cluster, victim, self.topic, partition)
            if segment is not None and self._random.random() < 0.7:
                most = self._random.choice((1, 7, 60, 500, 5_000, 50_000))
                cut += tear(segment, min(segment.stat().st_size, most), zeros=self._random.random() < 0.3)
        self._say(f"tear {cut} bytes off the logs of {victim}")
        self._cluster.brokers[victim].start()

    def _rolling(self) -> None:
        for broker in self._random.sample(BROKERS, len(BROKERS)):
            self._cluster.brokers[broker].stop()
            self._sleep(0.0, 0.5)
            self._cluster.brokers[broker].start()
            self._cluster.heal()

    def _creation(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        names = [f"made-{self._random.getrandbits(32):08x}" for _ in range(6)]
        made = admin.create_topics([NewTopic(name, 4, 3) for name in names], request_timeout=20.0)
        time.sleep(self._random.choice((0.0, 0.01, 0.03, 0.1, 0.3)))
        self._controller()
        for result in made.values():
            with contextlib.suppress(Exception):  # the outcome is what the partitions' states say, later
                result.result(30)
        for result in admin.delete_topics(names, request_timeout=20.0).values():
            with contextlib.suppress(Exception):
                result.result(30)

    # --- pauses, ZooKeeper, network -----------------------------------------------------------------------------------

    def _pause(self) -> None:
        victim = self._random.choice([*BROKERS, self._cluster.controller() or 1])
        self._say(f"stop {victim}")
        self._cluster.pause(self._cluster.brokers[victim].pid)
        self._sleep(SESSION_S * 1.2, SESSION_S * 3)
        self._cluster.continue_all()

    def _expire(self) -> None:
        for victim in self._random.sample(BROKERS, self._random.randint(1, 3)):
            session = self._cluster.links.sessions[str(victim)]
            self._say(f"expire the session of {victim}")
            session.close(self._cluster.keeper.port)
            self._sleep(0.0, 1.5)

    def _keeper_pause(self) -> None:
        self._cluster.pause(self._cluster.keeper.pid)
        self._sleep(0.5, SESSION_S * 4)
        self._cluster.continue_all()

    def _keeper_restart(self) -> None:
        self._cluster.keeper.kill()
        self._sleep(0.0, SESSION_S * 2)
        self._cluster.keeper.start()

    def _outage(self) -> None:
        self._say(f"no ZooKeeper for {self._outage_s:.0f} s")
        self._cluster.keeper.kill()
        began = time.monotonic()
        time.sleep(self._outage_s)
        self.served.append((began, time.monotonic()))
        self._cluster.keeper.start()

    def _minority(self) -> None:
        keepers = self._cluster.keepers
        assert keepers is not None
        killed = self._random.sample(NUMBERS, 2)
        self._say(f"kill ZooKeepers {killed}")
        keepers.kill_some(*killed)
        began = time.monotonic()
        self._sleep(2 * SESSION_S, 6 * SESSION_S)
        self.served.append((began, time.monotonic()))
        keepers.start()

    def _keeper_leader(self) -> None:
        keepers = self._cluster.keepers
        assert keepers is not None
        leader = keepers.leader()
        self._say(f"kill ZooKeeper {leader}, which leads")
        if leader is not None:
            keepers.kill_some(leader)
        self._sleep(2.0, 8.0)
        keepers.start()

    def _keeper_cut(self) -> None:
        victim = str(self._random.choice([*BROKERS, self._cluster.controller() or 1]))
        self._say(f"cut {victim} off ZooKeeper")
        self._cluster.links.cut(victim, "zookeeper")
        self._cluster.links.cut("zookeeper", victim)
        self._sleep(0.5, SESSION_S * 4)
        self._cluster.links.heal(reset=self._random.random() < 0.5)

    def _cut(self) -> None:
        one, other = map(str, self._random.sample(BROKERS, 2))
        both = self._random.random() < 0.6
        self._say(f"cut {one} {'<->' if both else '->'} {other}")
        self._cluster.links.cut(one, other)
        if both:
            self._cluster.links.cut(other, one)
        self._sleep(1.0, 8.0)
        self._cluster.links.heal(reset=self._random.random() < 0.5)

    def _island(self) -> None:
        victim = self._random.choice(BROKERS)
        self._say(f"island {victim}")
        self._cluster.island(victim, [broker for broker in BROKERS if broker != victim])
        self._sleep(1.0, 8.0)
        self._cluster.links.heal(reset=self._random.random() < 0.5)

    # --- disk, clock --------------------------------------------------------------------------------------------------

    def _disk(self) -> None:
        if not self._cluster.has_small_disk:
            raise SkippedError("a small disk has to be mounted, which only root may")
        filler = self._filler
        with filler.open("wb", buffering=0) as opened:
            for block in (2**20, 2**12, 1):  # until not a byte is left
                with contextlib.suppress(OSError):
                    while True:
                        opened.write(b"\0" * block)
        self._say(f"the disk of {SMALL_DISK_BROKER} is full")
        self._sleep(2.0, 6.0)
        self._free_disk()
        self._cluster.brokers[SMALL_DISK_BROKER].stop()
        self._cluster.brokers[SMALL_DISK_BROKER].start()

    @property
    def _filler(self) -> Path:
        return self._cluster.data(SMALL_DISK_BROKER) / "filler"

    def _free_disk(self) -> None:
        self._filler.unlink(missing_ok=True)

    def _clock(self) -> None:
        victim = self._random.choice(BROKERS)
        file = self._cluster.clock_file(victim)
        jumps = [self._random.choice((-86_400, -7_200, -5, 5, 7_200, 86_400)) for _ in range(4)]
        self._say(f"the clock of {victim} jumps by {jumps} s")
        for jump in jumps:
            set_clock(file, jump * 10**9)
            self._sleep(0.2, 2.0)
        set_clock(file, 0)

    def _sleep(self, shortest_s: float, longest_s: float) -> None:
        time.sleep(self._random.uniform(shortest_s, longest_s))
