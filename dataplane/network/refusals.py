"""Requests that are larger than may come: their connection ends, and somebody should be able to learn why.

The client only sees that its connection is gone, so the broker says it: whose it was, the size, and the limit, in Apache
Kafka's words (`InvalidReceiveException`), on standard error. An instance has one line in `SILENCE_S`, which says how many
there were since the one before; all of them are counted (`sluice_master_too_large_requests_total`).
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.network.accounts import Account
from quota.contracts.namespace import instance_id_of_key

SILENCE_S = 10.0


class Refusals:
    """Which accounts have sent requests that are too large, and when each was last reported; one for each loop."""

    __slots__ = ("_clock", "_report")

    def __init__(self, clock: Callable[[], float], report: Callable[[str], None]) -> None:
        self._clock, self._report = clock, report

    def too_large(self, account: Account, peer: tuple[str, int], size: int, limit: int) -> str:
        """One more, from this peer; why its connection ends."""
        account.too_large += 1
        reason = f"invalid receive (size = {size}{f' larger than {limit}' if size > limit else ''})"
        told_at, told = account.too_large_told
        now = self._clock()
        if not told or now - told_at >= SILENCE_S:
            account.too_large_told = (now, account.too_large)
            whose = f"instance {instance_id_of_key(account.name)}" if account.name else "the cluster itself"
            others = account.too_large - told - 1
            more = f"; {others} more since the last such line" if others else ""
            self._report(f"{whose}: {reason} from {peer[0]}:{peer[1]}, closing connection{more}")
        return reason
