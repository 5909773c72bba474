"""What brokers said of requests in the last minute. Pure.

A window is told by each broker that had requests in it, at a moment of its own. Texts are kept as they came, and handed out so:
who asks adds them up, and no report waits for it.

Each broker's clock says when its windows begin, so the newest `KEPT` of each are kept: one whose clock is ahead drives out nobody
else's. A broker tells no window that began more than a minute before its newest: what is known of it that is so much later was
told before its clock was set back, and is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quota.contracts.requests import WINDOW_S

if TYPE_CHECKING:
    from quota.contracts.requests import Windows

KEPT = 6


class RequestBook:
    """Of one mastership."""

    def __init__(self) -> None:
        self._told: dict[int, dict[int, dict[str, str]]] = {}  # by broker, beginning, and instance

    def take(self, broker: int, windows: Windows) -> None:
        """What a report says. What is said twice counts once."""
        told = self._told.setdefault(broker, {})
        for instance, ours in windows.items():
            for at, text in ours.items():
                told.setdefault(at, {})[instance] = text
        oldest = min((at for ours in windows.values() for at in ours), default=0)
        for at in [at for at in told if at >= oldest + KEPT * WINDOW_S]:
            del told[at]
        for old in sorted(told)[:-KEPT]:
            del told[old]

    def texts(self, instance: str, at: int) -> list[str]:
        """Of the window that began at this second: one of each broker that had requests in it."""
        return list(self.by_broker(instance, at).values())

    def by_broker(self, instance: str, at: int) -> dict[int, str]:
        """The same by broker, in their order."""
        found = ((broker, told.get(at, {}).get(instance)) for broker, told in sorted(self._told.items()))
        return {broker: text for broker, text in found if text is not None}
