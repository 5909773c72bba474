"""What aimed faults are made of: who leads, who controls, cutting a follower out of an ISR, killing, waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.chaos.clients import PARTITIONS
from tests.chaos.cluster import LAG_S, SESSION_S
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.chaos.cluster import ChaosCluster

ISR_CHANGES_WITHIN_S = LAG_S + 8


class NotMadeError(Exception):
    """The cluster did not come to where a fault wants it: leaders and controllers move by themselves under load.

    That is no finding. What must not happen is found by the checker, and what must recover by healing.
    """


class Steps:
    """On one cluster and one of its topics, with choices of one seed."""

    def __init__(self, cluster: ChaosCluster, topic: str, draw: random.Random, say: Callable[[str], None]) -> None:
        self._cluster, self._topic, self._random, self._say = cluster, topic, draw, say
        self._links = cluster.links

    def _drawn(self, avoid: int | None = None) -> tuple[int, int, list[int]]:
        """A partition, its leader (not `avoid`, where another leads any), and the two others."""
        partitions = [(p, leader) for p in self._shuffled() if (leader := self._leader(p)) != avoid]
        partition, leader = partitions[0]
        others = [broker for broker in BROKERS if broker != leader]
        self._random.shuffle(others)
        return partition, leader, others

    def _shut_out(self, partition: int, leader: int, follower: int) -> None:
        """A follower does not hear its leader until it is out of the ISR."""
        self._cluster.island(follower, (leader,))
        self._await_isr(partition, lambda isr: follower not in isr, ISR_CHANGES_WITHIN_S)

    def _reunite(self, one: int, other: int) -> None:
        self._links.mend(str(one), str(other), reset=True)
        self._links.mend(str(other), str(one), reset=True)

    def _kill(self, *brokers: int) -> None:
        for broker in brokers:
            self._cluster.brokers[broker].kill()

    def _outlive(self, *brokers: int) -> None:
        """The dead return after their sessions, and after those have decided who still live."""
        self._sleep(SESSION_S + 1.5, SESSION_S + 3.0)
        for broker in brokers:
            self._cluster.brokers[broker].start()

    def _await_isr(self, partition: int, holds: Callable[[set[int]], bool], within_s: float) -> None:
        def found() -> bool:
            return holds(set(self._cluster.state(self._topic, partition)["isr"]))

        self._until(found, within_s, f"the ISR of partition {partition}")

    def _await_leaders_at_home(self) -> None:
        """Leaders that the controller is about to give back would move in the middle of a fault."""
        self._until(
            lambda: all(self._leader(p) == self._replicas(p)[0] for p in range(PARTITIONS)), 20, "leaders to be at home"
        )

    def _until(self, condition: Callable[[], object], within_s: float, what: str) -> None:
        try:
            wait_for(condition, within_s, what)
        except AssertionError as error:
            raise NotMadeError(str(error)) from error

    def _controller(self) -> int:
        self._until(self._cluster.controller, 20, "a controller")
        return self._cluster.controller() or self._random.choice(BROKERS)

    def _leader(self, partition: int) -> int:
        return int(self._cluster.state(self._topic, partition)["leader"])

    def _reign_of(self, broker: int, partition: int) -> int | None:
        """The epoch in which it leads; None where another does."""
        state = self._cluster.state(self._topic, partition)
        return int(state["leader_epoch"]) if state["leader"] == broker else None

    def _replicas(self, partition: int) -> list[int]:
        return list(self._cluster.read(f"/brokers/topics/{self._topic}")["partitions"][str(partition)])

    def _registration(self, broker: int) -> int | None:
        stat = self._cluster.zookeeper.exists(f"/brokers/ids/{broker}")
        return None if stat is None else int(stat.czxid)

    def _shuffled(self) -> list[int]:
        return self._random.sample(range(PARTITIONS), PARTITIONS)

    def _sleep(self, shortest_s: float, longest_s: float) -> None:
        time.sleep(self._random.uniform(shortest_s, longest_s))
