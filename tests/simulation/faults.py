"""What goes wrong in a campaign: each fault begins, lasts, and ends. Drawn from the run's own randomness.

kill           SIGKILL of a broker, and a new start
power          the same, and what its disk had not synced is gone, or any part of it
pause          SIGSTOP, often for longer than its session lasts; then it goes on
cut            two brokers do not hear each other, or one of them does not hear the other
island         one broker hears no other broker
zookeeper      a broker does not reach ZooKeeper, often for longer than its session lasts
expire         ZooKeeper ends a broker's session
outage         nobody reaches ZooKeeper
controller     SIGKILL of the controller
bounce         SIGKILL and a new start within the session: nobody may notice
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedCluster

KINDS = ("kill", "power", "pause", "cut", "island", "zookeeper", "expire", "outage", "controller", "bounce")


class Faults:
    """Makes them, one or two at a time, so that a majority of brokers is untouched by kills and power cuts."""

    def __init__(self, cluster: SimulatedCluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._random = cluster.random
        self.counts = dict.fromkeys(KINDS, 0)

    async def campaign(self, rounds: int) -> None:
        """So many, with pauses; healed at the end."""
        for _ in range(rounds):
            await self._sleep(0.2, 2.0)
            kind = self._random.choice(KINDS)
            self.counts[kind] += 1
            await getattr(self, f"_{kind}")()
        self.heal()

    def heal(self) -> None:
        """Everything works again, and every broker is started."""
        cluster = self._cluster
        cluster.network.heal_all()
        for broker in cluster.ids:
            if broker not in cluster.brokers:
                cluster.start(broker)
            cluster.network.resume(cluster.host(broker))
            cluster.session(broker).resume()

    async def _kill(self) -> None:
        await self._killed(self._any(), 0.5, 6.0)

    async def _bounce(self) -> None:
        await self._killed(self._any(), 0.0, 0.2)

    async def _controller(self) -> None:
        active = [number for number, broker in self._cluster.brokers.items() if broker.controller.is_active]
        await self._killed(active[0] if active else self._any(), 0.5, 5.0)

    async def _power(self) -> None:
        await self._all_in_sync()
        victim = self._any()
        self._cluster.kill(victim)
        self._cluster.files[victim].crash(self._random)
        await self._sleep(0.0, 5.0)
        self._cluster.start(victim)
        await self._all_in_sync()

    async def _all_in_sync(self) -> None:
        while not (self._cluster.up() and self._cluster.in_sync(self._topic)):
            await self._cluster.client.sleep(0.1)

    async def _killed(self, victim: int, shortest: float, longest: float) -> None:
        self._cluster.kill(victim)
        await self._sleep(shortest, longest)
        self._cluster.start(victim)

    async def _pause(self) -> None:
        victim = self._any()
        cluster = self._cluster
        cluster.note(f"pause b{victim}")
        cluster.network.pause(cluster.host(victim))
        session = cluster.session(victim)
        session.cut()
        await self._sleep(0.3, 7.0)
        cluster.note(f"resume b{victim}")
        cluster.network.resume(cluster.host(victim))
        session.resume()

    async def _cut(self) -> None:
        one, other = self._random.sample(self._cluster.ids, 2)
        hosts = self._cluster.host(one), self._cluster.host(other)
        both = self._random.random() < 0.6
        self._cluster.note(f"cut b{one} {'<->' if both else '->'} b{other}")
        self._cluster.network.cut(*hosts, both_ways=both)
        await self._sleep(0.5, 8.0)
        self._cluster.network.heal(*hosts)

    async def _island(self) -> None:
        victim = self._any()
        self._cluster.note(f"island b{victim}")
        pairs = [(self._cluster.host(victim), self._cluster.host(n)) for n in self._cluster.ids if n != victim]
        for pair in pairs:
            self._cluster.network.cut(*pair)
        await self._sleep(0.5, 8.0)
        for pair in pairs:
            self._cluster.network.heal(*pair)

    async def _zookeeper(self) -> None:
        session = self._cluster.session(self._any())
        session.cut()
        await self._sleep(0.3, 6.0)
        session.resume()

    async def _expire(self) -> None:
        self._cluster.session(self._any()).expire()

    async def _outage(self) -> None:
        sessions = [self._cluster.session(broker) for broker in self._cluster.brokers]
        for session in sessions:
            session.cut()
        await self._sleep(0.3, 6.0)
        for session in sessions:
            session.resume()

    def _any(self) -> int:
        return self._random.choice(self._cluster.ids)

    async def _sleep(self, shortest: float, longest: float) -> None:
        await self._cluster.client.sleep(self._random.uniform(shortest, longest))
