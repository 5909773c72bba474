"""What an entry of the audit trail says of before and afterwards. Pure.

An entry's `detail` has changes as ``{"partitions": {"from": 60, "to": 90}}`` (`audit.changed`), perhaps within another member
(`config`), and beside them what was asked for: of a new topic its shape, of a deletion what went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHANGE = {"from", "to"}
_TAKES_AWAY = ("delete", "remove", "revoke", "withdraw", "discard", "disconnect", "expire", "forget")
"""Last words of actions after which the thing is not there any more."""

Sides = tuple[dict[str, Any] | None, dict[str, Any] | None]


def sides(action: str, detail: Mapping[str, Any]) -> Sides:
    """By member what was there before, and what is afterwards; None: the entry says nothing of that side."""
    before, after = _parted(detail)
    if action.rpartition(".")[2] in _TAKES_AWAY:
        before, after = {**after, **before}, {name: value for name, value in after.items() if name in before}
    return before or None, after or None


def _parted(detail: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for name, value in detail.items():
        if isinstance(value, dict) and value.keys() == _CHANGE:
            before[name], after[name] = value["from"], value["to"]
        elif isinstance(value, dict) and value:
            was, becomes = _parted(value)
            if was:
                before[name] = was
            after[name] = becomes
        else:
            after[name] = value
    return before, after
