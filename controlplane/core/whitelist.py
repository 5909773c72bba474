"""Whitelists as tenants write them: lists of addresses and CIDR blocks. Pure.

``[]`` is nobody. Everyone is ``0.0.0.0/0`` and ``::/0``, said explicitly. A single address is the block of that one.
A block whose host bits are set (``10.0.0.1/8``) is refused: it is more often a wrong prefix length than a way of
writing the larger network, and guessing the larger one would let strangers in.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

from controlplane.core.errors import FieldProblem, Invalid
from quota.contracts.networks import NO_ZONES, ZONE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

MOST_ENTRIES = 512
"""As CKafka's CreateTopicIpWhiteList."""


def whitelist_parse(cidrs: Sequence[object], *, field: str) -> list[str]:
    """The blocks in their one spelling, without repeats, in the order given. Raises Invalid naming every bad entry."""
    problems = whitelist_problems(cidrs, field=field)
    if problems:
        raise Invalid(f"{field}: {problems[0].detail}", errors=problems)
    return list(dict.fromkeys(str(ip_network(str(entry))) for entry in cidrs))


def whitelist_problems(cidrs: Sequence[object], *, field: str) -> list[FieldProblem]:
    """What is wrong with a list as a whole, or with each of its entries."""
    if len(cidrs) > MOST_ENTRIES:
        return [FieldProblem(field, f"has {len(cidrs)} entries; at most {MOST_ENTRIES} are allowed")]
    found = ((index, _problem(entry)) for index, entry in enumerate(cidrs))
    return [FieldProblem(f"{field}.{index}", problem) for index, problem in found if problem]


def whitelist_widens(now: Sequence[str] | None, wanted: Sequence[str] | None) -> bool:
    """Whether `wanted` names a block that none of `now` holds. None: whoever the wider list lets in, so nothing is wider."""
    if now is None or wanted is None:
        return now is not None and wanted is None
    held = [ip_network(block) for block in now]
    return not all(any(_holds(block, ip_network(each)) for block in held) for each in wanted)


def _holds(block: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return block.version == other.version and other.subnet_of(block)  # type: ignore[arg-type]


def _problem(entry: object) -> str | None:
    if not isinstance(entry, str):
        return "must be a string such as 10.1.0.0/16"
    address, slash, length = entry.partition("/")
    if slash and not (length.isascii() and length.isdigit()):
        return f"{entry!r}: what follows the slash must be a prefix length"
    if ZONE in address:
        return f"{entry!r}: {NO_ZONES}"
    try:
        ip_network(entry)
    except ValueError:
        try:
            wider = ip_network(entry, strict=False)
        except ValueError:
            return f"{entry!r} is neither an IPv4 nor an IPv6 block"
        return f"{entry!r} has bits set beyond its prefix; did you mean {wider}?"
    return None
