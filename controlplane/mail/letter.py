"""What a mail says, before it has a receiver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail as plain text."""

    subject: str
    body: str
