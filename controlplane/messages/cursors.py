"""Where a look goes on, as text for addresses and answers: base64url of JSON, ``["older", [[partition, offset], …]]``. Pure.

Opaque to callers. One that somebody has made up names offsets like any other: a look stays within what partitions hold.
"""

from __future__ import annotations

import base64
import json

from controlplane.core.errors import Invalid
from controlplane.messages.looking import Direction, Position

MOST_PARTITIONS = 100
"""What one look may go through, or a cursor would be too long for an address."""
LONGEST = 8_000
MOST_OFFSET = 2**63 - 1


def text_of(position: Position) -> str:
    """The cursor."""
    places = [[partition, offset] for partition, offset in sorted(position.offsets.items())]
    document = json.dumps([position.direction.value, places], separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def position_of(text: str) -> Position:
    """What a cursor says. Raises Invalid for what is none."""
    try:
        if len(text) > LONGEST:
            raise ValueError(text)  # one sentence for all that is wrong
        direction, places = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
        offsets = {_number(partition): _number(offset) for partition, offset in places}
        if not offsets or len(offsets) > MOST_PARTITIONS:
            raise ValueError(text)
        return Position(Direction(direction), offsets)
    except (ValueError, TypeError, RecursionError) as error:
        raise Invalid.field("cursor", "is not one that this service gave out") from error


def _number(found: object) -> int:
    if type(found) is not int or not 0 <= found <= MOST_OFFSET:
        raise ValueError(found)
    return found
