"""What a key may be limited to, and for how long two secrets of one are good. Of the row it looks at attributes alone."""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from ipaddress import IPv6Network, ip_network
from typing import TYPE_CHECKING, Any

from controlplane.accounts.scopes import SCOPES
from controlplane.core.errors import Conflict, FieldProblem, Invalid
from controlplane.core.whitelist import whitelist_parse, whitelist_problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.accounts.models import ApiKey

TOLD_BEFORE = timedelta(days=7)
"""So long before a key expires its owner has a mail."""
SSO_LASTS = timedelta(days=30)
"""So long a key that was made in a session of single sign-on is good after its person has signed in by the provider last. Nobody
tells us whom a provider does not know any more: whoever is out there is out here after that time."""
LONGEST_LIFE = timedelta(days=3660)
ACCESS_KEY_LIFE = timedelta(days=90)
"""Of an access key of which nothing is said: that one is for ever has to be said."""
LONGEST_OVERLAP = timedelta(days=30)
MOST_INSTANCES = 500
_IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
_INSTANCE_ID = re.compile(r"ins-[a-z0-9]{8}")


def checked(
    *,
    scopes: Sequence[str] | None,
    instances: Sequence[str] | None,
    addresses: Sequence[str] | None,
    expires_at: datetime | None,
    now: datetime,
) -> dict[str, Any]:
    """As the row has them: no repeats, addresses in their one spelling. Raises Invalid naming every bad entry."""
    problems = [*_empty(scopes=scopes, instances=instances, addresses=addresses)]
    problems += _unknown("scopes", scopes, set(SCOPES), f"must be one of {', '.join(SCOPES)}")
    for index, each in enumerate(instances or ()):
        if not _INSTANCE_ID.fullmatch(each):
            problems.append(FieldProblem(f"instances.{index}", "must be the id of an instance"))
    if len(instances or ()) > MOST_INSTANCES:
        problems.append(FieldProblem("instances", f"has more than {MOST_INSTANCES}: leave it out for all"))
    problems += whitelist_problems(addresses or (), field="addresses") or _mapped(addresses or ())
    if expires_at is not None and not now < expires_at <= now + LONGEST_LIFE:
        problems.append(FieldProblem("expires_at", "must be to come, and within ten years"))
    if problems:
        raise Invalid(f"{problems[0].field}: {problems[0].detail}", errors=problems)
    return {
        "scopes": None if scopes is None else [each for each in SCOPES if each in scopes],
        "instances": None if instances is None else list(dict.fromkeys(instances)),
        "addresses": None if addresses is None else whitelist_parse(addresses, field="addresses"),
        "expires_at": expires_at,
    }


def expiry_checked(expires_at: datetime | None, now: datetime) -> datetime | None:
    """Raises Invalid beside `expires_at`."""
    if expires_at is not None and not now < expires_at <= now + LONGEST_LIFE:
        raise Invalid.field("expires_at", "must be to come, and within ten years")
    return expires_at


def _empty(**lists: Sequence[str] | None) -> list[FieldProblem]:
    return [
        FieldProblem(name, "would leave the key good for nothing: leave it out for no limit")
        for name, entries in lists.items()
        if entries is not None and not entries
    ]


def _mapped(addresses: Sequence[str]) -> list[FieldProblem]:
    """Whoever calls from an IPv4 address is looked for among IPv4 blocks."""
    blocks = ((index, ip_network(each)) for index, each in enumerate(addresses))
    return [
        FieldProblem(f"addresses.{index}", "is of IPv4 addresses: write it as an IPv4 block such as 10.1.0.0/16")
        for index, block in blocks
        if isinstance(block, IPv6Network) and block.subnet_of(_IPV4_MAPPED)
    ]


def _unknown(field: str, entries: Sequence[str] | None, known: set[str], rule: str) -> list[FieldProblem]:
    return [FieldProblem(f"{field}.{index}", rule) for index, each in enumerate(entries or ()) if each not in known]


def shown(key: ApiKey) -> dict[str, Any]:
    """Its limits as JSON, for the audit trail."""
    expires_at = key.expires_at and key.expires_at.astimezone(UTC).isoformat()
    return {
        "name": key.name,
        "scopes": key.scopes,
        "instances": key.instances,
        "addresses": key.addresses,
        "expires_at": expires_at,
    }


def rotation_check(key: ApiKey, overlap: timedelta, now: datetime) -> None:
    """Whether it can have another secret. Raises Conflict, Invalid."""
    if key.state_at(now) != "active":
        raise Conflict(f"the key is {key.state_at(now)}: make another one", code="key_not_active")
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise Invalid.field("overlap_s", f"must be between 0 and {int(LONGEST_OVERLAP.total_seconds())}")
    if overlap and key.is_rotating_at(now):
        raise Conflict(
            "two secrets of this key are good already: wait until the earlier one has ended, or end both at once with an "
            "overlap of 0",
            code="rotation_under_way",
        )
