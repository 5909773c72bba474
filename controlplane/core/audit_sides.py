"""What an entry of the audit trail says of before and after, found in its `detail`. Pure.

======================  =================================================================================================
``{"from", "to"}``      a member that was changed: its value before, and after
the end of what was     the rest of `detail` is what was there before; there is nothing after
a beginning             the rest of `detail` is what was made; there was nothing before
anything else           no members: what `detail` says stands there alone
======================  =================================================================================================

What begins or ends something is known by the last word of the action. Entries are never written anew, so that this is computed
when one is read: the chain knows nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FROM, TO = "from", "to"
MAKES = frozenset({"create", "add", "connect", "write", "passkey_add", "schedule", "produce", "begin"})
"""Last words of actions by which something comes into being."""
ENDS = frozenset({"delete", "remove", "revoke", "destroy", "withdraw", "discard", "disconnect", "unschedule", "forget"})
"""Last words of actions by which something goes."""
ISOLATES = frozenset({"instance.delete", "instance.expire", "organisation.delete"})
"""Called an end, and what they end is there still: it can be restored."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Of one entry. None: there was nothing before, or is nothing after; or nothing was written down of it."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def rows(self) -> list[tuple[str, object, object]]:
        """Each member by its dotted name, with both values. What is on one side alone is None on the other."""
        before, after = _flat(self.before or {}), _flat(self.after or {})
        return [(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])]


def sides(action: str, detail: Mapping[str, Any]) -> Sides:
    """What was before and is after, as far as the entry says."""
    changed = _changes(detail)
    word = action.rpartition(".")[2]
    if action not in ISOLATES and (word in MAKES or word in ENDS):
        whole = {**detail, **changed}
        if word in MAKES:
            return Sides(_said(_side(changed, FROM)), _or_none(_side(whole, TO)))
        return Sides(_or_none(_side(whole, FROM)), _said(_side(changed, TO)))
    if not changed:
        return Sides(None, None)
    return Sides(_side(changed, FROM), _side(changed, TO))


def _changes(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The members of `detail` in which something was changed, those within others included, and nothing else."""
    return {name: kept for name, value in detail.items() if (kept := _kept(value)) is not None}


def _kept(value: Any) -> Any:
    if _is_change(value):
        return value
    if isinstance(value, dict):
        return _changes(value) or None
    if isinstance(value, list) and value and all(map(_is_change, value)):
        return value
    return None


def _is_change(value: Any) -> bool:
    """Of topics, users and the like one may be called `from` and another `to`: what is below them are changes, and no values."""
    if not isinstance(value, dict) or FROM not in value or TO not in value:
        return False
    return not any(isinstance(side, dict) and _changes(side) for side in (value[FROM], value[TO]))


def _side(value: Any, side: str) -> Any:
    """One side of all changes. What says more of a change than its values (of which partition it is) is on both sides."""
    if _is_change(value):
        others = {name: each for name, each in value.items() if name not in (FROM, TO)}
        return {**others, "value": value[side]} if others else value[side]
    if isinstance(value, dict):
        return {name: _side(each, side) for name, each in value.items()}
    if isinstance(value, list):
        return [_side(each, side) for each in value]
    return value


def _said(side: dict[str, Any]) -> dict[str, Any] | None:
    """None where all of it is nothing: so a beginning has nothing before, and an end nothing after."""
    return side if any(value is not None for value in _flat(side).values()) else None


def _or_none(side: dict[str, Any]) -> dict[str, Any] | None:
    return side or None


def _flat(side: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in side.items():
        path = f"{within}.{name}" if within else name
        found |= _flat(value, path) if isinstance(value, dict) and value else {path: value}
    return found


def value_text(value: object) -> str:
    """A value in a line. Not set and empty are two things: a whitelist that is not set lets in whoever may connect."""
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(map(value_text, value)) or "empty"
    if isinstance(value, dict):
        return " ".join(f"{name} {value_text(each)}" for name, each in value.items()) or "empty"
    return str(value) or "empty"


def side_text(side: Mapping[str, Any] | None) -> str:
    """One side in a line, ``partitions: 3; config.retention.ms: 1000``; empty where it is none."""
    return "; ".join(f"{name}: {value_text(value)}" for name, value in _flat(side or {}).items())
