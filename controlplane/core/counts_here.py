"""Counts in this process alone, for the time in which the cache that all processes share is away.

Each process counts for itself, so that of four as many as four times the limit is let through; nothing is taken off for
that, or a cache that is away would keep people out who have done nothing.

They take so much room and no more. When that is full, those whose window has ended go, and then the half with the fewest
tries: who fills it from many addresses does not bring a count back to nothing that has come near its limit.
"""

from __future__ import annotations

import threading

MOST_KEYS = 10_000


class CountsHere:
    """How often each key was counted. All of its threads share one."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._lock = threading.Lock()
        self._found: dict[str, tuple[int, int]] = {}
        """How many, and until when, in seconds since the epoch."""

    def one_more(self, key: str, *, now_s: int, window_s: int) -> int:
        """How many there are. `key` is to be of one window: it is forgotten after so many seconds of being counted no more."""
        with self._lock:
            count = self._found.get(key, (0, 0))[0] + 1
            if count == 1 and len(self._found) >= self._most_keys:
                self._make_room(now_s)
            self._found[key] = (count, now_s + window_s)
            return count

    def take_back(self, key: str) -> None:
        """One that was counted is none."""
        with self._lock:
            count, until_s = self._found.get(key, (0, 0))
            if count > 1:
                self._found[key] = (count - 1, until_s)
            else:
                self._found.pop(key, None)

    def forget(self, keys: list[str]) -> None:
        """They begin anew."""
        with self._lock:
            for key in keys:
                self._found.pop(key, None)

    def clear(self) -> None:
        """As at the start of the process."""
        with self._lock:
            self._found.clear()

    def __len__(self) -> int:
        return len(self._found)

    def _make_room(self, now_s: int) -> None:
        good = {key: each for key, each in self._found.items() if each[1] > now_s}
        if len(good) >= self._most_keys:
            by_count = sorted(good, key=lambda key: good[key][0])
            for key in by_count[: (len(good) + 1) // 2]:
                del good[key]
        self._found = good
