"""One question to several brokers at the same time: one that hangs costs its own time, and no other's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from controlplane.core.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Asked = TypeVar("Asked")
    Answer = TypeVar("Answer")

MOST_THREADS = 32


def each(ask: Callable[[Asked], Answer], of: Iterable[Asked]) -> dict[Asked, Answer | ClusterUnavailable]:
    """The answers. `ask` has a limit of time of its own, and nothing to do with the database; it may raise ClusterUnavailable."""
    everyone = list(of)
    if not everyone:
        return {}

    def answer(one: Asked) -> Answer | ClusterUnavailable:
        try:
            return ask(one)
        except ClusterUnavailable as error:
            return error

    with ThreadPoolExecutor(min(MOST_THREADS, len(everyone)), thread_name_prefix="brokers") as pool:
        return dict(zip(everyone, pool.map(answer, everyone), strict=True))
