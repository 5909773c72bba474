"""How far behind groups were a short time ago, as the history has it; and that one is deleted, which the history is told.

The history stands above this package and looks at groups by it, so it says here who is to be asked, and who is told
(`told_by`, `tells`). Without it, or where its minute is not fresh, nothing is known of earlier, and nothing depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Tell = Callable[[str, int, Collection[str] | None], Mapping[str, "Earlier"]]
    """(an instance, the present second, groups; None: all of the instance) -> by group."""

    Hear = Callable[[str, str, int], None]
    """(an instance, a group, the present second) -> None."""

_TELLS: list[Tell] = []
_HEARS: list[Hear] = []


@dataclass(frozen=True, slots=True)
class Earlier:
    """One group at an earlier second. `seconds` None: the age of its oldest unread record is not known."""

    messages: int
    seconds: float | None
    at_s: int


def told_by(tell: Tell) -> None:
    """Have this asked."""
    _TELLS[:] = [tell]


def tells(hear: Hear) -> None:
    """Have this told of groups that are deleted."""
    _HEARS[:] = [hear]


def deleted(instance_id: str, name: str, now_s: int) -> None:
    """A group is not there any more: what the history has of it is of no group that there is."""
    for hear in _HEARS:
        hear(instance_id, name, now_s)


def lags(instance_id: str, now_s: int, names: Collection[str] | None = None) -> Mapping[str, Earlier]:
    """Of these groups of an instance, or of all, those of which there is a fresh minute."""
    return _TELLS[0](instance_id, now_s, names) if _TELLS else {}
