"""The place of one answer among the answers of a connection."""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.doors import Buffer, FileRange

Parts = Sequence[Buffer | FileRange]


class Slot:
    """Empty until the answer is there; what is ready behind it waits."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: Parts | None = None
