"""Which groups have rebalanced since the round before, or are about it: for events, from rounds a minute apart.

ListGroups, which a round asks anyway, says each group's state: a group that is in the middle of it is seen without a question. Of
the others that have members their coordinator is asked for a mark (`kafka.group_marks`), 50 in a request, and a mark that is not
the one of the look before says that members came, went, or were given other partitions. An empty group costs nothing.

A round asks for MOST_LOOKED marks at most: instances in turn, and of an instance those first that were looked at longest ago. So
in a cluster of more groups with members each is looked at every few minutes, and no instance's groups hold up another's. What
nobody has looked at before has not changed, and after the last member has left there is nothing to rebalance. Several rebalances
between two looks are one, and so is one that lasts longer than a round: it is found by the look that first sees it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from controlplane.core.errors import Unavailable
from controlplane.core.turns import in_turn
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.kafka.group_door import Address, GroupDoor

LOG = logging.getLogger(__name__)
COMING_TO_REST = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
"""States of a rebalance, of the classic protocol and of the consumer protocol."""
WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
MOST_LOOKED = 2_000
"""In a round: 40 requests. A coordinator takes some 12 us for a group and 6 us for a member, by its own account."""
LOOKED_S = 5.0
"""Of each broker."""
FORGOTTEN_S = 3_600
"""After which a look at a group that nobody names any more is given up."""
ANY, NOBODY, MIDDLE = "", "-", "~"
"""Instead of a mark: it did not answer, so that nothing is known of it; nobody was in it; it was in the middle of it.

After ANY and MIDDLE a mark is no change, and after MIDDLE the middle is not either: it is the same rebalance.
"""


class Look(NamedTuple):
    """At a group: its mark, and when that was, in s since 1970."""

    mark: str
    at: int


Looks = dict[str, Look]
"""By physical name."""


def looked(
    door: GroupDoor, listed: Mapping[Address, Mapping[str, str]], before: Mapping[str, Look], now_s: int
) -> tuple[set[str], Looks]:
    """Those that have rebalanced or are about it, by physical name; and the looks for the next round.

    `listed` has states by coordinator and name. A coordinator that does not answer hides its own groups alone.
    """
    found: set[str] = set()
    looks: Looks = {name: look for name, look in before.items() if 0 <= now_s - look.at < FORGOTTEN_S}
    settled: dict[Address, list[str]] = {}
    for address, states in listed.items():
        settled[address] = []
        for name, state in states.items():
            if state in COMING_TO_REST:
                _in_the_middle(name, looks, found, now_s)
            elif state in WITHOUT_MEMBERS:
                looks[name] = Look(NOBODY, now_s)
            else:
                settled[address].append(name)
    for address, names in _chosen(settled, looks).items():
        _compared(door, address, names, looks, found, now_s)
    return found, looks


def _in_the_middle(name: str, looks: Looks, found: set[str], now_s: int) -> None:
    if name not in looks or looks[name].mark != MIDDLE:
        found.add(name)
    looks[name] = Look(MIDDLE, now_s)


def _chosen(settled: Mapping[Address, Sequence[str]], looks: Mapping[str, Look]) -> dict[Address, list[str]]:
    """MOST_LOOKED of them, by their coordinator."""
    at = {name: address for address, names in settled.items() for name in names}
    by_owner: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(at, key=lambda name: (looks[name].at if name in looks else 0, name)):
        by_owner[(split_physical(name) or ("", ""))[0]].append(name)
    chosen: defaultdict[Address, list[str]] = defaultdict(list)
    for name in islice(in_turn(by_owner.values()), MOST_LOOKED):
        chosen[at[name]].append(name)
    return dict(chosen)


def _compared(
    door: GroupDoor, address: Address, names: Sequence[str], looks: Looks, found: set[str], now_s: int
) -> None:
    """Of one coordinator: `looks` and `found` have what it says now.

    They were asked for in this order until the time was over: what stands behind the last answer was not asked, and keeps its
    look, so that it is among the first of the next round. What was asked and has no answer goes to the end of the queue.
    """
    try:
        marks = door.marks(address, names, within_s=LOOKED_S)
    except Unavailable as error:
        LOG.warning("it is not known whether %d groups have rebalanced: %s", len(names), error)
        marks = {}
    asked = max((at for at, name in enumerate(names, 1) if name in marks), default=len(names))
    for name in names[:asked]:
        last = looks[name].mark if name in looks else ANY
        if name not in marks:
            looks[name] = Look(last, now_s)
            continue
        state, mark = marks[name]
        if state in COMING_TO_REST:
            _in_the_middle(name, looks, found, now_s)
        elif state in WITHOUT_MEMBERS:
            looks[name] = Look(NOBODY, now_s)
        else:
            if last not in (ANY, MIDDLE, mark):
                found.add(name)
            looks[name] = Look(mark, now_s)
