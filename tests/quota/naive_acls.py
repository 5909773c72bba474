"""ACLs as Kafka's documents read, without any index: every rule is looked at for every question. The oracle of `AclBook`."""

from ipaddress import ip_address, ip_network

from quota.contracts.acls import AclOperation, PatternType, Permission
from quota.core.acls import Reason


def address_of(text):
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def has_host(acl, host):
    return acl.host == "*" or address_of(host) in ip_network(acl.host, strict=False)


def has_principal(acl, principal):
    return acl.principal in (principal, "User:*")


def fits(acl, name):
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def speaks_of(acl, principal, host, operations):
    return has_principal(acl, principal) and has_host(acl, host) and acl.operation in (*operations, AclOperation.ALL)


def implied_by(operation):
    if operation is AclOperation.DESCRIBE:
        return (operation, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
    if operation is AclOperation.DESCRIBE_CONFIGS:
        return (operation, AclOperation.ALTER_CONFIGS)
    return (operation,)


def decide(acls, authorizer, principal, host, operation, resource_type, name):
    """(allowed, reason, those that could have decided)."""
    if principal in authorizer.super_users:
        return True, Reason.SUPER_USER, []
    about = [acl for acl in acls if acl.resource_type is resource_type and fits(acl, name)]
    if not about:
        everyone = authorizer.allow_everyone_if_no_acl_found
        return everyone, Reason.EVERYONE if everyone else Reason.NO_ACL, []
    denying = [a for a in about if a.permission is Permission.DENY and speaks_of(a, principal, host, (operation,))]
    if denying:
        return False, Reason.ACL, denying
    allowing = [
        a for a in about if a.permission is Permission.ALLOW and speaks_of(a, principal, host, implied_by(operation))
    ]
    return (True, Reason.ACL, allowing) if allowing else (False, Reason.NONE_ALLOWS, [])


def decide_by_type(acls, authorizer, principal, host, operation, resource_type):
    """Whether there is a resource: Kafka's `allowAny` and `hasDominantPrefixedDeny`, character by character."""
    if principal in authorizer.super_users:
        return True
    asked = [a for a in acls if a.resource_type is resource_type and speaks_of(a, principal, host, (operation,))]
    denied = {(a.pattern_type, a.resource_name) for a in asked if a.permission is Permission.DENY}
    if (PatternType.LITERAL, "*") in denied:
        return False
    if authorizer.allow_everyone_if_no_acl_found:
        return True
    for acl in asked:
        if acl.permission is Permission.DENY:
            continue
        name = acl.resource_name
        if acl.pattern_type is PatternType.LITERAL and name == "*":
            return True
        if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
            continue
        if not any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)):
            return True
    return False
