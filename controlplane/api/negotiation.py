"""Content negotiation: there is one representation, so there is nothing to negotiate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.negotiation import DefaultContentNegotiation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request


class AlwaysJSON(DefaultContentNegotiation):
    """Answers JSON whatever Accept says; choosing a parser by Content-Type is as usual."""

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        del request, format_suffix
        return renderers[0], renderers[0].media_type or "application/json"
