"""What a mirror finds out about messages that may have been copied although no checkpoint says so. Pure.

The target has `there` after the checkpoint; the source has `coming`. As long as both begin with the same messages these were
copied. At the first that differs it ends: from there on all is copied, for what else stands in the target is somebody
else's.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.clients.messages import Message


def copied_already(coming: Sequence[Message], there: Sequence[Message]) -> int:
    """How many of those that come are there."""
    count = 0
    for ours, theirs in zip(coming, there, strict=False):
        if not is_same(ours, theirs):
            break
        count += 1
    return count


def is_same(ours: Message, theirs: Message) -> bool:
    """Time apart: the target may stamp messages itself."""
    return (ours.key, ours.value, ours.headers) == (theirs.key, theirs.value, theirs.headers)
