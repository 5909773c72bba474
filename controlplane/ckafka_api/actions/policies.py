"""DynamicRetentionConfig and DynamicDiskConfig: the policy of an instance's disk, in two halves of which one may be on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, renamed
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.policies.rules import EXPANSION, NONE, RETENTION, Rule
from controlplane.policies.selectors import rule_get

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.instances.models import Instance

HALVES: Mapping[str, str] = {"DynamicRetentionConfig": RETENTION, "DynamicDiskConfig": EXPANSION}
MEMBERS: Mapping[str, str] = {
    "DiskQuotaPercentage": "level_percent",
    "StepForwardPercentage": "step_percent",
    "BottomRetention": "floor_minutes",
    "MaxDiskSpace": "max_storage_gib",
}


def disk_policy_wanted(call: Call) -> Rule | None:
    """What ModifyInstanceAttributes asks for; None: neither half is named. Raises CkafkaError."""
    given = {name: call.parameters[name] for name in HALVES if name in call.parameters}
    if not given:
        return None
    found = rule_get(call.instance)
    on = [name for name, config in given.items() if _is_on(name, config)]
    if len(on) > 1:
        raise CkafkaError(Code.INVALID_VALUE, f"One of {' and '.join(HALVES)} can be enabled.")
    if on:
        members = renamed(given[on[0]], MEMBERS)
        return Rule(HALVES[on[0]], spare_unread=found.spare_unread, **members)
    is_off = any(HALVES[name] == found.policy for name in given)
    return replace(found, policy=NONE) if is_off else found


def _is_on(name: str, config: Mapping[str, Any]) -> bool:
    if config.get("Enable") not in (0, 1):
        raise CkafkaError(Code.INVALID_VALUE, f"{name}.Enable must be 0 or 1.")
    return bool(config["Enable"])


def disk_policy_shown(instance: Instance) -> dict[str, Any]:
    """Of DescribeInstanceAttributes. A half that is off has the figures that it would begin with."""
    rule = rule_get(instance)
    both = {"DiskQuotaPercentage": rule.level_percent, "StepForwardPercentage": rule.step_percent}
    return {
        "RetentionTimeConfig": {
            "Enable": int(rule.policy == RETENTION),
            **both,
            "BottomRetention": rule.floor_minutes,
        },
        "DynamicDiskConfig": {
            "Enable": int(rule.policy == EXPANSION),
            **both,
            "MaxDiskSpace": round(rule.max_storage_gib or 0),
        },
    }
