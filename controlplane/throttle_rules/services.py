"""Changing throttle rules. The request itself writes them to ZooKeeper: they are in force within 2 s.

A limit is for the whole cluster and for everything that a rule names together; `quota.contracts.rules` says what a rule is.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controlplane.clusters import coordination, zookeeper
from controlplane.core import audit, ids
from controlplane.core.errors import FieldProblem, Invalid
from controlplane.instances.selectors import instance_running_get
from controlplane.throttle_rules.selectors import rule_of
from quota.contracts.instance import MIB
from quota.contracts.namespace import topic_name_problem
from quota.contracts.rules import RuleKind, ThrottleRule, rules_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.tenants.models import Organisation

    Decide = Callable[[Sequence[ThrottleRule]], Sequence[ThrottleRule]]

MOST_MIB_PER_S = 100_000
_LIMITS = {"produce_mib_per_s": "produce_bytes_per_s", "consume_mib_per_s": "consume_bytes_per_s"}


def throttle_rule_create(
    *, organisation: Organisation, actor: str, instance_id: str, kind: str, **members: Any
) -> ThrottleRule:
    """A new rule. Raises NotFound, Invalid, Conflict, ClusterUnavailable."""
    empty = ThrottleRule(ids.throttle_rule_id(random.SystemRandom()), RuleKind(kind), None, None)
    rule = replace(empty, **_checked(members))
    _write(organisation, instance_id, lambda rules: (*rules, rule))
    _audit(organisation, actor, "create", instance_id, rule, rule.document())
    return rule


def throttle_rule_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    rule_id: str,
    changes: Mapping[str, Any],
    check: Callable[[ThrottleRule], None] | None = None,
) -> ThrottleRule:
    """Other limits or names. `check` is told the rule that is to be another.

    Raises NotFound, Invalid, Conflict, ClusterUnavailable.
    """
    if not changes:
        raise Invalid("nothing to change: give a limit, or names")
    checked = _checked(changes)
    before: list[ThrottleRule] = []

    def decide(rules: Sequence[ThrottleRule]) -> Sequence[ThrottleRule]:
        before[:] = [present := rule_of(rules, rule_id)]
        if check is not None:
            check(present)
        return tuple(replace(rule, **checked) if rule is present else rule for rule in rules)

    rule = rule_of(_write(organisation, instance_id, decide), rule_id)
    _audit(organisation, actor, "update", instance_id, rule, _changed(before[0], rule))
    return rule


def throttle_rule_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    rule_id: str,
    check: Callable[[ThrottleRule], None] | None = None,
) -> None:
    """It holds nobody any more. `check` is told the rule that is to go. Raises NotFound, Conflict, ClusterUnavailable."""
    gone: list[ThrottleRule] = []

    def decide(rules: Sequence[ThrottleRule]) -> Sequence[ThrottleRule]:
        gone[:] = [rule_of(rules, rule_id)]
        if check is not None:
            check(gone[0])
        return tuple(rule for rule in rules if rule.id != rule_id)

    _write(organisation, instance_id, decide)
    _audit(organisation, actor, "delete", instance_id, gone[0], gone[0].document())


def bytes_per_s(mib_per_s: float) -> int:
    """A rate as rules have it. What rounds to nothing is one byte."""
    return max(1, round(mib_per_s * MIB))


def _write(organisation: Organisation, instance_id: str, decide: Decide) -> Sequence[ThrottleRule]:
    def checked(rules: Sequence[ThrottleRule]) -> Sequence[ThrottleRule]:
        after = decide(rules)
        problem = rules_problem(after)
        if problem:
            raise Invalid(problem, code="invalid_throttle_rule")
        return after

    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    return coordination.rules_write(zookeeper.tree(instance.cluster.address), instance.id, checked)


def _checked(members: Mapping[str, Any]) -> dict[str, Any]:
    """As a rule has them. Raises Invalid."""
    found: dict[str, Any] = {}
    problems: list[FieldProblem] = []
    for name, value in members.items():
        try:
            found[_LIMITS.get(name, name)] = _member(name, value)
        except Invalid as error:
            problems += error.errors
    if problems:
        raise Invalid.fields(problems)
    return found


def _member(name: str, value: Any) -> Any:
    if name in _LIMITS:
        return None if value is None else _bytes_per_s(name, value)
    if name == "topics":
        for place, topic in enumerate(value):
            problem = topic_name_problem(topic)
            if problem:
                raise Invalid.field(f"{name}.{place}", problem)
    return tuple(dict.fromkeys(value))


def _bytes_per_s(name: str, mib_per_s: float) -> int:
    if not 0 < mib_per_s <= MOST_MIB_PER_S:
        raise Invalid.field(name, f"must be more than 0 and at most {MOST_MIB_PER_S}; null is no limit")
    return bytes_per_s(mib_per_s)


def _changed(before: ThrottleRule, after: ThrottleRule) -> dict[str, Any]:
    """A document leaves out what is not limited: that is None, so that taking a limit away is a change, too."""
    was, now = before.document(), after.document()
    return audit.changed(was, dict.fromkeys(was) | now)


def _audit(  # the order of the columns
    organisation: Organisation, actor: str, action: str, instance_id: str, rule: ThrottleRule, detail: dict[str, Any]
) -> None:
    audit.record(
        organisation=organisation,
        actor=actor,
        action=f"throttle_rule.{action}",
        target=f"{instance_id}/{rule.id}",
        detail=detail,
    )
