"""What an API key may do within the role of its owner: scopes by kind of action, and the instances that it knows. Pure.

A key without scopes may do whatever its owner may. With scopes it does what these name and no more:

========== ===================================================================================================
scope      what a key with it does
========== ===================================================================================================
read       looks at everything but messages, costs, audit trails, members and keys; changes nothing
instances  makes, changes and deletes instances: sizes, configuration, throttle rules, scheduled changes, paying in advance
topics     topics, consumer groups, transactions
messages   what stands in topics: looking, sending, deleting, loading into a lake; what stands in `__sluice_audit` takes `audit`
           beside it
access     whitelists, routes, certificates, users, ACLs, token issuers
alarms     alarms and those who are told
billing    costs, bills, invoices, credit notes, budgets, the price plan; costs by topic take looking at `topics` beside it, and
           by user at `access`
audit      the audit trail of the organisation, and what brokers write down of an instance's clients
members    who belongs to the organisation: members, their roles, invitations. It is administrative: who may bring in an owner
           has whatever an owner has
========== ===================================================================================================

Three of them are made of parts, for whoever is to change some of it and not all (`PARTS`). The whole is all of its parts, so that
what was given as `topics` goes on meaning everything about topics:

================== ===========================================================================================
part               what a key with it does
================== ===========================================================================================
instances_create   makes instances
instances_change   changes them: sizes, configuration, throttle rules, scheduled changes; takes a deletion back
instances_delete   deletes instances
topics_change      makes and changes topics, and ends transactions. A shorter retention deletes records, too
topics_delete      deletes topics
groups             consumer groups: moves their offsets, makes and deletes them, removes members
messages_send      sends messages, and says how they are written (schemas)
messages_delete    deletes records, and tables of loads that have been deleted
messages_load      loads topics into a lake, and stops and deletes loads
================== ===========================================================================================

A scope, or a part, includes looking at what the whole is about. One table says to which scope an address of REST belongs, and
another to which part of it a change there (`part_of`); what is in none of its
lines (keys themselves, single sign-on, what operators of the service do) asks for a key without limits, so that an endpoint
that somebody forgets here is closed. A key that makes keys would make one that may do more than itself; for the same reason one
that is bound to addresses or to a time makes, rotates and revokes none, brings nobody in, does not say who signs people in, and
does not rename, hand over or delete the organisation: whoever has stolen it would be free of both. Nor does any key of a
service account.

A role of an organisation's own (`of_role`) is made of the same scopes, each to look or to change, and asked by the same table. It
opens no scope of its own: whoever has it makes keys for themselves, which do what the role and the key both allow (`both`).

Operators and billing, two of the roles that every organisation has, are made of scopes as well (`BUILT_IN`). Billing changes
what no role of an organisation's own may: budgets and the price plan.

A key of some instances finds these alone. What concerns the organisation as a whole is not for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import Forbidden, NotForCaller
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

READ, INSTANCES, TOPICS, MESSAGES = "read", "instances", "topics", "messages"
ACCESS, ALARMS, BILLING, AUDIT, MEMBERS = "access", "alarms", "billing", "audit", "members"
INSTANCES_CREATE, INSTANCES_CHANGE, INSTANCES_DELETE = "instances_create", "instances_change", "instances_delete"
TOPICS_CHANGE, TOPICS_DELETE, GROUPS = "topics_change", "topics_delete", "groups"
MESSAGES_SEND, MESSAGES_DELETE, MESSAGES_LOAD = "messages_send", "messages_delete", "messages_load"
PARTS: Mapping[str, tuple[str, ...]] = {
    INSTANCES: (INSTANCES_CREATE, INSTANCES_CHANGE, INSTANCES_DELETE),
    TOPICS: (TOPICS_CHANGE, TOPICS_DELETE, GROUPS),
    MESSAGES: (MESSAGES_SEND, MESSAGES_DELETE, MESSAGES_LOAD),
}
"""Of the scopes that can be had in parts. All of its parts are the whole."""
WHOLE_OF: Mapping[str, str] = {part: whole for whole, parts in PARTS.items() for part in parts}
_WHOLES = (READ, INSTANCES, TOPICS, MESSAGES, ACCESS, ALARMS, BILLING, AUDIT, MEMBERS)
SCOPES = tuple(scope for whole in _WHOLES for scope in (whole, *PARTS.get(whole, ())))
"""All, in the order in which they are shown: each whole before its parts."""
NOT_BY_READING = frozenset({MESSAGES, BILLING, AUDIT, MEMBERS})
"""To look at these takes their own scope."""
ANY = "any"
"""Any key at all: whom it speaks for."""
NAMES = "names"
"""No scope of a key: names and ids of instances are for whoever may do anything at one, so that they find their way to it."""

GUARDS = frozenset({"allow_everyone_if_no_acl_found", "super_users", "audit"})
"""Members of an instance's configuration that say who may do what, or whether it is written down: they take `access`, too."""

PREFIX = "api/v1/"
_INSTANCE = "instances/<id:instance_id>"
_TOPIC = f"{_INSTANCE}/topics/<str:topic>"
BY_ADDRESS = (
    ("me", ANY),
    ("search", ANY),  # it leaves out what the caller may not look at, kind by kind
    ("instance-names", NAMES),
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
    (f"{_INSTANCE}/snippets", ACCESS),  # what they say are routes
    (f"{_INSTANCE}/ca", ACCESS),
    (f"{_INSTANCE}/users", ACCESS),
    (f"{_INSTANCE}/acls", ACCESS),
    (f"{_INSTANCE}/access-check", ACCESS),
    (f"{_INSTANCE}/proposal", ACCESS),
    (f"{_INSTANCE}/token-issuers", ACCESS),
    (f"{_INSTANCE}/audit", AUDIT),
    (f"{_INSTANCE}/alarms", ALARMS),
    (f"{_INSTANCE}/receivers", ALARMS),
    (f"{_INSTANCE}/silence", ALARMS),
    (f"{_INSTANCE}/events", ALARMS),
    (f"{_INSTANCE}/bill", BILLING),
    (f"{_INSTANCE}/cost", BILLING),
    (f"{_INSTANCE}/what-if", BILLING),
    (f"{_INSTANCE}/prometheus", READ),  # it names groups
    (f"{_INSTANCE}/limits", None),  # operators of the service decide it
    ("instances", INSTANCES),
)
"""Beginnings of addresses as controlplane/urls.py writes them: the first that fits decides."""
PART_BY_ADDRESS = (
    (f"{_INSTANCE}/groups", GROUPS),
    (f"{_TOPIC}/delete-records", MESSAGES_DELETE),
    (f"{_INSTANCE}/lake-tables", MESSAGES_DELETE),
    (f"{_INSTANCE}/lake-loads", MESSAGES_LOAD),
)
"""Beginnings of addresses whose changes are another part than their scope's most (`_MOST`)."""
_PART_AT = {
    ("instances", False): INSTANCES_CREATE,
    (_INSTANCE, True): INSTANCES_DELETE,
    (f"{_INSTANCE}/destroy", False): INSTANCES_DELETE,
    (_TOPIC, True): TOPICS_DELETE,
}
"""The same of these addresses alone, by whether the method is DELETE."""
_MOST = {INSTANCES: INSTANCES_CHANGE, TOPICS: TOPICS_CHANGE, MESSAGES: MESSAGES_SEND}
BESIDE = ((f"{_INSTANCE}/cost/topics", TOPICS), (f"{_INSTANCE}/cost/users", ACCESS))
"""What these take as well, since they name what that scope is about."""
LOOK, CHANGE = "look", "change"
CHANGING = tuple(each for each in SCOPES if WHOLE_OF.get(each, each) in (INSTANCES, TOPICS, MESSAGES, ACCESS, ALARMS))
"""Scopes that a role may change, and parts of them. What the others change (members, budgets, the price plan) owners decide."""
OF_ONESELF = ("api-keys", "access-keys/<id:access_key_id>", "sso")
"""What a person with a role of the organisation's own does for themselves, whatever it is made of: their own keys, ending access
keys that they made before they had it, and connecting their own account of single sign-on. What else stands at these addresses is
asked of owners by the views."""
NOT_WHEN_BOUND = ("api-keys", "access-keys", "members", "invitations", "service-accounts", "roles", "sso")
"""What a key that is bound to addresses or to a time does not change, and no key of a service account."""
_ORGANISATION = "organisations/<id:organisation_id>"
NOT_WHEN_BOUND_EITHER = (_ORGANISATION, f"{_ORGANISATION}/transfer", f"{_ORGANISATION}/deletion")
"""The same, these addresses alone: what stands behind them else is for operators of the service."""
_NEEDS_ANOTHER = "this needs an API key without limits"
_NOT_IN_ROLE = "your role does not include this"
_NEEDS_PERSON = "a person decides this: service accounts change no keys, no members and no service accounts"
OF_SOME_INSTANCES = ("me", "search", "instance-names", "instances", "operations", "metrics")
"""What has no instance in its address and yet is for a key of some instances: it is shown what belongs to these."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one key, of one role, or of both together. None: no limit of this kind."""

    scopes: frozenset[str] | None = None  # to change, and to look at what they change
    instances: frozenset[str] | None = None
    is_bound: bool = False  # to addresses, or to a time
    is_of_person: bool = True  # False: of a service account
    looks: frozenset[str] = frozenset()  # to look at, beside those of `scopes`
    is_role: bool = False  # a role of the organisation's own is part of it
    is_whole_key: bool = True  # the key beside the role has no limits, or there is none
    finds: bool | None = None  # names of instances; None: as the scopes say
    closed: tuple[str, ...] = ()  # addresses that are not open, whatever their scope

    @property
    def is_none(self) -> bool:
        """Whether the key may do whatever its owner may, but for keys and members where it is bound."""
        return self.scopes is None and self.instances is None and not self.is_role

    def has(self, scope: str) -> bool:
        """Whether it may change all that the scope, or the part of one, is about."""
        if self.scopes is None or scope in self.scopes or WHOLE_OF.get(scope) in self.scopes:
            return True
        return scope in PARTS and self.scopes.issuperset(PARTS[scope])

    def covers(self, scope: str, *, changes: bool) -> bool:
        """Whether it may change, or look at, what the scope is about."""
        if scope == NAMES:
            return not changes and self._finds
        if scope == ANY or self.has(scope):
            return True
        if changes:
            return False
        scope = WHOLE_OF.get(scope, scope)  # parts are looked at together
        if any(self.has(part) for part in PARTS.get(scope, ())):
            return True
        may_read = self.has(READ) or READ in self.looks
        return scope in self.looks or (scope not in NOT_BY_READING and may_read)

    @property
    def _finds(self) -> bool:
        """Whether any of it is about instances: who belongs to the organisation is not."""
        if self.finds is not None:
            return self.finds
        return self.scopes is None or bool((self.scopes | self.looks) - {MEMBERS})

    def admit(self, route: str, ids: Mapping[str, object], *, changes: bool, deletes: bool = False) -> None:
        """Whether it may make this call: `route` as urls.py has it, `ids` from the address; `deletes`: a change by DELETE.

        Raises Forbidden, NotFound.
        """
        text = route.removeprefix(PREFIX)
        if changes and (text in NOT_WHEN_BOUND_EITHER or any(_begins(text, each) for each in NOT_WHEN_BOUND)):
            if not self.is_of_person:
                raise Forbidden(_NEEDS_PERSON, code="person_needed")
            if self.is_bound:
                raise Forbidden(_NEEDS_ANOTHER, code="whole_key_needed")
        if self.is_none:
            return
        if self.is_role and self.is_whole_key and any(_begins(text, each) for each in OF_ONESELF):
            return
        scope = None if any(_begins(text, each) for each in self.closed) else scope_of(text)
        self._admit_scope(part_of(text, scope, deletes=deletes) if changes else scope, changes=changes)
        for beginning, beside in BESIDE:
            if not changes and _begins(text, beginning):  # they are looked at alone
                self._admit_scope(beside, changes=False)
        self._admit_instance(text, ids.get("instance_id"), changes=changes)
        if scope == MESSAGES:
            self.admit_topic(ids.get("topic"))

    def _admit_scope(self, scope: str | None, *, changes: bool) -> None:
        if scope is None:
            if self.is_role:
                raise Forbidden(_NOT_IN_ROLE, code="not_in_role")
            raise Forbidden(_NEEDS_ANOTHER, code="whole_key_needed")
        if self.covers(scope, changes=changes):
            return
        needed = READ if scope == NAMES or not (changes or scope in NOT_BY_READING) else scope
        if needed in WHOLE_OF:
            needed = f"{needed} or {WHOLE_OF[needed]}"
        if self.is_role and self.is_whole_key:
            raise Forbidden(f"your role does not include this: it needs the scope {needed}", code="not_in_role")
        raise Forbidden(f"this API key may not do that: it needs the scope {needed}", code="scope_needed")

    def _admit_instance(self, text: str, instance_id: object, *, changes: bool) -> None:
        if self.instances is None:
            return
        if instance_id is None and (changes or not any(_begins(text, each) for each in OF_SOME_INSTANCES)):
            if self.is_role and self.is_whole_key:
                raise Forbidden("your role is for some instances alone", code="instances_limited")
            raise Forbidden("this API key is for some instances alone", code="instances_limited")
        if instance_id is not None and instance_id not in self.instances:
            raise NotForCaller(f"no instance {instance_id}")

    def admit_topic(self, topic: object) -> None:
        """Whether it may read what stands in this topic: what brokers write down of clients is `audit`. Raises Forbidden."""
        if topic == AUDIT_TOPIC:
            self._admit_scope(AUDIT, changes=False)

    @property
    def sees_sums(self) -> bool:
        """Whether it is told sums of the organisation as a whole: neither what is for some instances, nor what sees no costs."""
        return self.instances is None and self.covers(BILLING, changes=False)

    @property
    def pays(self) -> bool:
        """Whether it may pay in advance for what it buys."""
        return not self.closed

    def admit_paying(self) -> None:
        """The same. Raises Forbidden."""
        if not self.pays:
            raise Forbidden("your role does not pay in advance: leave it out, or ask an owner", code="not_in_role")

    def admit_config(self, config: Collection[str]) -> None:
        """Whether it may set these members of an instance's configuration. Raises Forbidden."""
        guards = sorted(GUARDS.intersection(config))
        if not guards or self.has(ACCESS):
            return
        if self.is_role and self.is_whole_key:
            raise Forbidden(f"your role may not set {guards[0]}: it needs the scope {ACCESS}", code="not_in_role")
        raise Forbidden(f"this API key may not set {guards[0]}: it needs the scope {ACCESS}", code="scope_needed")


NO_LIMITS = Limits()


def of_role(scopes: Mapping[str, str], instances: Collection[str] | None) -> Limits:
    """What a role of an organisation's own is made of: `scopes` with "look" or "change" of each, of a part "change" alone."""
    return Limits(
        scopes=frozenset(scope for scope, kind in scopes.items() if kind == CHANGE and scope in CHANGING),
        looks=frozenset(scopes),
        instances=None if instances is None else frozenset(instances),
        is_role=True,
    )


PAYING = (f"{_INSTANCE}/prepaid", "prepaid-price")
"""Paying in advance is of those who run instances, but for operators: they see no payments."""
BUILT_IN: Mapping[str, Limits] = {
    "operator": Limits(scopes=frozenset(CHANGING), looks=frozenset({READ}), is_role=True, closed=PAYING),
    "billing": Limits(scopes=frozenset({BILLING}), looks=frozenset({BILLING}), is_role=True),
}
"""Of tenants.models.Role, those that are made of scopes. An owner, a member and a viewer are not."""


def both(key: Limits, role: Limits) -> Limits:
    """What a key may do whose owner has a role that is made of scopes: what both allow."""
    ids = [each.instances for each in (key, role) if each.instances is not None]
    return Limits(
        scopes=frozenset(each for each in SCOPES if key.covers(each, changes=True) and role.covers(each, changes=True)),
        looks=frozenset(
            each for each in SCOPES if key.covers(each, changes=False) and role.covers(each, changes=False)
        ),
        instances=frozenset.intersection(*ids) if ids else None,
        is_bound=key.is_bound,
        is_of_person=key.is_of_person,
        is_role=True,
        is_whole_key=key.is_none,
        finds=key.covers(NAMES, changes=False) and role.covers(NAMES, changes=False),
        closed=role.closed,
    )


def scope_of(text: str) -> str | None:
    """The scope of an address, without the prefix; None: a key with scopes never comes there."""
    return next((scope for beginning, scope in BY_ADDRESS if _begins(text, beginning)), None)


def part_of(text: str, scope: str | None, *, deletes: bool) -> str | None:
    """What a change at an address of a scope takes: the part where the scope has some, else the scope itself."""
    if scope is None or scope not in PARTS:
        return scope
    found = next((part for beginning, part in PART_BY_ADDRESS if _begins(text, beginning)), _MOST[scope])
    return _PART_AT.get((text, deletes), found)


def _begins(text: str, beginning: str) -> bool:
    return text == beginning or text.startswith(f"{beginning}/")
