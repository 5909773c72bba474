"""Which codecs requests want first, and making all of them before anybody does.

A codec is compiled when it is first used, which takes up to 3 milliseconds (of all: 0.5 s, and 6 MB). Whoever sent the first
request of an API and version would have paid for it, and everybody would have waited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.codec import SHORT_ELEMENTS, encoder, short_decoder
from dataplane.requests.turnstile import PRODUCE
from dataplane.slices import INTERNAL

if TYPE_CHECKING:
    from dataplane.doors import Loop
    from dataplane.handlers.table import Handler
    from dataplane.protocol.codec import Decoder
    from dataplane.records.steps import Steps
    from dataplane.slices import Slices

SHORT_PRODUCE_ELEMENTS = 32
"""More topics and batches than these will not be taken in a slice: 30 us each, and 10 to 15 for the write to a log."""

AFTER_START_S = 5.0
"""By then a broker has been told what it leads, which is taken in the same slices."""


def decoder_of(row: Handler, version: int) -> Decoder:
    """Of requests that are short; ManyElementsError for others."""
    most = SHORT_PRODUCE_ELEMENTS if row.api.key == PRODUCE else SHORT_ELEMENTS
    return short_decoder(row.api.request, version, most)


def make_beforehand(loop: Loop, slices: Slices) -> None:
    """Have all of them made, some time after the start."""

    def make() -> None:
        slices.run(INTERNAL, made_beforehand())

    loop.call_later(AFTER_START_S, make)


def made_beforehand() -> Steps[None]:
    """Of every API and version that is served: those of short requests, and those of their answers, one in each step."""
    for row in HANDLERS.values():
        for version in range(row.high, row.low - 1, -1):
            decoder_of(row, version)
            yield None
            encoder(row.api.response, version)
            yield None
