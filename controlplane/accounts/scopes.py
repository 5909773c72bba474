"""What an API key may do within the role of its owner: scopes by kind of action, and the instances that it knows. Pure.

A key without scopes may do whatever its owner may. With scopes it does what these name and no more:

========== ===================================================================================================
scope      what a key with it does
========== ===================================================================================================
read       looks at everything but messages, costs, audit trails, members and keys; changes nothing
instances  makes, changes and deletes instances: sizes, configuration, throttle rules, scheduled changes, paying in advance
topics     topics, consumer groups, transactions
messages   what stands in topics: looking, sending, deleting, loading into a lake
access     whitelists, routes, certificates, users, ACLs, token issuers
alarms     alarms and those who are told
billing    costs, bills, invoices, credit notes, budgets, the price plan
audit      the audit trail of the organisation, and what brokers write down of an instance's clients
members    who belongs to the organisation: members, their roles, invitations. It is administrative: who may bring in an owner
           has whatever an owner has
========== ===================================================================================================

A scope includes looking at what it changes. One table says to which scope an address of REST belongs; what is in none of its
lines (keys themselves, single sign-on, what operators of the service do) asks for a key without limits, so that an endpoint
that somebody forgets here is closed. A key that makes keys would make one that may do more than itself; for the same reason one
that is bound to addresses or to a time makes, rotates and revokes none, brings nobody in, and does not say who signs people in:
whoever has stolen it would be free of both.

A key of some instances finds these alone. What concerns the organisation as a whole is not for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

READ, INSTANCES, TOPICS, MESSAGES = "read", "instances", "topics", "messages"
ACCESS, ALARMS, BILLING, AUDIT, MEMBERS = "access", "alarms", "billing", "audit", "members"
SCOPES = (READ, INSTANCES, TOPICS, MESSAGES, ACCESS, ALARMS, BILLING, AUDIT, MEMBERS)
NOT_BY_READING = frozenset({MESSAGES, BILLING, AUDIT, MEMBERS})
"""To look at these takes their own scope."""
ANY = "any"
"""Any key at all: whom it speaks for."""

GUARDS = frozenset({"allow_everyone_if_no_acl_found", "super_users", "audit"})
"""Members of an instance's configuration that say who may do what, or whether it is written down: they take `access`, too."""

PREFIX = "api/v1/"
_INSTANCE = "instances/<id:instance_id>"
_TOPIC = f"{_INSTANCE}/topics/<str:topic>"
BY_ADDRESS = (
    ("me", ANY),
    ("operations/<id:operation_id>", ANY),  # whoever has begun something sees what becomes of it
    ("operations", READ),
    ("caps", READ),
    ("prepaid-price", READ),
    ("zones", READ),
    ("metrics", READ),
    ("audit", AUDIT),
    ("audit.csv", AUDIT),
    ("members", MEMBERS),
    ("invitations", MEMBERS),
    ("budgets", BILLING),
    ("plan", BILLING),
    ("cost", BILLING),
    ("invoices", BILLING),
    ("credit-notes", BILLING),
    ("statement", BILLING),
    (f"{_TOPIC}/messages", MESSAGES),
    (f"{_TOPIC}/schemas", MESSAGES),
    (f"{_TOPIC}/delete-records", MESSAGES),
    (f"{_TOPIC}/whitelist", ACCESS),
    (f"{_INSTANCE}/topics", TOPICS),
    (f"{_INSTANCE}/topic-configs", TOPICS),
    (f"{_INSTANCE}/groups", TOPICS),
    (f"{_INSTANCE}/transactions", TOPICS),
    (f"{_INSTANCE}/mirrors", TOPICS),
    (f"{_INSTANCE}/lake-loads", MESSAGES),  # they take messages elsewhere
    (f"{_INSTANCE}/lake-tables", MESSAGES),
    (f"{_INSTANCE}/hanging-transactions", TOPICS),
    (f"{_INSTANCE}/whitelist", ACCESS),
    (f"{_INSTANCE}/routes", ACCESS),
    (f"{_INSTANCE}/ca", ACCESS),
    (f"{_INSTANCE}/users", ACCESS),
    (f"{_INSTANCE}/acls", ACCESS),
    (f"{_INSTANCE}/access-check", ACCESS),
    (f"{_INSTANCE}/proposal", ACCESS),
    (f"{_INSTANCE}/token-issuers", ACCESS),
    (f"{_INSTANCE}/audit", AUDIT),
    (f"{_INSTANCE}/alarms", ALARMS),
    (f"{_INSTANCE}/receivers", ALARMS),
    (f"{_INSTANCE}/events", ALARMS),
    (f"{_INSTANCE}/bill", BILLING),
    (f"{_INSTANCE}/cost", BILLING),
    (f"{_INSTANCE}/what-if", BILLING),
    (f"{_INSTANCE}/prometheus", READ),  # it names groups
    (f"{_INSTANCE}/limits", None),  # operators of the service decide it
    ("instances", INSTANCES),
)
"""Beginnings of addresses as controlplane/urls.py writes them: the first that fits decides."""
NOT_WHEN_BOUND = ("api-keys", "access-keys", "members", "invitations", "sso")
"""What a key that is bound to addresses or to a time does not change."""
_NEEDS_ANOTHER = "this needs an API key without limits"
OF_SOME_INSTANCES = ("me", "instances", "operations", "metrics")
"""What has no instance in its address and yet is for a key of some instances: it is shown what belongs to these."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one key. None: no limit of this kind."""

    scopes: frozenset[str] | None = None
    instances: frozenset[str] | None = None
    is_bound: bool = False  # to addresses, or to a time

    @property
    def is_none(self) -> bool:
        """Whether the key may do whatever its owner may, but for keys and members where it is bound."""
        return self.scopes is None and self.instances is None

    def has(self, scope: str) -> bool:
        """Whether the scope is among its own."""
        return self.scopes is None or scope in self.scopes

    def admit(self, route: str, ids: Mapping[str, object], *, changes: bool) -> None:
        """Whether it may make this call: `route` as urls.py has it, `ids` from the address. Raises Forbidden, NotFound."""
        text = route.removeprefix(PREFIX)
        if self.is_bound and changes and any(_begins(text, each) for each in NOT_WHEN_BOUND):
            raise Forbidden(_NEEDS_ANOTHER, code="whole_key_needed")
        if self.is_none:
            return
        scope = scope_of(text)
        if scope is None:
            raise Forbidden(_NEEDS_ANOTHER, code="whole_key_needed")
        if not self._covers(scope, changes=changes):
            needed = scope if changes or scope in NOT_BY_READING else READ
            raise Forbidden(f"this API key may not do that: it needs the scope {needed}", code="scope_needed")
        if self.instances is None:
            return
        instance_id = ids.get("instance_id")
        if instance_id is None and (changes or not any(_begins(text, each) for each in OF_SOME_INSTANCES)):
            raise Forbidden("this API key is for some instances alone", code="instances_limited")
        if instance_id is not None and instance_id not in self.instances:
            raise NotFound(f"no instance {instance_id}")

    def admit_config(self, config: Collection[str]) -> None:
        """Whether it may set these members of an instance's configuration. Raises Forbidden."""
        guards = sorted(GUARDS.intersection(config))
        if guards and not self.has(ACCESS):
            raise Forbidden(f"this API key may not set {guards[0]}: it needs the scope {ACCESS}", code="scope_needed")

    def _covers(self, scope: str, *, changes: bool) -> bool:
        if scope == ANY or self.has(scope):
            return True
        return not changes and scope not in NOT_BY_READING and self.has(READ)


NO_LIMITS = Limits()


def scope_of(text: str) -> str | None:
    """The scope of an address, without the prefix; None: a key with scopes never comes there."""
    return next((scope for beginning, scope in BY_ADDRESS if _begins(text, beginning)), None)


def _begins(text: str, beginning: str) -> bool:
    return text == beginning or text.startswith(f"{beginning}/")
