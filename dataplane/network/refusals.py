"""Connections that end because of what came on them, or did not: somebody should be able to learn why.

Requests that are larger than may come, and clients without TLS where it is wanted, or with one that fails.

The client only sees that its connection is gone, so the broker says it: whose it was, the size, and the limit, in Apache
Kafka's words (`InvalidReceiveException`), on standard error. An instance has one line in `SILENCE_S`, which says how many
there were since the one before; all of them are counted (`sluice_master_too_large_requests_total`).
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.network.accounts import Account
from quota.contracts.namespace import instance_id_of_key
from quota.contracts.refused import Refused

SILENCE_S = 10.0
NOT_TLS = "what came is not TLS"
HANDSHAKE_FAILED = "TLS handshake failed"
TOO_MANY_HANDSHAKES = "too many TLS handshakes wait"
IN_CLEAR = ": it looks like TLS, which is not spoken here"
_BECAUSE = (
    (NOT_TLS, Refused.NOT_TLS),
    (HANDSHAKE_FAILED, Refused.HANDSHAKE),
    (TOO_MANY_HANDSHAKES, Refused.RATE),
)
_HANDSHAKE_RECORD = 0x1603
"""How a handshake of TLS begins; read as the length of a request it is one of 350 MiB."""


def oversize(size: int, limit: int) -> str:
    """Why a connection ends on which a request of this size was announced."""
    more = f" larger than {limit}" if size > limit else ""
    return f"invalid receive (size = {size}{more}){IN_CLEAR if size >> 16 == _HANDSHAKE_RECORD else ''}"


def ended_because(reason: str) -> Refused | None:
    """What a tenant is told of a connection that ended so before its first request; None: nothing, its client went away."""
    if reason.endswith(IN_CLEAR):
        return Refused.TLS_IN_CLEAR
    return next((why for words, why in _BECAUSE if reason.startswith(words)), None)


class Refusals:
    """Which accounts have sent requests that are too large, and when each was last reported; one for each loop."""

    __slots__ = ("_clock", "_report")

    def __init__(self, clock: Callable[[], float], report: Callable[[str], None]) -> None:
        self._clock, self._report = clock, report

    def too_large(self, account: Account, peer: tuple[str, int], size: int, limit: int) -> str:
        """One more, from this peer; why its connection ends."""
        account.too_large += 1
        reason = oversize(size, limit)
        account.too_large_told = self._tell(account, peer, reason, account.too_large_told, account.too_large)
        return reason

    def insecure(self, account: Account, peer: tuple[str, int], reason: str) -> str:
        """One more connection that has not become secure, from this peer; why it ends."""
        account.insecure += 1
        account.insecure_told = self._tell(account, peer, reason, account.insecure_told, account.insecure)
        return reason

    def _tell(
        self, account: Account, peer: tuple[str, int], reason: str, last: tuple[float, int], count: int
    ) -> tuple[float, int]:
        """Say it unless that was done a moment ago; when it was said last, and how many there had been."""
        told_at, told = last
        now = self._clock()
        if told and now - told_at < SILENCE_S:
            return last
        whose = f"instance {instance_id_of_key(account.name)}" if account.name else "the cluster itself"
        others = count - told - 1
        more = f"; {others} more since the last such line" if others else ""
        self._report(f"{whose}: {reason} from {peer[0]}:{peer[1]}, closing connection{more}")
        return now, count
