"""Throttle rules. The vendor's rule has a number for an id and shows one name; ours have letters, and several names."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, done, number_of, page_of, renamed
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.throttle_rules import selectors, services
from quota.contracts.instance import MIB
from quota.contracts.rules import RuleKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quota.contracts.rules import ThrottleRule

KINDS: Mapping[int, RuleKind] = {1: RuleKind.CLIENT, 2: RuleKind.GROUP, 3: RuleKind.TOPIC}
TYPES = {kind: number for number, kind in KINDS.items()}
DIMENSIONS: Mapping[int, tuple[RuleKind, ...]] = {1: (RuleKind.CLIENT, RuleKind.GROUP), 2: (RuleKind.TOPIC,)}
LIMITS: Mapping[str, str] = {"ConsumeThrottle": "consume_mib_per_s", "ProduceThrottle": "produce_mib_per_s"}
NAMES: Mapping[str, str] = {
    "GroupNameList": "groups",
    "ClientIdList": "clients",
    "UserNameList": "users",
    "TopicNameList": "topics",
}
_OUR_ID = re.compile(r"rule-[0-9a-z]{12}")


def create(call: Call) -> dict[str, Any]:
    """CreateThrottleRule."""
    kind = KINDS.get(call.parameters["ThrottleType"])
    if kind is None:
        raise CkafkaError(Code.INVALID_VALUE, "ThrottleType must be 1, 2 or 3.")
    members = renamed(call.parameters, {**LIMITS, **NAMES})
    services.throttle_rule_create(**call.place, kind=kind.value, **members)
    return done()


def change(call: Call) -> dict[str, Any]:
    """ModifyThrottleRule: the limit on consuming, which is all that the vendor's model has."""
    services.throttle_rule_update(**call.place, rule_id=_rule(call).id, changes=renamed(call.parameters, LIMITS))
    return done()


def delete(call: Call) -> dict[str, Any]:
    """DeleteThrottleRule."""
    services.throttle_rule_delete(**call.place, rule_id=_rule(call).id)
    return done()


def listed(call: Call) -> dict[str, Any]:
    """DescribeThrottleRules."""
    kinds = DIMENSIONS.get(call.parameters.get("ThrottleDimension", 1))
    if kinds is None:
        raise CkafkaError(Code.INVALID_VALUE, "ThrottleDimension must be 1 or 2.")
    word = call.parameters.get("SearchWord", "")
    rows = [_shown(rule) for rule in selectors.throttle_rule_list(**call.view) if rule.kind in kinds]
    found = [row for row in rows if any(word in row[name] for name in ("ClientId", "UserName", "TopicName"))]
    return {"TotalCount": len(found), "ThrottleRuleList": found[page_of(call.parameters, default=20, most=200)]}


def rule_number(rule_id: str) -> int:
    """What the vendor's programs call it. Rules that Kafka clients have set have ids of another form, whose hash serves."""
    if _OUR_ID.fullmatch(rule_id):
        return number_of(rule_id)
    return int.from_bytes(hashlib.sha256(rule_id.encode()).digest()[:7])


def _rule(call: Call) -> ThrottleRule:
    wanted = str(call.parameters["ThrottleRuleId"])  # a number to some of the vendor's actions, text to another
    for rule in selectors.throttle_rule_list(**call.view):
        if str(rule_number(rule.id)) == wanted:
            return rule
    raise CkafkaError(Code.NOT_FOUND, f"There is no throttle rule {wanted}.")


def _shown(rule: ThrottleRule) -> dict[str, Any]:
    return {
        "ThrottleRuleId": rule_number(rule.id),
        "ThrottleType": TYPES[rule.kind],
        "ClientId": _names(rule.clients),
        "UserName": _names(rule.users),
        "ConsumeThrottle": -1 if rule.consume_bytes_per_s is None else -(-rule.consume_bytes_per_s // MIB),
        "TopicName": _names(rule.topics),
        "TopicId": _names(rule.topics),
    }


def _names(names: tuple[str | None, ...]) -> str:
    """Several in one text; None is each that no nearer rule names."""
    return ",".join("<default>" if name is None else name for name in names)
