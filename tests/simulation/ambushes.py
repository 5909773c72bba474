"""Faults at the worst moment: they wait until the cluster is in a certain state, and come within milliseconds of it.

Most of them need several things in a certain order. Other faults of the round come between them, so at every step the
state may be another one than was wanted: then what follows is one more fault, as good as any.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dataplane.cluster.paths import state_path
from dataplane.replication.leadership import NO_EPOCH
from dataplane.tasks import Future, Task, gather
from dataplane.transactions.model import TransactionState
from tests.simulation.faults import KINDS, Faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.replication.replica.partition import Partition
    from tests.simulation.cluster import SimulatedCluster

PATIENCE_S = 3.0
"""Of who lies in wait."""
UNHEARD_S = 7.0
"""So late comes what followers were sent: a successor of who has died is elected by then."""


class Ambushes(Faults):
    """Those that lie in wait."""

    def __init__(self, cluster: SimulatedCluster, topic: str, partitions: int, kinds: Sequence[str] = KINDS) -> None:
        super().__init__(cluster, topic, partitions, kinds)
        self._awaited: list[tuple[Callable[[], bool], Future[bool]]] = []
        cluster.network.looks.append(self._look)

    async def _ambush(self) -> None:
        """Something makes the leader or the ISR change, once or twice: who leads then is hit at once."""
        index = self._random.randrange(self._partitions)
        cause = Task(self._killed(self._any(), 0.0, 3.0) if self._random.random() < 0.7 else self._expire())
        for _ in range(self._random.choice((1, 2))):
            await self._next_change(index)
        await self._sleep(0.0, 0.01)
        victim = self._leader(index)
        hit = self._paused(victim) if self._random.random() < 0.3 else self._killed(victim, 0.0, 5.0)
        await gather([cause, Task(hit)])

    async def _deposed(self) -> None:
        cluster, controller = self._cluster, self._active()
        one, other = self._random.sample(self._others(controller), 2)
        cluster.network.cut(cluster.host(controller), cluster.host(one), both_ways=False)
        cluster.session(other).expire()  # something to tell
        await self._sleep(0.05, 1.0)
        cluster.session(controller).expire()
        await self._sleep(0.1, 3.0)
        cluster.network.heal(cluster.host(controller), cluster.host(one))

    async def _blind(self) -> None:
        index = self._random.randrange(self._partitions)
        leader = self._leader(index)
        deaf = self._random.choice(self._others(leader))
        sessions = [self._cluster.session(broker) for broker in self._cluster.ids]
        self._cluster.network.cut(self._cluster.host(leader), self._cluster.host(deaf))
        for session in sessions:
            session.cut()
        await self._sleep(3.0, 6.5)
        self._die(leader)
        self._cluster.network.heal(self._cluster.host(leader), self._cluster.host(deaf))
        for session in sessions:
            session.resume()
        await self._sleep(3.0, 6.0)
        self._start(leader)

    def _next_change(self, index: int) -> Future[None]:
        """Of a partition's state; resolved after some seconds in any case."""
        changed: Future[None] = Future()

        def tell() -> None:
            if not changed.done:
                changed.resolve(None)

        self._witness.exists(state_path(f"simulate.{self._topic}", index), tell)
        self._cluster.client.sleep(PATIENCE_S).then(lambda _: tell())
        return changed

    async def _relapse(self) -> None:
        """Is who joins the ISR the one that had caught up, or a later life of it, which has lost that?"""
        cluster, index = self._cluster, self._random.randrange(self._partitions)
        leader, controller = self._leader(index), self._active()
        victim = self._random.choice([broker for broker in self._others(leader) if broker != controller])
        await self._killed(victim, 2.5, 4.0)
        if not await self._until(lambda: self._wants_to_be_joined(leader, index, victim)):
            return
        cluster.network.cut(cluster.host(leader), cluster.host(controller), both_ways=False)
        cluster.network.cut(cluster.host(leader), cluster.host(victim))
        self._lose_power(victim)
        self._start(victim)
        await self._until(lambda: self._is_registered(victim))
        await self._sleep(0.0, 0.2)
        cluster.network.heal(cluster.host(leader), cluster.host(controller))
        await self._sleep(0.02, 0.2)
        for other in self._others(victim):
            self._die(other)
        cluster.network.heal(cluster.host(leader), cluster.host(victim))
        await self._sleep(2.5, 4.0)
        await self._started_again(self._others(victim))

    async def _unconfirmed(self) -> None:
        """Does what only a proposed ISR has count as committed? All that was committed before is on the leader's disk."""
        cluster, index = self._cluster, self._random.randrange(self._partitions)
        leader = self._leader(index)
        first, second = self._random.sample(self._others(leader), 2)
        self._die(first)
        if await self._until(lambda: self._isr(leader, index) == (leader, second)):
            self._lose_power(second)
        if await self._until(lambda: self._isr(leader, index) == (leader,)):
            await self._sleep(0.0, 1.0)
            self._start(second)
            if await self._until(lambda: self._wants_to_be_joined(leader, index, second)):
                await self._silenced(leader, index)
        for broker in cluster.ids:
            self._start(broker)

    async def _silenced(self, leader: int, index: int) -> None:
        cluster = self._cluster
        cluster.files[leader].sync_all()
        for log in cluster.brokers[leader].logs.logs() if leader in cluster.brokers else ():
            if log.founding is not None:
                with suppress(OSError):  # a disk that refuses; its broker does not lead any more
                    log.founding.settle()  # else the power takes the replica itself, with all that is synced of it
        sessions = [cluster.session(broker) for broker in cluster.ids if broker in cluster.brokers]
        for session in sessions:
            session.cut()
        await self._sleep(0.1, 1.0)
        if self._isr(leader, index) == (leader,):
            self._die(leader)
            cluster.note(f"power of b{leader}")  # not `lose_power`: what may count is on its disk
            cluster.cut_power(leader)
            self._suffering = leader  # who suffered before has what has been committed since, and must keep it
        for session in sessions:
            session.resume()
        await self._sleep(0.0, 1.0)

    async def _decision(self) -> None:
        """Does anybody hear of a commit before it holds? Who decides dies with it, and its successor knows of none.

        What it sends to its followers arrives too late, and they do not ask again meanwhile. Connections that it opens now are
        quick: it could tell the partitions that others lead. Nobody is elected before the transaction's time is over, so that
        its successor aborts it, whoever asks for the commit again.
        """
        cluster = self._cluster
        if not await self._until(lambda: self._decides() is not None):
            return
        coordinator = self._decides()
        assert coordinator is not None
        cluster.note(f"b{coordinator} decides alone")
        for other in self._others(coordinator):
            cluster.network.delay(cluster.host(coordinator), cluster.host(other), UNHEARD_S)
            cluster.network.reset(cluster.host(coordinator), cluster.host(other))
        await self._sleep(0.1, 0.5)
        self._die(coordinator)
        await self._cut_off(cluster.ids, 3.8, 4.5)
        await self._sleep(1.0, 3.0)
        self._start(coordinator)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _until(self, condition: Callable[[], bool]) -> Future[bool]:
        """Whether it came to this: true at the end of the very turn that made it so, false after some seconds."""
        reached: Future[bool] = Future()
        self._awaited.append((condition, reached))
        self._cluster.client.sleep(PATIENCE_S).then(lambda _: reached.resolve(False))
        return reached

    def _look(self, _host: str) -> None:
        if self._awaited:
            self._awaited, awaited = [], self._awaited
            for condition, reached in awaited:
                if not reached.done and condition():
                    reached.resolve(True)
            self._awaited += [each for each in awaited if not each[1].done]

    def _decides(self) -> int | None:
        """Who is about to commit a transaction of which it leads some partitions, and others do the rest."""
        for broker, running in self._cluster.brokers.items():
            for transaction in running.transactions.transactions()[0]:
                if (
                    transaction.state is TransactionState.ONGOING
                    and transaction.pending is TransactionState.PREPARE_COMMIT
                ):
                    known = [running.metadata.partition(*partition) for partition in transaction.partitions]
                    leaders = {each.leader for each in known if each is not None}
                    if broker in leaders and len(leaders) > 1:
                        return broker
        return None

    def _is_registered(self, broker: int) -> bool:
        running = self._cluster.brokers.get(broker)
        return running is not None and running.replicas.broker_epoch() != NO_EPOCH

    def _wants_to_be_joined(self, leader: int, index: int, follower: int) -> bool:
        partition = self._led(leader, index)
        return (
            partition is not None
            and partition.state.proposed_isr is not None
            and follower in partition.state.proposed_isr
            and follower not in partition.state.isr
        )

    def _isr(self, leader: int, index: int) -> tuple[int, ...]:
        """As its leader believes it to be, itself first; empty where it does not lead."""
        partition = self._led(leader, index)
        return () if partition is None else (leader, *(member for member in partition.state.isr if member != leader))

    def _led(self, leader: int, index: int) -> Partition | None:
        running = self._cluster.brokers.get(leader)
        partition = None if running is None else running.replicas.registry.get(f"simulate.{self._topic}", index)
        return partition if partition is not None and partition.state.is_leader else None
