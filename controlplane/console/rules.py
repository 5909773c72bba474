"""Throttle rules in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from controlplane.console.wording import filled
from quota.contracts.rules import RuleKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quota.contracts.rules import ThrottleRule

MOST_NAMES = 12
"""A rule may name a thousand; its own page has them all."""
EACH = "*"
"""As names are typed: each that no nearer rule names."""
_LINE_END = re.compile("\r\n|\r|\n")
"""What a browser shows as one. `str.splitlines` knows more of them, which names of clients may hold."""


def whom(rule: ThrottleRule) -> str:
    """Whom a rule is for: "Topics orders, payments"; "Clients: user ann, each client"."""
    if rule.kind is RuleKind.TOPIC:
        return filled("Topics {names}", names=_named(rule.topics))
    if rule.kind is RuleKind.GROUP:
        return filled("Groups {names}", names=_named(rule.groups))
    parts = [_clients("user", rule.users), _clients("client", rule.clients)]
    return filled("Clients: {names}", names=", ".join(part for part in parts if part))


def _clients(kind: str, names: Sequence[str | None]) -> str:
    if not names:
        return ""
    if None in names:
        return filled("each user") if kind == "user" else filled("each client")
    shown = _named([name for name in names if name is not None])
    return filled("user {names}", names=shown) if kind == "user" else filled("client {names}", names=shown)


def _named(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:MOST_NAMES]), len(names) - MOST_NAMES
    return filled("{shown} and {more} more", shown=shown, more=more) if more > 0 else shown


def as_lines(names: Sequence[str | None], *, takes_each: bool) -> str | None:
    """Names as they are typed, one a line; None where they could not be read from that again."""
    text = "\n".join(EACH if name is None else name for name in names)
    # A browser shows, and sends, another letter in place of NUL.
    return text if "\0" not in text and from_lines(text, takes_each=takes_each) == list(names) else None


def from_lines(text: str, *, takes_each: bool) -> list[str | None]:
    """What was typed. Empty lines, and spaces around a name, do not count. `EACH` is None, or else a name like any other."""
    lines = [line.strip() for line in _LINE_END.split(text)]
    return [None if takes_each and line == EACH else line for line in lines if line]
