"""Looking for a text in everything that the caller may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.search.asking import Asker
from controlplane.search.hits import page
from controlplane.search.kinds import BY_NAME, KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.accounts.selectors import Caller
    from controlplane.search.hits import Hit
    from controlplane.search.kinds import Kind
    from controlplane.search.matching import Wanted

OF_EACH = 5
"""Of each kind, where nobody says how many."""
MOST = 50


@dataclass(frozen=True, slots=True)
class Found:
    """Of one kind. `more`: the page with all of them; `is_partial`: not everything was looked at."""

    kind: Kind
    hits: Sequence[Hit]
    has_more: bool
    is_partial: bool
    more: str


def search(
    *,
    caller: Caller,
    wanted: Wanted,
    kind: str = "",
    most: int = OF_EACH,
    here: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> list[Found]:
    """What fits, by kind, the best first; kinds that are not open to the caller are left out. At most `most` of each.

    `kind`: this one alone; raises Forbidden where it is not open. `here`: an instance that is looked through first, whoever's:
    another organisation's makes no difference.
    """
    if kind:
        BY_NAME[kind].admit(caller)
    kinds = [each for each in KINDS if each.name == kind or (not kind and each.is_open(caller))]
    asker = Asker(caller, wanted, most, here, clock)
    return [_looked(asker, each) for each in kinds]


def _looked(asker: Asker, kind: Kind) -> Found:
    asker.is_partial = False
    hits = kind.look(asker)
    org, text = asker.caller.organisation.id, asker.wanted.whole
    has_list = kind.list_page and (kind.name != "instance" or asker.caller.limits.covers("instances", changes=False))
    more = page(kind.list_page, org, q=text) if has_list else page("search", org, q=text, kind=kind.name)
    return Found(kind, hits[: asker.most], len(hits) > asker.most, asker.is_partial, more)
