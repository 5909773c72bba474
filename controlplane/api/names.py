"""Names in addresses that stand there as they are, though they hold a "/": what cannot be told from them is refused.

A server sees `groups/x%2Ftopics%2Ft` and `groups/x/topics/t` alike: a group of that name, or a topic of the group x. Reading
takes the longer address. A call that changes something does not guess (`cli.segments` has the other way to write a name).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.cli.segments import MARK, marked
from controlplane.core.errors import Conflict, Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request


def refuse_plain(request: Request, field: str, name: str, *, after: str) -> None:
    """Raises Invalid where a name with a "/" stands as it is after this segment of the address."""
    if "/" in name and f"/{after}/{name}" in request.path:
        raise Invalid.field(field, f'in this address a name with a "/" is written in base64url: {marked(name)}')


def stands_plain(request: Request, *, after: str) -> bool:
    """Whether what follows this segment of the address may be another name, with a "/" in it."""
    _, _, rest = request.path.partition(f"/{after}/")
    return not rest.startswith(MARK)


def ambiguous(group: str, longer: str) -> Conflict:
    """What is said where there is a group whose name is the rest of the address."""
    return Conflict(
        f"there is a group {longer} as well, and this address may mean either: write it as {marked(longer)}, or the group "
        f"{group} as {marked(group)}",
        code="ambiguous_address",
    )
