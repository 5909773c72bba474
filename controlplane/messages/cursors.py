"""Where a look goes on, as text for addresses and answers. Pure.

    base64url of JSON: ["older", [[partition, offset], …]], and where there are partitions that no look has been through
    ["older", [[partition, offset], …], since_ms, "base64 of one bit for each partition, the first one first"]

Opaque to callers. One that somebody has made up names offsets like any other: a look stays within what partitions hold.
"""

from __future__ import annotations

import base64
import json

from controlplane.core.errors import Invalid
from controlplane.messages.looking import Direction, Position
from controlplane.messages.window import MOST_PARTITIONS

LONGEST = 8_000
MOST_UNSEEN = 10_000
"""The number of a partition that no look has been through is below this."""
MOST_OFFSET = 2**63 - 1
MOST_TIME = 2**53
BITS = 8


def text_of(position: Position) -> str:
    """The cursor."""
    places = [[partition, offset] for partition, offset in sorted(position.offsets.items())]
    parts: list[object] = [position.direction.value, places]
    if position.unseen:
        parts += [position.since_ms, _bits(position.unseen)]
    document = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def position_of(text: str) -> Position:
    """What a cursor says. Raises Invalid for what is none."""
    try:
        if len(text) > LONGEST:
            raise ValueError(text)  # one sentence for all that is wrong
        direction, places, *rest = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
        offsets = {_number(partition): _number(offset) for partition, offset in places}
        since_ms, bits = rest or (0, "")
        unseen = _numbers(bits)
        if (not offsets and not unseen) or len(offsets) > MOST_PARTITIONS or unseen & offsets.keys():
            raise ValueError(text)
        return Position(Direction(direction), offsets, unseen, _number(since_ms, MOST_TIME))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Invalid.field("cursor", "is not one that this service gave out") from error


def _number(found: object, most: int = MOST_OFFSET) -> int:
    if type(found) is not int or not 0 <= found <= most:
        raise ValueError(found)
    return found


def _bits(numbers: frozenset[int]) -> str:
    octets = bytearray(max(numbers) // BITS + 1)
    for number in numbers:
        octets[number // BITS] |= 1 << number % BITS
    return base64.b64encode(octets).decode()


def _numbers(bits: str) -> frozenset[int]:
    octets = base64.b64decode(bits.encode(), validate=True)
    if len(octets) * BITS > MOST_UNSEEN:
        raise ValueError(bits)
    return frozenset(at * BITS + bit for at, octet in enumerate(octets) for bit in range(BITS) if octet >> bit & 1)
