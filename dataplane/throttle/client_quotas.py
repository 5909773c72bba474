"""Kafka's client quotas as throttle rules for clients, and back. Pure.

An entity is one rule: its user, its client id or both, or the default of either, which is "each". Two differences to
Kafka are meant. A rate holds for the cluster, not for every broker of it; that is what the master is for. And an entity
that stands in a rule together with others (the control plane makes such) is shown with the limit they share, and is
changed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dataplane.protocol.errors import ApiError, ErrorCode
from quota.contracts.rules import CLIENT_ID, USER, Entity, RuleKind, ThrottleRule, rules_problem

PRODUCE_RATE, CONSUME_RATE = "producer_byte_rate", "consumer_byte_rate"
_MEMBERS = {PRODUCE_RATE: "produce_bytes_per_s", CONSUME_RATE: "consume_bytes_per_s"}
_NOT_LIMITED = ("request_percentage", "controller_mutation_rate", "connection_creation_rate")
_LARGEST_RATE = 2**53
EXACT, DEFAULT, ANY = 0, 1, 2
"""How a filter's component matches a name."""


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
    _check_kinds(kinds)
    if not kinds:
        raise ApiError(ErrorCode.INVALID_REQUEST, "an entity names a user, a client-id or both")
    if "" in dict(parts).values():
        raise ApiError(ErrorCode.INVALID_REQUEST, "a name cannot be empty; the default is null")
    return tuple(sorted(parts, key=lambda part: part[0] != USER))


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        if kind not in (USER, CLIENT_ID):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"quotas are for user and client-id, not for {kind!r}")
        if kinds.count(kind) > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{kind} is named twice")


# --- describing -------------------------------------------------------------------------------------------------------


def described(
    rules: Sequence[ThrottleRule], components: Sequence[Component], *, strict: bool
) -> Iterator[tuple[Entity, dict[str, float]]]:
    """Entities that every component matches, with their rates; if `strict`, with no other kinds. Raises ApiError."""
    _check_kinds([component.kind for component in components])
    for component in components:
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown match type {component.match_type}")
    return _described(rules, components, strict=strict)


def _described(
    rules: Sequence[ThrottleRule], components: Sequence[Component], *, strict: bool
) -> Iterator[tuple[Entity, dict[str, float]]]:
    for rule in rules:
        if rule.kind is RuleKind.CLIENT:
            limits = ((key, getattr(rule, member)) for key, member in _MEMBERS.items())
            rates = {key: float(limit) for key, limit in limits if limit is not None}
            for entity in rule.entities():
                fits = all(_fits(entity, component) for component in components)
                if fits and not (strict and len(entity) > len(components)):
                    yield entity, rates


def _fits(entity: Entity, component: Component) -> bool:
    names = dict(entity)
    if component.kind not in names:
        return False
    if component.match_type == ANY:
        return True
    return names[component.kind] == (component.match if component.match_type == EXACT else None)


# --- altering ---------------------------------------------------------------------------------------------------------


def altered(
    rules: Sequence[ThrottleRule], entity: Entity, settings: Sequence[Setting], new_id: Callable[[], str]
) -> tuple[ThrottleRule, ...]:
    """The rules with these settings of one entity. Raises ApiError."""
    found = next((r for r in rules if r.kind is RuleKind.CLIENT and entity in r.entities()), None)
    if found is not None and len(list(found.entities())) > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"throttle rule {found.id} names others as well, who share its limit: change that",
        )
    limits: dict[str, Any] = {_member(setting.key): _limit(setting) for setting in settings}
    rule = replace(found or _empty_rule(entity, new_id()), **limits)
    others = tuple(each for each in rules if each is not found)
    if rule.produce_bytes_per_s is None and rule.consume_bytes_per_s is None:
        return others
    after = tuple(rule if each is found else each for each in rules) if found else (*others, rule)
    problem = rules_problem(after)
    if problem:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    return after


def _empty_rule(entity: Entity, rule_id: str) -> ThrottleRule:
    names = dict(entity)
    users = (names[USER],) if USER in names else ()
    clients = (names[CLIENT_ID],) if CLIENT_ID in names else ()
    return ThrottleRule(rule_id, RuleKind.CLIENT, None, None, users=users, clients=clients)


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
