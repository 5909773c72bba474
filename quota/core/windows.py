"""What brokers said of requests in the last minute, and what it comes to over all of them. Pure.

A window is told by each broker that had requests in it, at a moment of its own. It is added up when somebody asks: then, as a
rule, all have told it, and most of what is heard is asked for once. Texts are kept as they came.

Each broker's clock says when its windows begin, so the newest `KEPT` of each are kept: one whose clock is ahead drives out nobody
else's. A broker tells no window that began more than a minute before its newest: what is known of it that is so much later was
told before its clock was set back, and is forgotten.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from quota.contracts.instance import ContractError
from quota.contracts.requests import WINDOW_S, RequestCounts

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

    def since(self, instance: str, after: int) -> dict[int, str]:
        """By the beginning of each window that begins later than this. A text that nobody understands is left out."""
        texts: dict[int, list[str]] = {}
        for _, told in sorted(self._told.items()):
            for at, ours in told.items():
                if at > after and instance in ours:
                    texts.setdefault(at, []).append(ours[instance])
        return {at: some[0] if len(some) == 1 else _sum(some) for at, some in texts.items()}


def _sum(texts: list[str]) -> str:
    found = RequestCounts()
    for text in texts:
        with suppress(ContractError):
            found.add(RequestCounts.from_text(text))
    return found.to_text()
