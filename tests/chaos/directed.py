"""Faults aimed at one mechanism each: several brokers, in the order in which that mechanism would lose something.

The other kinds hit at random moments; what only a certain order of events can break, they break once in a thousand rounds.
Each of these makes one such order (that of TESTING's table of mechanisms), with its times and victims drawn from the seed.
A correct cluster loses nothing in any of them. Which of them catches which planted bug: `calibration.py`.

stall       both followers stop, for less than their sessions; their leader is killed; they go on, and one of them leads
shrink      a leader and the controller do not hear each other, so one follower lags and no smaller ISR can be confirmed; then
            the leader and the other follower are killed, and the one that lagged is all there is
straggler   a follower that was cut off comes back over a slow link; as soon as it is in the ISR, the others are killed
former      a follower has caught up and dies; the proposal to take it back arrives when it has returned without its tail
stale       a broker hears the former controller's words after those of its successor, and nothing behind them
handover    the leader is killed, and its successor before the other follower has fetched anything from it, which knows
            late of what is committed
unseen      a leader that is the controller dies, and is back before anybody else could be the controller
last        the last in sync is alone for so long that clients ask it anew; it is killed and loses its tail, and the others,
            who never got what it has written since, return
"""

from __future__ import annotations

import contextlib
import time

from tests.chaos.clients import REQUEST_S
from tests.chaos.cluster import LAG_S, SESSION_S
from tests.chaos.network import ZOOKEEPER
from tests.chaos.steps import ISR_CHANGES_WITHIN_S, NotMadeError, Steps
from tests.chaos.tearing import tear_tails
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

KINDS = ("stall", "shrink", "straggler", "former", "stale", "handover", "unseen", "last")
_SESSION_ENDS_WITHIN_S = SESSION_S + 8
_DECIDED_WITHIN_S = 40.0
_HALF_OF_ALL = 10_000_000  # bytes: `tear_tails` takes at most half of a segment


class Directed(Steps):
    """One of them, on a cluster in which all is well."""

    def make(self, kind: str) -> None:
        """From beginning to end. Raises NotMadeError; AssertionError where the cluster does what it must not."""
        self._await_leaders_at_home()
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
        with contextlib.suppress(NotMadeError):
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
        self._until(lambda: self._registration(former) not in (None, life), 20, f"{former} to register again")
        self._links.mend(str(leader), str(controller))
        with contextlib.suppress(NotMadeError):  # it must not, and so this is how long a fault has to show itself
            self._await_isr(partition, lambda isr: former in isr, 2)
        self._kill(leader, controller)
        self._links.heal(reset=True)
        self._outlive(leader, controller)

    # --- changes of leader and controller -----------------------------------------------------------------------------

    def _handover(self) -> None:
        successor = self._controller()  # else it would not hear that it leads: what it says to the third goes nowhere
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
            self._until(lambda: self._leader(partition) == successor, _SESSION_ENDS_WITHIN_S, f"{successor} to lead")
        self._sleep(0.2, 0.5)
        self._kill(successor)
        self._links.heal()
        self._outlive(leader, successor)

    def _unseen(self) -> None:
        leader = self._controller()
        led = {p: epoch for p in self._shuffled() if (epoch := self._reign_of(leader, p)) is not None}
        self._say(f"the others hear late from ZooKeeper, bounce {leader}, which controls and leads {sorted(led)}")
        for other in self._cluster.other_brokers(leader):
            self._links.slow(ZOOKEEPER, str(other), 1.0)
        time.sleep(1.0)
        life = self._registration(leader)
        self._kill(leader)
        self._cluster.brokers[leader].start()
        self._until(lambda: self._registration(leader) not in (None, life), 20, f"{leader} to register again")
        self._links.heal()
        wait_for(
            lambda: all(self._reign_of(leader, p) != epoch for p, epoch in led.items()),
            _DECIDED_WITHIN_S,
            f"another leader than {leader}, or another epoch: it leads on as if it had not restarted",
        )

    def _stale(self) -> None:
        controller = self._controller()
        hearer, other = self._random.sample([broker for broker in BROKERS if broker != controller], 2)
        partition = next((p for p in self._shuffled() if self._leader(p) == other), 0)
        self._say(f"{hearer} hears {controller} late, who is the controller no more by then")
        self._links.cut(str(other), str(hearer))
        time.sleep(0.75 * LAG_S)  # that lag is noticed first: a broker is sent one word until it has answered it
        self._links.cut(str(controller), str(hearer))
        self._await_isr(partition, lambda isr: hearer not in isr, ISR_CHANGES_WITHIN_S)
        self._links.slow(ZOOKEEPER, str(hearer), 0.5)  # so that the other is the next controller
        self._cluster.separate(str(controller), ZOOKEEPER)
        self._links.mend(str(other), str(hearer), reset=True)
        self._until(lambda: self._cluster.controller() not in (None, controller), 20, "another controller")
        self._links.slow(ZOOKEEPER, str(hearer), 0.0)
        self._links.mend(str(controller), ZOOKEEPER)
        self._links.mend(ZOOKEEPER, str(controller))
        if self._comes_to_know(hearer, other):
            self._deliver(controller, hearer, other)
        self._links.heal(reset=True)

    def _comes_to_know(self, broker: int, controller: int) -> bool:
        """On a machine under load somebody else may have become the controller; then there is nothing to be seen."""
        server = self._cluster.brokers[broker]
        with contextlib.suppress(NotMadeError):
            self._until(
                lambda: self._cluster.controller_according_to(server) == controller, 10, "the controller's word"
            )
            return True
        return False

    def _deliver(self, former: int, hearer: int, controller: int) -> None:
        """What the former controller has said arrives, and nothing of the present one to make it good."""
        self._links.cut(str(controller), str(hearer))
        epoch = self._cluster.read("/controller_epoch")
        self._links.mend(str(former), str(hearer))
        time.sleep(2.0)
        said = self._cluster.controller_according_to(self._cluster.brokers[hearer])
        if self._cluster.read("/controller_epoch") == epoch:  # else the former one may be it again
            assert said == controller, f"{hearer} believes {said}, but since then {controller} is the controller"
