"""What the topic's schemas make of messages: for a page that shows it, and for a look that seeks text in it.

Both have an `Allowance` of work of their own. A page says of what it has no room for that there was none. A look must not take
for unfit what it has not read: it asks first whether there is room for whatever a message may be, and ends where there is none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controlplane.schemas.decoding import LARGEST_BYTES, Part
from controlplane.schemas.values import MOST_OF_ONE, Allowance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.kafka.message_door import Message
    from controlplane.schemas.decoding import Decoder, Unusable
    from controlplane.schemas.values import Decoded

    Decoders = Mapping[Part, Decoder | Unusable]


def decoded(message: Message, decoders: Decoders, allowance: Allowance) -> dict[Part, Decoded]:
    """By part, without those that have no schema or are null."""
    found = {part: decoder.decode(_content(message, part), allowance) for part, decoder in decoders.items()}
    return {part: each for part, each in found.items() if each is not None}


class BySchema:
    """A `looking.Reading`, of one look."""

    def __init__(self, decoders: Decoders, allowance: Allowance | None = None) -> None:
        self._decoders, self._allowance = decoders, allowance or Allowance()

    def has_room_for(self, message: Message) -> bool:
        """See looking.Reading. A whole allowance has room for the largest key and value."""
        sizes = [len(_content(message, part) or b"") for part in self._decoders]
        size = sum(each for each in sizes if each <= LARGEST_BYTES)  # what is larger is not read
        return self._allowance.left >= MOST_OF_ONE * len(sizes) and self._allowance.bytes_left >= size

    def key(self, message: Message) -> str:
        """See looking.Reading."""
        return self._text(message, Part.KEY)

    def value(self, message: Message) -> str:
        """See looking.Reading."""
        return self._text(message, Part.VALUE)

    def _text(self, message: Message, part: Part) -> str:
        decoder = self._decoders.get(part)
        found = None if decoder is None else decoder.decode(_content(message, part), self._allowance)
        if found is None or found.problem is not None:
            return ""
        return json.dumps(found.value, ensure_ascii=False)


def _content(message: Message, part: Part) -> bytes | None:
    return message.key if part is Part.KEY else message.value
