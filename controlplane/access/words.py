"""The words of Kafka's ACLs, and of the audit, as REST says and shows them. Pure."""

from __future__ import annotations

from quota.contracts.acls import AclOperation, PatternType, Permission, ResourceType
from quota.contracts.audit import AuditKind
from quota.core.acl_filters import MATCH
from quota.core.explain_access import Rule

ANY = "ANY"
OPERATIONS = tuple(AclOperation.__members__)
PERMISSIONS = tuple(Permission.__members__)
RESOURCE_TYPES = tuple(ResourceType.__members__)
PATTERN_TYPES = tuple(PatternType.__members__)
RULES = [rule.value for rule in Rule]
"""What decides a question."""
AUDIT_KINDS = tuple(kind.value for kind in AuditKind)
FILTER_OPERATIONS = (*OPERATIONS, ANY)
FILTER_PERMISSIONS = (*PERMISSIONS, ANY)
FILTER_RESOURCE_TYPES = (*RESOURCE_TYPES, ANY)
FILTER_PATTERN_TYPES = (*PATTERN_TYPES, MATCH, ANY)
