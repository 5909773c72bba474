"""What is found: an id, a name, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from django.urls import reverse

from controlplane.cli.segments import segment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing. `url` is its address in REST, or that of the list it stands in; `page` the same in the console."""

    kind: str
    id: str
    name: str
    where: str  # what tells it from others of its name; empty: nothing does
    instance_id: str  # empty: it is the organisation's
    url: str
    page: str


def rest(*segments: str) -> str:
    """An address of REST, names in it as REST takes them."""
    return "/".join((PREFIX, *(quote(segment_of(each), safe="") for each in segments)))


def page(name: str, *ids: object, **query: str) -> str:
    """An address of the console."""
    address = reverse(f"console:{name}", args=ids)
    return f"{address}?{urlencode(query)}" if query else address


def together(texts: Sequence[str]) -> str:
    """Those that are not empty, in one line."""
    return " · ".join(text for text in texts if text)
