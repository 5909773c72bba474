"""How much an instance stores over all brokers, every replica counted, and the fence that goes up when it is full. Pure.

Up when the sum reaches what was bought, down under 97 % of it: between the two it stays as it is.
"""

from __future__ import annotations

from collections.abc import Container

LIFTED_UNDER_PERCENT = 97


class Fences:
    """Of all instances. `used_bytes` and `is_up` are there to be read."""

    def __init__(self) -> None:
        self.used_bytes: dict[str, int] = {}
        self.is_up: dict[str, bool] = {}
        self._stored: dict[str, dict[int, int]] = {}  # bytes by broker, also of those that have left

    def store(self, instance: str, broker: int, size: int) -> None:
        """So much is on the broker."""
        stored = self._stored.setdefault(instance, {})
        self.used_bytes[instance] = self.used_bytes.get(instance, 0) + size - stored.get(broker, 0)
        stored[broker] = size

    def forget(self, instance: str, broker: int) -> bool:
        """Nothing is on the broker. Returns whether none has anything any more."""
        stored = self._stored.get(instance, {})
        size = stored.pop(broker, 0)
        if stored:
            self.used_bytes[instance] -= size
            return False
        self._stored.pop(instance, None)
        self.used_bytes.pop(instance, None)
        return True

    def keep(self, instances: Container[str]) -> None:
        """No fences but of these."""
        for gone in [instance for instance in self.is_up if instance not in instances]:
            del self.is_up[gone]

    def look(self, instance: str, limit: int | None, *, may_fall: bool) -> bool:
        """Against what was bought (None: any number of bytes). Returns whether the fence has moved."""
        used, up = self.used_bytes.get(instance, 0), self.is_up.get(instance, False)
        if limit is None:
            up = False
        elif used >= limit:
            up = True
        elif may_fall and used * 100 < limit * LIFTED_UNDER_PERCENT:
            up = False
        return self.move(instance, up=up)

    def move(self, instance: str, *, up: bool) -> bool:
        """Put it up, or take it down. Returns whether it has moved; a first look always does."""
        moved = self.is_up.get(instance) is not up
        self.is_up[instance] = up
        return moved
