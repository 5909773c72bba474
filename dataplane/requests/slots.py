"""The place of one answer among the answers of a connection."""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.doors import Buffer, FileRange
from dataplane.tenancy.request_figures import Delays

Parts = Sequence[Buffer | FileRange]


class Slot:
    """Empty until the answer is there; what is ready behind it waits.

    Of what request it is, and since when that is here, is noted where it gets its place (`answers.append_slot`).
    """

    __slots__ = ("began_s", "delays", "key", "parts")

    key: int  # of the API
    began_s: float  # monotonic
    delays: Delays | None  # of what waits, or whose client is told to wait

    def __init__(self) -> None:
        self.parts: Parts | None = None

    def waited(self, seconds: float) -> None:
        """It has waited so long for others than the loop."""
        if seconds > 0:
            self.delays = self.delays or Delays()
            self.delays.waited_s += seconds

    def behind(self, now_s: float) -> None:
        """Its answer is there, and one before it is not."""
        self.delays = self.delays or Delays()
        self.delays.since_s = now_s

    def sent(self, now_s: float) -> None:
        """It leaves."""
        if self.delays is not None and self.delays.since_s is not None:
            self.delays.waited_s += max(0.0, now_s - self.delays.since_s)

    def told(self, seconds: float) -> None:
        """Its answer says how long to wait before the next request."""
        if seconds > 0:
            self.delays = self.delays or Delays()
            self.delays.told_s = seconds
