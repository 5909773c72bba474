"""Which ACLs a filter means, as Kafka's `AclBindingFilter` does: those that are listed, or deleted. Pure.

A member that is None takes anything. A pattern type says how the name is meant:

=============  =====================================================================================================
LITERAL        the ACLs of just this name
PREFIXED       the ACLs of just this prefix
None (ANY)     both
MATCH          the ACLs that a resource of this name has: of the name, of a prefix of it, and of ``*``
=============  =====================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from quota.contracts.acls import ANYTHING, Acl, AclOperation, PatternType, Permission, ResourceType

MATCH: Final = "MATCH"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """All of its members have to fit."""

    resource_type: ResourceType | None = None
    pattern_type: PatternType | Literal["MATCH"] | None = None
    resource_name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: AclOperation | None = None
    permission: Permission | None = None

    def takes(self, acl: Acl) -> bool:
        """Whether it means this one."""
        return (
            self.resource_type in (None, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (None, acl.operation)
            and self.permission in (None, acl.permission)
            and self._takes_pattern(acl)
        )

    def _takes_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (None, MATCH, acl.pattern_type):
            return False
        name = self.resource_name
        if name is None or name == acl.resource_name:
            return True
        if self.pattern_type != MATCH:
            return False
        if acl.pattern_type is PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == ANYTHING
