"""Asking a cluster that is about to change its controller: wait and ask again, so that no user has to.

For some seconds after a broker's death the cluster cannot say who decides: a session has to end, another controller to be
elected, leaders to be found. What it answers meanwhile (`client.ClusterChanging`) is no answer for a person. So an act is
done again, by a new client of the brokers that are registered then (an old one waits for the controller that it knew), until
it succeeds, is refused, or PATIENCE_S have passed.

An attempt that failed in this way may have been carried out all the same: a controller that dies between the writing and the
answer has made the topic. Hence `again`: an act that is told so takes what it finds done for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from controlplane.kafka import client

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.clusters.address import ClusterAddress
    from controlplane.core.clock import Clock
    from controlplane.kafka.client import Admin

    Result = TypeVar("Result")
    Act = Callable[[Admin, bool], Result]
    """(the cluster, whether an attempt before this one may have been carried out) -> its result."""

PATIENCE_S = 15.0
"""A session of 6 s that has to end, an election, and room. Counted from the first attempt; none begins later."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0


def patiently(cluster: ClusterAddress, act: Act[Result], clock: Clock) -> Result:
    """The result of the first attempt that has one. Raises what `act` raises; ClusterChanging when patience is at its end."""
    began, pause_s, again = clock.now(), FIRST_PAUSE_S, False
    while True:
        admin = client.admin(cluster)
        try:
            return act(admin, again)
        except client.ClusterChanging:
            client.forget(cluster, admin)
            waited_s = (clock.now() - began).total_seconds()
            if waited_s + pause_s >= PATIENCE_S:
                raise
        again = True
        clock.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
