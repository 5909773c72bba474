"""Faults that are none: what operators ask of a cluster, while brokers die.

move           a partition leaves one of its brokers, and comes back to it in another order of replicas
elect          preferred replicas shall lead

Whoever does not get an answer, or is refused, asks again; at the end of a campaign everything is back on all brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from dataplane.cluster.paths import parse_topic, topic_path
from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.tasks import Future, Task
from tests.simulation.faults import Faults

if TYPE_CHECKING:
    from dataplane.controller.controller import Controller

ANSWER_WITHIN_S = 3.0
TRIES = 10


class Operators(Faults):
    """Those of a campaign."""

    async def campaign(self, rounds: int) -> None:
        """As ever; then replicas are where they were."""
        await super().campaign(rounds)
        for index in range(self._partitions):
            while not self._is_everywhere(index):
                await self._reassign(index, self._cluster.ids)
                await self._sleep(0.1, 0.5)

    async def _move(self) -> None:
        """Two replicas are left, so who has lost power is the one that goes, and until it is back nobody else does."""
        index, ids = self._random.randrange(self._partitions), self._cluster.ids
        leaving = self._any() if self._suffering is None else self._suffering
        stay = self._others(leaving)
        self._away += 1
        if self._suffering is None:
            self._suffers(leaving)
        gone = await self._reassign(index, self._random.sample(stay, len(stay)))
        await self._sleep(0.0, 3.0)
        back = await self._reassign(index, self._random.sample(ids, len(ids)))
        if gone and back:  # else nobody knows what is still to come
            self._away -= 1

    async def _elect(self) -> None:
        await self._asked(lambda controller: controller.elect(None, ElectionType.PREFERRED, ANSWER_WITHIN_S))

    async def _reassign(self, index: int, target: Sequence[int]) -> bool:
        """Whether it was taken on."""
        key = (f"simulate.{self._topic}", index)
        for _ in range(TRIES):
            outcomes = await self._asked(lambda controller: controller.reassign({key: target}))
            if outcomes is not None and outcomes[key] is None:
                return True
            await self._sleep(0.1, 0.5)
        return False

    async def _asked(self, question: Callable[[Controller], Coroutine[Any, Any, Any]]) -> Any:
        """The answer of whoever thinks it is the controller; None: there was none in time."""
        broker = self._cluster.brokers.get(self._active())
        if broker is None:
            return None
        answer: Future[Any] = Future()
        Task(question(broker.controller)).then(lambda task: answer.resolve(None if task.error else task.result()))
        self._cluster.client.sleep(ANSWER_WITHIN_S).then(lambda _: answer.resolve(None))
        return await answer

    def _is_everywhere(self, index: int) -> bool:
        """As the brokers know it; what is on its way to be so, or not to be so any more, is not."""
        node = self._cluster.zookeeper.tree.node(topic_path(f"simulate.{self._topic}"))
        assignment = parse_topic(node.data)
        if index in assignment.adding or index in assignment.removing:
            return False
        found = [b.metadata.partition(f"simulate.{self._topic}", index) for b in self._cluster.brokers.values()]
        return all(p is not None and sorted(p.replicas) == self._cluster.ids for p in found)
