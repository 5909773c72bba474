"""The place of one answer among the answers of a connection."""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.doors import Buffer, FileRange
from dataplane.tenancy.request_figures import Delays

Parts = Sequence[Buffer | FileRange]


Asked = tuple[int, float]
"""The key of the API, and the moment at which the request was here, by the monotonic clock. Those that came together share it."""


class Slot:
    """Empty until the answer is there; what is ready behind it waits.

    Of what request it is, is noted where it gets its place (`answers.append_slot`); what waits, or whose client is told to, has
    `Delays` of its own instead.
    """

    __slots__ = ("asked", "parts")

    asked: Asked | Delays

    def __init__(self) -> None:
        self.parts: Parts | None = None

    def waited(self, seconds: float) -> None:
        """It has waited so long for others than the loop."""
        if seconds > 0:
            self._delays().waited_s += seconds

    def waited_until(self, now_s: float) -> None:
        """It has waited for others from its beginning."""
        delays = self._delays()
        delays.waited_s = now_s - delays.began_s

    def behind(self, now_s: float) -> None:
        """Its answer is there, and one before it is not."""
        self._delays().since_s = now_s

    def told(self, seconds: float) -> None:
        """Its answer says how long to wait before the next request."""
        if seconds > 0:
            self._delays().told_s = seconds

    def _delays(self) -> Delays:
        asked = self.asked
        if isinstance(asked, tuple):
            asked = self.asked = Delays(*asked)
        return asked
