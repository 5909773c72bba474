"""When clients do something: at once and often while something happens to the cluster, now and then while nothing does.

A write does harm, or shows it, when it is under way while a leader dies or an ISR changes. So whatever is noted of a
run, and every change in ZooKeeper, wakes the clients, and for a moment they go on without rest. In between a cluster
that works is shown a hundred times that it does: most of a run's time, and it finds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedCluster

MOMENT_S = 0.4
"""So long after it something is still going on."""


class Pace:
    """Of all clients of a run."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._seen = (0, 0)  # changes in ZooKeeper, notes
        self._happened_at = 0.0
        self._resting: list[Future[None]] = []
        cluster.network.looks.append(self._look)

    async def rest(self, busy_s: float, quiet_s: float) -> None:
        """As long as the time asks for, or until something happens."""
        client = self._cluster.client
        if self._cluster.network.clock.seconds < self._happened_at + MOMENT_S:
            await client.sleep(busy_s)
            return
        woken: Future[None] = Future()
        self._resting.append(woken)
        client.sleep(quiet_s).then(lambda _: woken.resolve(None))
        await woken

    def _look(self, _host: str) -> None:
        cluster = self._cluster
        seen = cluster.zookeeper.tree.zxid, len(cluster.log)
        if seen != self._seen:
            self._seen, self._happened_at = seen, cluster.network.clock.seconds
            resting, self._resting = self._resting, []
            for woken in resting:
                cluster.client.loop.call_soon(lambda woken=woken: woken.resolve(None))  # type: ignore[misc]
