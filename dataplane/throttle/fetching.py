"""What one look of a fetch may bring of topics that have a throttle rule."""

from __future__ import annotations

from dataplane.throttle.rules import InstanceRules

WINDOW_S = 1.0
"""A fetch brings at most what a rate gives in this time, so that what it owes afterwards is soon paid."""


class TopicBudget:
    """For one look. `delay_s` is when looking again is worth it: a topic that owes has paid by then; None: none owes."""

    __slots__ = ("_left", "_rules", "delay_s")

    def __init__(self, rules: InstanceRules) -> None:
        self._rules = rules
        self._left: dict[str, int] = {}
        self.delay_s: float | None = None

    def left(self, topic: str) -> int | None:
        """Bytes that may still be read of a topic; None: it has no rule."""
        if topic not in self._left:
            allowed = self._rules.topic_fetch_bytes(topic, WINDOW_S)
            if allowed is None:
                return None
            self._left[topic] = allowed
            if not allowed:
                delay_s = self._rules.topic_fetch_delay(topic)
                self.delay_s = delay_s if self.delay_s is None else min(self.delay_s, delay_s)
        return self._left[topic]

    def took(self, topic: str, size: int) -> None:
        """So much was read of it."""
        if topic in self._left:
            self._left[topic] = max(0, self._left[topic] - size)
