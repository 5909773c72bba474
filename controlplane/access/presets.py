"""The ACLs that a kind of program needs, as `kafka-acls --producer` and `--consumer` make them. Pure.

With patterns that are prefixes they are rules for topics to come, too: whoever may produce to ``orders.`` may make the
topics whose names begin so, and write to them.
"""

from __future__ import annotations

from enum import StrEnum

from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType


class Preset(StrEnum):
    """What the program does."""

    PRODUCER = "producer"
    CONSUMER = "consumer"


_OF_TOPIC = {
    Preset.PRODUCER: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    Preset.CONSUMER: (AclOperation.READ, AclOperation.DESCRIBE),
}


def preset_acls(
    preset: Preset, *, principal: str, host: str, topic: str, group: str | None, pattern_type: PatternType
) -> list[Acl]:
    """All of the set; `group` is a consumer's. The pattern type is that of both names."""

    def allowed(kind: ResourceType, name: str, operation: AclOperation) -> Acl:
        return Acl(kind, pattern_type, name, principal, host, operation, Permission.ALLOW)

    acls = [allowed(ResourceType.TOPIC, topic, operation) for operation in _OF_TOPIC[preset]]
    if group is not None:
        acls.append(allowed(ResourceType.GROUP, group, AclOperation.READ))
    return acls
