"""What lists of keys and of members can be asked for by REST: which of them, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db.models import Q, QuerySet

from controlplane.accounts.models import AccessKey, ApiKey
from controlplane.api import filters, pagination, sorting
from controlplane.api.ranges import moment_of
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from datetime import datetime

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from controlplane.tenants.models import Membership

Key = TypeVar("Key", ApiKey, AccessKey)

KEYS_SORTED = {name: name for name in ("name", "created_at", "last_used_at", "expires_at", "revoked_at")}
ACCESS_KEYS_SORTED = KEYS_SORTED
INVITATIONS_SORTED = {name: name for name in ("email", "role", "created_at", "expires_at")}
MEMBERS_SORTED = {"email": "user__email", "name": "user__name", "role": "role"}
"""Where the database has what they are sorted by."""

STATES = ("active", "asleep", "expired", "revoked")


def _key_parameters(states: tuple[str, ...], sorted_by: dict[str, str]) -> list[OpenApiParameter]:
    return [
        filters.text_parameter("name_prefix", "only keys whose names begin so"),
        filters.text_parameter("owner", "only keys of the person with this address"),
        filters.choice_parameter(
            "state",
            states,
            "only keys in this state; asleep: made by single sign-on, and its person has to sign in again",
        ),
        filters.text_parameter(
            "last_used_before",
            "only keys last used before this moment, or never used: RFC 3339 or a date, UTC",
        ),
        sorting.parameter(sorted_by, "created_at"),
        *pagination.PARAMETERS,
    ]


API_KEYS = _key_parameters(STATES, KEYS_SORTED)
OF_ACCOUNT = [parameter for parameter in API_KEYS if parameter.name != "owner"]
"""Of a service account's keys, which have no person."""
ACCESS_KEYS = _key_parameters(STATES, ACCESS_KEYS_SORTED)
INVITATIONS = [sorting.parameter(INVITATIONS_SORTED, "created_at"), *pagination.PARAMETERS]
"""Of the list of invitations."""
MEMBERS = [
    filters.text_parameter("prefix", "only people whose addresses begin so"),
    filters.choice_parameter(
        "role", Role.values, "only people who have this role; of a role of the organisation's own: `custom_role`"
    ),
    filters.text_parameter("custom_role", "only people who have this role of the organisation's own, by its id"),
    sorting.parameter(MEMBERS_SORTED, "email"),
    *pagination.PARAMETERS,
]


def keys_asked(request: Request, rows: QuerySet[Key]) -> QuerySet[Key]:
    """Those of the keys that the address asks for. Raises Invalid."""
    state = filters.choice_of(request, "state", STATES)
    wanted = {
        "name__startswith": filters.text_of(request, "name_prefix"),
        "user__email": filters.text_of(request, "owner").lower(),
    }
    before, now = moment_of(request, "last_used_before"), SYSTEM_CLOCK.now()
    if before is not None:
        rows = rows.filter(Q(last_used_at__lt=before) | Q(last_used_at=None))
    if state:
        rows = rows.filter(_in_state(state, now))
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def _in_state(state: str, now: datetime) -> Q:
    """As `ApiKey.state_at` has it: the first of these that is true says what a key is."""
    revoked, asleep = Q(revoked_at__isnull=False), Q(sso_until__isnull=False, sso_until__lte=now)
    expired = Q(expires_at__isnull=False, expires_at__lte=now)
    return {
        "revoked": revoked,
        "expired": ~revoked & expired,
        "asleep": ~revoked & ~expired & asleep,
        "active": ~revoked & ~expired & ~asleep,
    }[state]


def members_asked(request: Request, rows: QuerySet[Membership]) -> QuerySet[Membership]:
    """Those of the members that the address asks for. Raises Invalid."""
    role = filters.choice_of(request, "role", Role.values)
    wanted = {
        "user__email__startswith": filters.text_of(request, "prefix").lower(),
        "custom_role": filters.text_of(request, "custom_role"),
    }
    if role:
        rows = rows.filter(role=role, custom_role=None)
    return rows.filter(**{name: value for name, value in wanted.items() if value})
