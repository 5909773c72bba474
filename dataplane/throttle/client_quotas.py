"""Kafka's client quotas as throttle rules for clients, and back. Pure.

An entity is one rule: its user, its client id or both, or the default of either, which is "each". Two differences to
Kafka are meant. A rate holds for the cluster, not for every broker of it; that is what the master is for. And an entity
that stands in a rule together with others (the control plane makes such) is shown with the limit they share, and is
changed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.records.steps import Steps
from quota.contracts.rules import (
    CLIENT_ID,
    MOST_NAMES,
    MOST_RULES,
    USER,
    Entity,
    RuleKind,
    ThrottleRule,
    rules_problem,
)

PRODUCE_RATE, CONSUME_RATE = "producer_byte_rate", "consumer_byte_rate"
_MEMBERS = {PRODUCE_RATE: "produce_bytes_per_s", CONSUME_RATE: "consume_bytes_per_s"}
_NOT_LIMITED = ("request_percentage", "controller_mutation_rate", "connection_creation_rate")
_LARGEST_RATE = 2**53
MOST_KINDS = 3
"""One more than there are: of so many, one is named twice or not known."""
MOST_SETTINGS = len(_MEMBERS) + 1
"""Of so many settings, too, one is named twice or not known."""
EXACT, DEFAULT, ANY = 0, 1, 2
"""How a filter's component matches a name."""
_DESCRIBED_PER_STEP, _READ_PER_STEP = 50, 10


class Component(NamedTuple):
    """Part of a filter: which entities are shown."""

    kind: str
    match_type: int
    match: str | None


class Setting(NamedTuple):
    """One value to set, or to take away (None)."""

    key: str
    value: float | None


def entity_of(parts: Sequence[tuple[str, str | None]]) -> Entity:
    """From how a request names it. Raises ApiError."""
    kinds = [kind for kind, _ in parts]
    check_kinds(kinds)
    if not kinds:
        raise ApiError(ErrorCode.INVALID_REQUEST, "an entity names a user, a client-id or both")
    if "" in dict(parts).values():
        raise ApiError(ErrorCode.INVALID_REQUEST, "a name cannot be empty; the default is null")
    return tuple(sorted(parts, key=lambda part: part[0] != USER))


def check_kinds(kinds: Sequence[str]) -> None:
    """That each is one that quotas are for, and named once: which no more than the first `MOST_KINDS` tell. Raises ApiError."""
    for kind in kinds:
        if kind not in (USER, CLIENT_ID):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"quotas are for user and client-id, not for {kind!r}")
        if kinds.count(kind) > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{kind} is named twice")


# --- describing -------------------------------------------------------------------------------------------------------


def described(
    rules: Sequence[ThrottleRule], components: Sequence[Component], *, strict: bool
) -> Steps[list[tuple[Entity, dict[str, float]]]]:
    """Entities that every component matches, with their rates; if `strict`, with no other kinds. Raises ApiError."""
    check_kinds([component.kind for component in components])
    for component in components:
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown match type {component.match_type}")
    wanted = {component.kind: component for component in components}
    found: list[tuple[Entity, dict[str, float]]] = []
    for rule in rules:
        if rule.kind is not RuleKind.CLIENT:
            continue
        limits = ((key, getattr(rule, member)) for key, member in _MEMBERS.items())
        rates = {key: float(limit) for key, limit in limits if limit is not None}
        matching = _matching(rule, wanted, strict=strict)
        for entity in () if matching is None else matching.entities():
            found.append((entity, rates))
            if len(found) % _DESCRIBED_PER_STEP == 0:
                yield None
    return found


def _matching(rule: ThrottleRule, wanted: Mapping[str, Component], *, strict: bool) -> ThrottleRule | None:
    """The rule with only those names that match: they are multiplied afterwards. None: nobody does."""
    users = _fitting(rule.users, wanted.get(USER), strict=strict)
    clients = _fitting(rule.clients, wanted.get(CLIENT_ID), strict=strict)
    return None if users is None or clients is None else replace(rule, users=users, clients=clients)


def _fitting(
    names: tuple[str | None, ...], component: Component | None, *, strict: bool
) -> tuple[str | None, ...] | None:
    """None: the rule is not about whom the filter is."""
    if component is None:
        return None if strict and names else names
    if component.match_type == ANY:
        return names or None
    name = component.match if component.match_type == EXACT else None
    return (name,) if name in names else None


# --- altering ---------------------------------------------------------------------------------------------------------


class Draft:
    """The rules of an instance while a request alters them. What one alteration costs does not grow with what there is."""

    def __init__(self) -> None:
        self._rules: dict[int, ThrottleRule] = {}  # in their order, by a number that means nothing
        self._next = 0
        self._names = 0  # of all rules
        self._single: dict[Entity, int] = {}  # rules for one entity
        self._shared: list[_Shared] = []  # client rules for several

    @classmethod
    def of(cls, rules: Sequence[ThrottleRule]) -> Steps[Draft]:
        """Begin with what is in force."""
        draft = cls()
        for place, rule in enumerate(rules, 1):
            draft._add(rule)
            if place % _READ_PER_STEP == 0:
                yield None
        return draft

    @property
    def rules(self) -> tuple[ThrottleRule, ...]:
        """As they are now."""
        return tuple(self._rules.values())

    def alter(self, entity: Entity, settings: Sequence[Setting], new_id: Callable[[], str]) -> None:
        """These settings of one entity. Raises ApiError, and nothing is changed."""
        for shared in self._shared:
            if shared.names(entity):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"throttle rule {shared.id} names others as well, who share its limit: change that",
                )
        number = self._single.get(entity)
        found = None if number is None else self._rules[number]
        rule = replace(found or _empty_rule(entity, new_id()), **_limits(settings))
        if rule.produce_bytes_per_s is None and rule.consume_bytes_per_s is None:
            if number is not None:
                self._remove(number, entity)
            return
        problem = rules_problem([rule]) or (self._problem(len(entity)) if found is None else None)
        if problem:
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)
        if number is None:
            self._add(rule)
        else:
            self._rules[number] = rule

    def _problem(self, more_names: int) -> str | None:
        """Why there cannot be one rule more; as `rules_problem`, which would look at all of them."""
        if len(self._rules) >= MOST_RULES:
            return f"an instance may have {MOST_RULES} throttle rules"
        names = self._names + more_names
        if names > MOST_NAMES:
            return f"the throttle rules of an instance may name {MOST_NAMES} topics, clients and groups, not {names}"
        return None

    def _add(self, rule: ThrottleRule) -> None:
        number, self._next = self._next, self._next + 1
        self._rules[number] = rule
        self._names += len(rule.topics) + len(rule.users) + len(rule.clients) + len(rule.groups)
        if rule.kind is RuleKind.CLIENT:
            if len(rule.users) <= 1 and len(rule.clients) <= 1:
                self._single.setdefault(next(rule.entities()), number)
            else:
                self._shared.append(_Shared(rule.id, frozenset(rule.users), frozenset(rule.clients)))

    def _remove(self, number: int, entity: Entity) -> None:
        del self._rules[number], self._single[entity]
        self._names -= len(entity)


class _Shared(NamedTuple):
    """A rule for several, to be asked whom it names without multiplying them."""

    id: str
    users: frozenset[str | None]
    clients: frozenset[str | None]

    def names(self, entity: Entity) -> bool:
        """Whether it names this one."""
        parts = dict(entity)
        return _has(self.users, parts, USER) and _has(self.clients, parts, CLIENT_ID)


def _has(names: frozenset[str | None], parts: Mapping[str, str | None], kind: str) -> bool:
    return parts[kind] in names if kind in parts else not names


def _empty_rule(entity: Entity, rule_id: str) -> ThrottleRule:
    names = dict(entity)
    users = (names[USER],) if USER in names else ()
    clients = (names[CLIENT_ID],) if CLIENT_ID in names else ()
    return ThrottleRule(rule_id, RuleKind.CLIENT, None, None, users=users, clients=clients)


def _limits(settings: Sequence[Setting]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for setting in settings:
        member = _member(setting.key)
        if member in limits:  # whatever else is said: there may be thousands
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{setting.key} is named twice")
        limits[member] = _limit(setting)
    return limits


def _member(key: str) -> str:
    member = _MEMBERS.get(key)
    if member is None:
        text = f"{key} is not limited here" if key in _NOT_LIMITED else f"there is no quota {key!r}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    return member


def _limit(setting: Setting) -> int | None:
    value = setting.value
    if value is None:
        return None
    if not math.isfinite(value) or value != int(value) or not 1 <= value <= _LARGEST_RATE:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{setting.key} must be a whole number of 1 or more, not {value}")
    return int(value)
