"""Regular expressions of subscriptions: RE2, which takes time in proportion to its text, over the instance's own topics only.

A pattern is the tenant's: it is matched, as a whole, with the tenant's names. Matching goes in steps. What may take memory is
bounded by RE2 itself, and by a length that no subscription has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

from dataplane.groups.consumer.model import Matched
from dataplane.records.steps import Pace
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.records.steps import Steps

LONGEST_PATTERN = 1_000
_MEMORY = 2**20
"""RE2 refuses a pattern that would need more: it is compiled within a turn."""
_TOPIC_US = 3
_INSTRUCTION_NS = 12
"""Of a compiled pattern, at each character: where its states are too many to be remembered, RE2 follows all of them."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


_OPTIONS = _options()


def compiled(pattern: str) -> Any | None:
    """None: it is none that RE2 knows, or too large."""
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error:
        return None


def cost_us(pattern: Any, name: str) -> int:
    """What it takes to match a name, at worst: a thousand times what most patterns take."""
    instructions: int = pattern.programsize
    return _TOPIC_US + instructions * len(name) * _INSTRUCTION_NS // 1_000


def matching(pattern: Any, topics: Sequence[str], sees: Callable[[str], bool], now_ms: int) -> Steps[Matched]:
    """The topics that match, of those that the member may know of."""
    pace = Pace()
    found = []
    for physical in topics:
        owner = split_physical(physical)
        name = physical if owner is None else owner[1]
        if pace.over(cost_us(pattern, name)):
            yield None
        if pattern.fullmatch(name) and sees(physical):
            found.append(physical)
    return Matched(tuple(found), now_ms)
