"""Faults aimed at one mechanism each: several brokers, in the order in which that mechanism would lose something.

The other kinds hit at random moments; what only a certain order of events can break, they break once in a thousand rounds.
Each of these makes one such order (that of TESTING's table of mechanisms), with its times and victims drawn from the seed.
A correct cluster loses nothing in any of them. Which of them catches which planted bug: `calibration.py`.

stall       both followers stop, for less than their sessions; their leader is killed; they go on, and one of them leads
shrink      a leader and the controller do not hear each other, so one follower lags and no smaller ISR can be confirmed; then
            the leader and the other follower are killed, and the one that lagged is all there is
straggler   a follower that was cut off comes back over a slow link; as soon as it is in the ISR, the others are killed
former      a follower has caught up and dies; the proposal to take it back arrives when it has returned without its tail
stale       a broker hears the former controller's words after those of its successor
handover    the leader is killed, and its successor before the other follower has fetched anything from it, which knows
            late of what is committed
unseen      a leader dies with the controller, loses its tail, and is back before anybody else could be the controller
last        the last in sync is alone for so long that clients ask it anew; it is killed and loses its tail, and the others,
            who never got what it has written since, return
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from tests.chaos.clients import PARTITIONS, REQUEST_S
from tests.chaos.cluster import LAG_S, SESSION_S
from tests.chaos.network import ZOOKEEPER
from tests.chaos.tearing import tear_tails
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.chaos.cluster import ChaosCluster

KINDS = ("stall", "shrink", "straggler", "former", "stale", "handover", "unseen", "last")
_ISR_CHANGES_WITHIN_S = LAG_S + 8
_SESSION_ENDS_WITHIN_S = SESSION_S + 8
_HALF_OF_ALL = 10_000_000  # bytes: `tear_tails` takes at most half of a segment


class Directed:
    """One of them, on a cluster in which all is well."""

    def __init__(self, cluster: ChaosCluster, topic: str, draw: random.Random, say: Callable[[str], None]) -> None:
        self._cluster, self._topic, self._random, self._say = cluster, topic, draw, say
        self._links = cluster.links

    def make(self, kind: str) -> None:
        """From beginning to end. AssertionError where the cluster does not do what it has to on the way."""
        getattr(self, f"_{kind}")()

    # --- acknowledgement ----------------------------------------------------------------------------------------------

    def _stall(self) -> None:
        _, leader, followers = self._drawn()
        self._say(f"stop {followers}, kill {leader}")
        for follower in followers:
            self._cluster.pause(self._cluster.brokers[follower].pid)
        self._sleep(0.5, SESSION_S / 2)
        self._kill(leader)
        self._cluster.continue_all()
        self._outlive(leader)

    def _shrink(self) -> None:
        controller = self._controller()
        _, leader, followers = self._drawn(avoid=controller)
        other = next(follower for follower in followers if follower != controller)
        self._say(f"cut {leader} <-> {controller}, kill {leader} and {other}")
        self._cluster.island(leader, (controller,))
        self._sleep(2.5 * LAG_S, 2.5 * LAG_S + 1.5)  # it lags, that is noticed, and what waited is looked at again
        self._kill(leader, other)
        self._links.heal(reset=True)
        self._outlive(leader, other)

    def _last(self) -> None:
        partition, leader, followers = self._drawn()
        self._say(f"stop {followers}, kill and tear {leader}")
        for follower in followers:
            self._cluster.pause(self._cluster.brokers[follower].pid)
        self._await_isr(partition, lambda isr: isr == {leader}, _SESSION_ENDS_WITHIN_S)
        self._sleep(REQUEST_S, REQUEST_S + 2.0)  # what was asked of it before may never be answered, and is in the way
        self._kill(leader)
        tear_tails(self._cluster, leader, self._topic, self._random.choice((500, 5_000, 50_000)))
        self._cluster.continue_all()
        self._sleep(0.0, 3.0)
        self._cluster.brokers[leader].start()

    # --- the ISR ------------------------------------------------------------------------------------------------------

    def _straggler(self) -> None:
        controller = self._controller()  # whoever is cut off from it cannot have an ISR confirmed
        partition, leader, followers = self._drawn(avoid=controller)
        straggler = next(follower for follower in followers if follower != controller)
        other = next(follower for follower in followers if follower != straggler)
        self._say(f"{straggler} returns slowly to {leader}, kill {leader} and {other}")
        self._shut_out(partition, leader, straggler)
        self._sleep(0.5, 1.5)
        self._links.slow(str(leader), str(straggler), 0.8)
        self._reunite(leader, straggler)
        with contextlib.suppress(AssertionError):
            self._await_isr(partition, lambda isr: straggler in isr, 10)
        self._links.cut(str(leader), str(straggler))  # what is on its way would arrive after its sender's death
        self._kill(leader, other)
        self._links.heal(reset=True)
        self._outlive(leader, other)

    def _former(self) -> None:
        controller = self._controller()
        partition, leader, followers = self._drawn(avoid=controller)
        former = next(follower for follower in followers if follower != controller)
        self._say(f"{former} catches up with {leader}, returns without its tail, is proposed to {controller} only then")
        self._shut_out(partition, leader, former)
        self._links.cut(str(leader), str(controller))
        self._reunite(leader, former)
        self._sleep(1.0, 1.5)
        life = self._registration(former)
        self._kill(former)
        tear_tails(self._cluster, former, self._topic, _HALF_OF_ALL)
        self._cluster.island(former, (leader,))
        self._cluster.brokers[former].start()
        wait_for(lambda: self._registration(former) not in (None, life), 20, f"{former} to register again")
        self._links.mend(str(leader), str(controller))
        with contextlib.suppress(AssertionError):  # it must not, and so this is how long a fault has to show itself
            self._await_isr(partition, lambda isr: former in isr, 2)
        self._kill(leader, controller)
        self._links.heal(reset=True)
        self._outlive(leader, controller)

    # --- changes of leader and controller -----------------------------------------------------------------------------

    def _handover(self) -> None:
        successor = (
            self._controller()
        )  # else it would not hear that it leads: what it says to the third arrives nowhere
        partition = next(
            (p for p in self._shuffled() if self._replicas(p)[0] != successor == self._replicas(p)[1]), None
        )
        leader = self._leader(0 if partition is None else partition)
        third = next(broker for broker in BROKERS if broker not in (leader, successor))
        self._say(f"{third} does not reach {successor}, kill {leader} and then {successor}")
        self._links.cut(str(third), str(successor))
        self._links.slow(str(leader), str(third), 0.3)  # so long it does not know what is committed
        self._sleep(1.0, 1.5)
        self._links.cut(str(leader), str(third))
        self._kill(leader)
        if partition is not None:
            wait_for(lambda: self._leader(partition) == successor, _SESSION_ENDS_WITHIN_S, f"{successor} to lead")
        self._sleep(0.2, 0.5)
        self._kill(successor)
        self._links.heal()
        self._outlive(leader, successor)

    def _unseen(self) -> None:
        controller = self._controller()
        _, leader, followers = self._drawn(avoid=controller)
        third = next(follower for follower in followers if follower != controller)
        self._say(
            f"{third} hears late from ZooKeeper, kill {leader} and {controller}, {leader} returns without its tail"
        )
        self._links.slow(ZOOKEEPER, str(third), 1.0)
        time.sleep(1.0)
        life = self._registration(leader)
        self._kill(leader, controller)
        tear_tails(self._cluster, leader, self._topic, self._random.choice((5_000, 50_000)))
        self._cluster.brokers[leader].start()
        wait_for(lambda: self._registration(leader) not in (None, life), 20, f"{leader} to register again")
        self._sleep(1.0, 2.0)
        self._links.heal()
        self._cluster.brokers[controller].start()

    def _stale(self) -> None:
        controller = self._controller()
        hearer, other = self._random.sample([broker for broker in BROKERS if broker != controller], 2)
        partition = next((p for p in self._shuffled() if self._leader(p) == other), 0)
        self._say(f"{hearer} hears {controller} late, who is the controller no more by then")
        self._links.cut(str(other), str(hearer))
        time.sleep(
            0.75 * LAG_S
        )  # so that this lag is noticed first: a broker is sent one word until it has answered it
        self._links.cut(str(controller), str(hearer))
        self._await_isr(partition, lambda isr: hearer not in isr, _ISR_CHANGES_WITHIN_S)
        self._cluster.separate(str(controller), ZOOKEEPER)
        self._links.mend(str(other), str(hearer), reset=True)
        wait_for(lambda: self._cluster.controller() not in (None, controller), 20, "another controller")
        self._links.mend(str(controller), ZOOKEEPER)
        self._links.mend(ZOOKEEPER, str(controller))
        with contextlib.suppress(AssertionError):
            self._await_isr(partition, lambda isr: hearer in isr, 15)
        time.sleep(6.0)  # until leaders are back where they belong: what comes now is the last word on them
        self._links.mend(str(controller), str(hearer))
        time.sleep(1.0)

    # --- steps --------------------------------------------------------------------------------------------------------

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
        self._await_isr(partition, lambda isr: follower not in isr, _ISR_CHANGES_WITHIN_S)

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

        wait_for(found, within_s, f"the ISR of partition {partition}")

    def _controller(self) -> int:
        wait_for(self._cluster.controller, 20, "a controller")
        return self._cluster.controller() or self._random.choice(BROKERS)

    def _leader(self, partition: int) -> int:
        return int(self._cluster.state(self._topic, partition)["leader"])

    def _replicas(self, partition: int) -> list[int]:
        return list(self._cluster.read(f"/brokers/topics/{self._topic}")["partitions"][str(partition)])

    def _registration(self, broker: int) -> int | None:
        stat = self._cluster.zookeeper.exists(f"/brokers/ids/{broker}")
        return None if stat is None else int(stat.czxid)

    def _shuffled(self) -> list[int]:
        return self._random.sample(range(PARTITIONS), PARTITIONS)

    def _sleep(self, shortest_s: float, longest_s: float) -> None:
        time.sleep(self._random.uniform(shortest_s, longest_s))
