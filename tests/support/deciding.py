"""Decisions about what is written to ZooKeeper, made where they are asked for."""

from collections.abc import Awaitable, Callable, Mapping

Overrides = Mapping[str, str]


def at_once(make: Callable[[Overrides], Overrides]) -> Callable[[Overrides], Awaitable[Overrides]]:
    """`make`, as `write_config` asks for it."""

    async def decide(before: Overrides) -> Overrides:
        return make(before)

    return decide
