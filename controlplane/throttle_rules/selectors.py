"""Reading an instance's throttle rules, as they are in force at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters import coordination, zookeeper
from controlplane.core.errors import NotFound
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.tenants.models import Organisation
    from quota.contracts.rules import ThrottleRule


NAMED = {"topic": "topics", "user": "users", "client": "clients", "group": "groups"}
"""By the name of a filter: which names of a rule are looked through."""
SORTED: Mapping[str, Callable[[ThrottleRule], str | int | None]] = {
    "id": lambda rule: rule.id,
    "kind": lambda rule: rule.kind.value,
    "produce_mib_per_s": lambda rule: rule.produce_bytes_per_s,
    "consume_mib_per_s": lambda rule: rule.consume_bytes_per_s,
}
"""What a list can be sorted by, in the words of REST."""


def throttle_rule_list(*, organisation: Organisation, instance_id: str) -> list[ThrottleRule]:
    """All rules, those that clients set by Kafka's protocol among them, by id. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return sorted(
        coordination.rules_read(zookeeper.tree(instance.cluster.address), instance.id), key=lambda rule: rule.id
    )


def fitting(rules: Sequence[ThrottleRule], *, kind: str = "", **named: str) -> list[ThrottleRule]:
    """Those of this kind that name this `topic`, `user`, `client` and `group`, each whole. Empty: any."""
    wanted = [(NAMED[by], name) for by, name in named.items() if name]
    return [
        rule
        for rule in rules
        if kind in ("", rule.kind) and all(name in getattr(rule, names) for names, name in wanted)
    ]


def throttle_rule_get(*, organisation: Organisation, instance_id: str, rule_id: str) -> ThrottleRule:
    """One rule. Raises NotFound, ClusterUnavailable."""
    return rule_of(throttle_rule_list(organisation=organisation, instance_id=instance_id), rule_id)


def rule_of(rules: Sequence[ThrottleRule], rule_id: str) -> ThrottleRule:
    """One of several. Raises NotFound."""
    for rule in rules:
        if rule.id == rule_id:
            return rule
    raise NotFound(f"no throttle rule {rule_id}")
