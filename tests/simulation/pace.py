"""When clients do something: at once and often while something happens to the cluster, now and then while nothing does.

A write does harm, or shows it, when it is under way while a leader dies or an ISR changes. So whatever is noted of a
run, and every change in ZooKeeper, wakes the clients, and for a moment they go on without rest. In between a cluster
that works is shown a hundred times that it does: most of a run's time, and it finds nothing.

Before the first fault and after the last one there is a calm, in which clients write quickly and no answer may take longer
than the network does: what is repeated, or tried again after a pause, shows then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedCluster

MOMENT_S = 0.4
"""So long after it something is still going on."""
CALM_REST_S = 0.015
PROMPT_S = 0.03
"""A produce travels to its leader, the leader's answer to the followers and their next requests back: 5 ms at most, of
which no disk is any. The shortest pause after something went wrong is 50 ms."""


class LateError(AssertionError):
    """An answer took longer than it may while nothing was wrong."""


class Pace:
    """Of all clients of a run."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._seen = (0, 0)  # changes in ZooKeeper, notes
        self._happened_at = 0.0
        self._told, self._told_at = 0, 0.0  # what the controller has told brokers
        self._resting: list[Future[None]] = []
        self._calm_since: float | None = None
        self.answers = 0  # in calms
        cluster.network.looks.append(self._look)

    async def rest(self, busy_s: float, quiet_s: float) -> None:
        """As long as the time asks for, or until something happens."""
        client = self._cluster.client
        if self.is_calm:
            await client.sleep(CALM_REST_S)
            return
        if self._cluster.network.clock.seconds < self._happened_at + MOMENT_S:
            await client.sleep(busy_s)
            return
        woken: Future[None] = Future()
        self._resting.append(woken)
        client.sleep(quiet_s).then(lambda _: woken.resolve(None))
        await woken

    def calm(self) -> None:
        """All is well from now on."""
        self._calm_since = self._cluster.network.clock.seconds
        self._wake()

    @property
    def is_calm(self) -> bool:
        """Whether nothing is to go wrong."""
        return self._calm_since is not None

    def no_calm(self) -> None:
        """Faults begin."""
        self._calm_since = None

    def took(self, seconds: float, what: str) -> None:
        """A prompt answer has come. Raises LateError where it should have come sooner.

        Leaders change in a calm, too, as they are given back to who is preferred, and followers look for the new ones. That is
        decided when it is in ZooKeeper, and happens when brokers are told, which may be half a second later.
        """
        now = self._cluster.network.clock.seconds
        happened_at = max(self._happened_at, self._told_at)
        if self._calm_since is not None and now - seconds >= max(self._calm_since, happened_at + MOMENT_S):
            self.answers += 1
            if seconds > PROMPT_S:
                raise LateError(f"{now:.3f} s: {what} took {1000 * seconds:.0f} ms while nothing was wrong")

    def _look(self, _host: str) -> None:
        cluster = self._cluster
        told = sum(broker.metadata.version for broker in cluster.brokers.values())
        if told != self._told:
            self._told, self._told_at = told, cluster.network.clock.seconds
        seen = cluster.zookeeper.tree.zxid, len(cluster.log)
        if seen != self._seen:
            self._seen, self._happened_at = seen, cluster.network.clock.seconds
            self._wake()

    def _wake(self) -> None:
        resting, self._resting = self._resting, []
        for woken in resting:
            self._cluster.client.loop.call_soon(lambda woken=woken: woken.resolve(None))  # type: ignore[misc]
