"""What goes wrong in a campaign: each fault begins, lasts, and ends. Drawn from the run's own randomness.

Most rounds begin two or three faults within moments of each other, for it is in each other's company that they do harm;
and some lie in wait for a change of leader or ISR, and come within milliseconds of it.

kill           SIGKILL of a broker, and a new start
power          the same, and what its disk had not synced is gone, or any part of it
pause          SIGSTOP, often for longer than its session lasts; when it goes on, it may not hear of its session at once
cut            two brokers do not hear each other, or one of them does not hear the other; then all of it arrives
island         one broker hears no other broker
zombie         a leader hears neither brokers nor ZooKeeper, only clients
zookeeper      a broker does not reach ZooKeeper, often for longer than its session lasts
expire         ZooKeeper ends a broker's session
outage         nobody reaches ZooKeeper
slow           ZooKeeper takes up to a second for everything
controller     SIGKILL of the controller
bounce         SIGKILL and a new start within the session: nobody may notice
ambush         at the next change of leader or ISR its leader is killed, paused, or loses power
last           all but one die, and the last one loses power
all            SIGKILL of all at once
deposed        what a controller sends to somebody arrives when there is another controller
blind          while nobody decides, a leader that does not hear one of its followers, and then dies
relapse        who is about to join the ISR loses power; the proposal arrives when it is back, and then the others die
unconfirmed    the last one in the ISR, about to be joined by another, cannot say so to anybody, and loses power
decision       who has a commit on its way to the log of transactions is not heard by its followers, and dies (where a run
               is asked to have transactions)

`ambush` and those from `deposed` on are in `ambushes.py`, what operators do meanwhile is in `operators.py`, and what a
machine does that goes on working is in `disturbances.py`.

Kills lose nothing that was written. Power cuts come one at a time: until who suffered one is in sync again, nobody else
does (but whose disk has everything already, in `unconfirmed`). That is what is promised with min.insync.replicas=2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.cluster.paths import parse_state, state_path
from dataplane.tasks import Task, gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.cluster import SimulatedCluster

KINDS = (
    "kill",
    "power",
    "pause",
    "cut",
    "island",
    "zombie",
    "zookeeper",
    "expire",
    "outage",
    "slow",
    "controller",
    "bounce",
    "ambush",
    "last",
    "all",
    "deposed",
    "blind",
    "relapse",
    "unconfirmed",
    "move",
    "elect",
    "late",
    "disk",
    "busy",
    "step",
    "raise",
    "configure",
    "stop",
)
OF_TRANSACTIONS = ("decision",)
AT_ONCE = (1, 1, 2, 2, 3)
FEW_KINDS, MANY_OF_FEW = 0.4, 6
"""So many runs draw from so few kinds: the same again and again meets what all sorts in turn do not."""


class Faults:
    """Makes those that wait for nothing."""

    def __init__(self, cluster: SimulatedCluster, topic: str, partitions: int, kinds: Sequence[str] = KINDS) -> None:
        self._cluster, self._topic, self._partitions = cluster, topic, partitions
        self._random = cluster.random
        self._suffering: int | None = None  # the broker that has lost something, until it is in sync again
        self._away = 0  # moves of replicas that are not known to be over
        self._witness = cluster.zookeeper.connect(3600.0)  # hears of changes as a broker would
        few = self._random.random() < FEW_KINDS
        self._kinds = self._random.sample(kinds, MANY_OF_FEW) if few else kinds
        self.counts = dict.fromkeys(kinds, 0)

    async def campaign(self, rounds: int) -> None:
        """So many, with pauses; healed at the end."""
        for _ in range(rounds):
            await self._sleep(0.2, 2.0)
            kinds = [self._random.choice(self._kinds) for _ in range(self._random.choice(AT_ONCE))]
            await gather([Task(self._begin(kind)) for kind in kinds])
        self.heal()

    async def _begin(self, kind: str) -> None:
        self.counts[kind] += 1
        await self._sleep(0.0, 0.3)
        await getattr(self, f"_{kind}")()

    def heal(self) -> None:
        """Everything works again, and every broker is started."""
        cluster = self._cluster
        cluster.network.heal_all()
        for broker in cluster.ids:
            self._start(broker)
            cluster.network.resume(cluster.host(broker))
            cluster.session(broker).resume()
            cluster.background[broker].slow = None

    # --- deaths -------------------------------------------------------------------------------------------------------

    async def _kill(self) -> None:
        await self._killed(self._any(), 0.5, 6.0)

    async def _bounce(self) -> None:
        await self._killed(self._any(), 0.0, 0.2)

    async def _controller(self) -> None:
        await self._killed(self._active(), 0.5, 5.0)

    async def _all(self) -> None:
        for broker in self._cluster.ids:
            self._die(broker)
        await self._started_again(self._cluster.ids)

    async def _power(self) -> None:
        victim = self._any()
        self._lose_power(victim)
        await self._sleep(0.0, 5.0)
        self._start(victim)

    async def _last(self) -> None:
        first, second, last = self._random.sample(self._cluster.ids, 3)
        self._die(first)
        await self._sleep(0.0, 3.0)
        self._die(second)
        await self._sleep(0.0, 4.0)
        self._lose_power(last)
        await self._started_again([first, second, last])

    async def _started_again(self, brokers: list[int]) -> None:
        for broker in self._random.sample(brokers, len(brokers)):
            await self._sleep(0.0, 2.0)
            self._start(broker)

    async def _killed(self, victim: int, shortest: float, longest: float) -> None:
        self._die(victim)
        await self._sleep(shortest, longest)
        self._start(victim)

    def _die(self, victim: int) -> None:
        if victim in self._cluster.brokers:
            self._cluster.kill(victim)

    def _lose_power(self, victim: int) -> None:
        """Or only die, while somebody else has not recovered."""
        self._die(victim)
        if self._suffering in (None, victim):
            self._cluster.lose_power(victim)
            if self._suffering is None:
                self._suffers(victim)

    def _suffers(self, victim: int) -> None:
        self._suffering = victim
        Task(self._recovered(), "recovery from a power cut")

    async def _recovered(self) -> None:
        cluster = self._cluster
        while self._away or not (
            len(cluster.brokers) == len(cluster.ids)
            and cluster.up()
            and cluster.in_sync(self._topic)
            and cluster.all_in_sync()
        ):
            await cluster.client.sleep(0.1)
        self._suffering = None
        cluster.recovered()

    def _start(self, broker: int) -> None:
        if broker not in self._cluster.brokers:
            self._cluster.start(broker)

    # --- silence ------------------------------------------------------------------------------------------------------

    async def _pause(self) -> None:
        await self._paused(self._any())

    async def _paused(self, victim: int) -> None:
        cluster, host, session = self._cluster, self._cluster.host(victim), self._cluster.session(victim)
        cluster.note(f"pause b{victim}")
        cluster.network.pause(host)
        session.cut()
        await self._sleep(0.3, 7.0)
        cluster.note(f"resume b{victim}")
        cluster.network.resume(host)
        if self._random.random() < 0.5:
            await self._sleep(0.0, 0.5)
        session.resume()

    async def _cut(self) -> None:
        one, other = self._random.sample(self._cluster.ids, 2)
        both = self._random.random() < 0.6
        await self._apart(one, [other], both=both)

    async def _island(self) -> None:
        victim = self._any()
        await self._apart(victim, self._others(victim))

    async def _zombie(self) -> None:
        victim = self._leader()
        session = self._cluster.session(victim)
        session.cut()
        await self._apart(victim, self._others(victim))
        session.resume()

    async def _apart(self, one: int, others: list[int], *, both: bool = True) -> None:
        cluster = self._cluster
        cluster.note(f"cut b{one} {'<->' if both else '->'} {others}")
        for other in others:
            cluster.network.cut(cluster.host(one), cluster.host(other), both_ways=both)
        await self._sleep(0.5, 8.0)
        for other in others:
            cluster.network.heal(cluster.host(one), cluster.host(other))

    # --- ZooKeeper ----------------------------------------------------------------------------------------------------

    async def _zookeeper(self) -> None:
        await self._cut_off([self._any()])

    async def _outage(self) -> None:
        await self._cut_off(self._cluster.ids)

    async def _cut_off(self, brokers: list[int], shortest: float = 0.3, longest: float = 6.0) -> None:
        sessions = [self._cluster.session(broker) for broker in brokers]
        for session in sessions:
            session.cut()
        await self._sleep(shortest, longest)
        for session in sessions:
            session.resume()

    async def _expire(self) -> None:
        self._cluster.session(self._any()).expire()

    async def _slow(self) -> None:
        server, random = self._cluster.zookeeper, self._random
        before, server.latency = server.latency, lambda: random.uniform(0.05, 0.5)
        await self._sleep(1.0, 6.0)
        server.latency = before

    # --- whom ---------------------------------------------------------------------------------------------------------

    def _any(self) -> int:
        return self._random.choice(self._cluster.ids)

    def _others(self, broker: int) -> list[int]:
        return [other for other in self._cluster.ids if other != broker]

    def _active(self) -> int:
        """The controller, where there is one."""
        active = [number for number, broker in self._cluster.brokers.items() if broker.controller.is_active]
        return active[0] if active else self._any()

    def _leader(self, index: int = 0) -> int:
        """As ZooKeeper knows it."""
        node = self._cluster.zookeeper.tree.node(state_path(f"simulate.{self._topic}", index))
        leader = parse_state(node.data, node.version).leader
        return leader if leader in self._cluster.ids else self._any()

    async def _sleep(self, shortest: float, longest: float) -> None:
        await self._cluster.client.sleep(self._random.uniform(shortest, longest))
