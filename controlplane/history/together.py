"""What several questions of one page need alike is read once."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

T = TypeVar("T")
_KNOWN: ContextVar[dict[Hashable, Any] | None] = ContextVar("known", default=None)


@contextmanager
def asked_together() -> Iterator[None]:
    """Questions within are of one moment, and change nothing."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def once(key: Hashable, read: Callable[[], T]) -> T:
    """What `read` answered the first time, of questions that are asked together; outside of these, what it answers now."""
    known = _KNOWN.get()
    if known is None:
        return read()
    if key not in known:
        known[key] = read()
    found: T = known[key]
    return found
