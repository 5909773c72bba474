"""Who was told to wait because the instance's bandwidth is used up, waits: kept in the cache that all processes share.

Brokers let the control plane in before its turn, charge it all the same, and say in the answer how long to wait before the next
(KIP-219). A client would; here the next look is refused until then. Where the cache does not answer nobody is kept out: what was
read is charged in any case, and the instance's own clients wait for it.
"""

from __future__ import annotations

import logging

from django.core.cache import cache

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import BandwidthUsedUp
from controlplane.core.kept import AWAY

LONGEST_WAIT_S = 30.0
LOG = logging.getLogger(__name__)


def check_paid(instance_id: str) -> None:
    """Raises BandwidthUsedUp while the instance has to wait."""
    try:
        until_s = cache.get(_key(instance_id))
    except AWAY:
        LOG.warning("nobody waits for bandwidth: the cache does not answer")
        return
    left_s = 0.0 if until_s is None else until_s - SYSTEM_CLOCK.now().timestamp()
    if left_s > 0:
        raise BandwidthUsedUp(left_s)


def keep(instance_id: str, wait_s: float) -> None:
    """The brokers have told it to wait so long."""
    wait_s = min(wait_s, LONGEST_WAIT_S)
    if wait_s <= 0:
        return
    try:
        cache.set(_key(instance_id), SYSTEM_CLOCK.now().timestamp() + wait_s, int(wait_s) + 1)
    except AWAY:
        LOG.warning("nobody will wait for bandwidth: the cache does not answer")


def _key(instance_id: str) -> str:
    return f"messages:owes:{instance_id}"
