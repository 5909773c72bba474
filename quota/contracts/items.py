"""Documents of many items, ``{"items": [...], "version": 7}``, read and written a few items at a time.

At once, the largest of them (900,000 bytes) would hold an event loop for tens of milliseconds: `json` keeps the GIL, and
making the items costs more than parsing does. Item by item the bytes are the same, since all writers sort keys and leave no
spaces; a document that is written otherwise is parsed at once. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from quota.steps import Steps

T = TypeVar("T")
ITEMS_PER_STEP = 8
"""Of ACLs or users: made or parsed in 50 to 100 microseconds."""
_HEAD = '{"items":['


def read_items(data: bytes, make: Callable[[Mapping[str, Any]], T]) -> Steps[tuple[int, list[T]]]:
    """The version, and what `make` makes of each item. Raises ValueError, KeyError, TypeError and what `make` raises."""
    text = data.decode()
    made: list[T] = []
    at, scan = len(_HEAD) if text.startswith(_HEAD) else 0, json.JSONDecoder().raw_decode
    while at and text.startswith("{", at):
        item, at = scan(text, at)
        made.append(make(item))
        if len(made) % ITEMS_PER_STEP == 0:
            yield None
        if not text.startswith(",{", at):
            break
        at += 1
    if at and text.startswith("]", at):
        return json.loads(_HEAD + text[at:])["version"], made
    document = json.loads(text)  # somebody else's layout: no less good
    return document["version"], (yield from _made(document["items"], make))


def _made(items: Iterable[Mapping[str, Any]], make: Callable[[Mapping[str, Any]], T]) -> Steps[list[T]]:
    made: list[T] = []
    for item in items:
        made.append(make(item))
        if len(made) % ITEMS_PER_STEP == 0:
            yield None
    return made


def item_bytes(document: Mapping[str, Any]) -> bytes:
    """One item."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def joined_items(version: int, items: Iterable[bytes]) -> bytes:
    """The document of these."""
    return b'{"items":[%b],"version":%d}' % (b",".join(items), version)


def size_of_items(count: int, item_sizes: int) -> int:
    """Bytes that such a document takes at most, whatever its version; `item_sizes`: of all together."""
    return len(joined_items(2**63, ())) + item_sizes + max(0, count - 1)
