"""Tokens of SASL without a header around them, as clients send them that said SaslHandshake version 0 (KIP-43).

Until such an exchange is over every frame is one, and nothing else may be read from it. It stands where the short cuts stand
then, so that a connection that has logged in is not asked for each frame whether it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext


class RawTokens:
    """Takes every frame of a connection, whatever it looks like."""

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def serve(self, frame: memoryview) -> bool:
        """As the short cuts: it is dealt with."""
        self._take(bytes(frame))
        return True

    def remember(self, ctx: RequestContext, request: Any, frame: memoryview) -> None:
        """Never called: no request comes meanwhile."""
