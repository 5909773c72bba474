"""ACLs. The vendor says Kafka's words as numbers, or with one capital; its rules of a prefix are our ACLs with one.

A rule has no name of its own here: it is called as its prefix is. One of the kind PRESET, which is copied to topics when they
are made, is refused; what begins with a prefix holds for topics to come anyway.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from controlplane.access import acls, selectors
from controlplane.ckafka_api.actions.calls import Call, done, offered, page_of
from controlplane.ckafka_api.errors import CkafkaError, Code
from quota.contracts.acls import ANYTHING, CLUSTER_NAME, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.core.acl_filters import AclFilter
from quota.core.acls import EVERYBODY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import IntEnum

TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
OPERATIONS = tuple(AclOperation(code) for code in range(AclOperation.ALL, AclOperation.IDEMPOTENT_WRITE + 1))


def create(call: Call) -> dict[str, Any]:
    """CreateAcl: one for each name and host."""
    parameters = call.parameters
    names, hosts = _names(parameters), _hosts(parameters)
    _check_how_many(len(names) * len(hosts))
    made = [
        Acl(
            _code(parameters, "ResourceType", TYPES),
            PatternType.LITERAL,
            name,
            parameters.get("Principal", EVERYBODY),
            host,
            _code(parameters, "Operation", OPERATIONS),
            _code(parameters, "PermissionType", tuple(Permission)),
        )
        for name in names
        for host in hosts
    ]
    _create(call, made)
    return done()


def create_several(call: Call) -> int:
    """BatchCreateAcl: these rules for each of these topics."""
    offered(call.parameters, {"ResourceType": (ResourceType.TOPIC.value,)})
    names = call.parameters["ResourceNames"]
    _check_how_many(len(names) * sum(len(_hosts(rule)) for rule in call.parameters["RuleList"]))
    made = [acl for name in names for acl in _of_rules(call.parameters, PatternType.LITERAL, name)]
    _create(call, made)
    return 0


def delete(call: Call) -> dict[str, Any]:
    """DeleteAcl: just this one; without an operation all of the resource."""
    parameters, is_one = call.parameters, "Operation" in call.parameters
    if is_one != ("PermissionType" in parameters):
        raise CkafkaError(Code.MISSING_PARAMETER, "Operation and PermissionType belong together.")
    wanted = AclFilter(
        resource_type=_code(parameters, "ResourceType", TYPES),
        pattern_type=PatternType.LITERAL,
        resource_name=_name(parameters),
        principal=parameters.get("Principal", EVERYBODY if is_one else None),
        host=parameters.get("Host", ANYTHING if is_one else None),
        operation=_code(parameters, "Operation", OPERATIONS) if is_one else None,
        permission=_code(parameters, "PermissionType", tuple(Permission)) if is_one else None,
    )
    if not acls.acls_delete(**call.place, wanted=wanted):
        raise CkafkaError(Code.NOT_FOUND, "There is no such ACL.")
    return done()


def listed(call: Call) -> dict[str, Any]:
    """DescribeACL: of one resource, or of all of a type where none is named."""
    parameters, kind = call.parameters, _code(call.parameters, "ResourceType", TYPES)
    name = parameters.get("ResourceName") or None
    wanted = AclFilter(resource_type=kind, pattern_type=PatternType.LITERAL, resource_name=name)
    word = parameters.get("SearchWord", "")
    found = [acl for acl in selectors.acl_list(**call.view, wanted=wanted) if word in acl.principal]
    rows = [
        {
            "ResourceType": acl.resource_type.value,
            "ResourceName": acl.resource_name,
            "Principal": acl.principal,
            "Host": acl.host,
            "Operation": acl.operation.value,
            "PermissionType": acl.permission.value,
        }
        for acl in found
    ]
    return {"TotalCount": len(rows), "AclList": rows[page_of(parameters, default=50, most=50)]}


def rule_create(call: Call) -> int:
    """CreateAclRule: for all topics whose names begin so."""
    parameters = call.parameters
    prefix = parameters.get("Pattern", "")
    offered(parameters, {"ResourceType": ("Topic",), "PatternType": ("PREFIXED",), "Comment": ("",)})
    offered(parameters, {"RuleName": (prefix,)})
    _create(call, _of_rules(parameters, PatternType.PREFIXED, prefix))
    return rule_number(prefix)


def rule_change(call: Call) -> int:
    """ModifyAclRule: all that it could change is that a rule does not hold for new topics."""
    prefix = call.parameters["RuleName"]
    offered(call.parameters, {"IsApplied": (1,)})
    if not selectors.acl_list(**call.view, wanted=_rule(prefix)):
        raise _no_rule(prefix)
    return rule_number(prefix)


def rule_delete(call: Call) -> int:
    """DeleteAclRule: all that hold for topics whose names begin so."""
    prefix = call.parameters["RuleName"]
    if not acls.acls_delete(**call.place, wanted=_rule(prefix)):
        raise _no_rule(prefix)
    return rule_number(prefix)


def rules_listed(call: Call) -> dict[str, Any]:
    """DescribeAclRule."""
    by_prefix: dict[str, list[Acl]] = {}
    if call.parameters.get("PatternType", "PREFIXED") == "PREFIXED":
        for acl in selectors.acl_list(**call.view, wanted=_rule(call.parameters.get("RuleName") or None)):
            by_prefix.setdefault(acl.resource_name, []).append(acl)
    rows = [
        {
            "RuleName": prefix,
            "InstanceId": call.instance.id,
            "PatternType": "PREFIXED",
            "Pattern": prefix,
            "ResourceType": "Topic",
            "AclList": json.dumps([_rule_shown(acl) for acl in found]),
            "IsApplied": 1,
        }
        for prefix, found in by_prefix.items()
    ]
    return {"TotalCount": len(rows), "AclRuleList": rows}


def rule_number(prefix: str) -> int:
    """What the vendor's programs call it."""
    return int.from_bytes(hashlib.sha256(prefix.encode()).digest()[:6])


def _rule(prefix: str | None) -> AclFilter:
    return AclFilter(ResourceType.TOPIC, PatternType.PREFIXED, prefix)


def _no_rule(prefix: str) -> CkafkaError:
    return CkafkaError(Code.NOT_FOUND, f"There is no rule for the prefix {prefix}.")


def _rule_shown(acl: Acl) -> dict[str, str]:
    return {
        "Operation": acl.operation.name.capitalize(),
        "PermissionType": acl.permission.name.capitalize(),
        "Host": acl.host,
        "Principal": acl.principal,
    }


def _of_rules(parameters: Mapping[str, Any], pattern_type: PatternType, name: str) -> list[Acl]:
    """RuleList, for the resources of a pattern."""
    return [
        Acl(
            ResourceType.TOPIC,
            pattern_type,
            name,
            rule.get("Principal", EVERYBODY),
            host,
            _word(rule, "Operation", AclOperation),
            _word(rule, "PermissionType", Permission),
        )
        for rule in parameters["RuleList"]
        for host in _hosts(rule)
    ]


def _check_how_many(count: int) -> None:
    """Before they are made: names times hosts may be more than there is memory for."""
    if not 0 < count <= acls.MOST_AT_ONCE:
        raise CkafkaError(Code.INVALID_VALUE, f"A request makes 1 to {acls.MOST_AT_ONCE} ACLs.")


def _create(call: Call, made: list[Acl]) -> None:
    if any(not _is_text(acl.resource_name) or not _is_text(acl.principal) for acl in made):
        raise CkafkaError(Code.INVALID_VALUE, "A name has a character that cannot be stored.")
    acls.acls_create(**call.place, acls=made)


def _is_text(name: str) -> bool:
    """As REST has it: no NUL, and no half of a surrogate pair, which a list written as JSON can hide."""
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def _hosts(parameters: Mapping[str, Any]) -> list[str]:
    return [host.strip() for host in parameters.get("Host", ANYTHING).split(";") if host.strip()]


def _name(parameters: Mapping[str, Any]) -> str:
    name: str = parameters.get("ResourceName", "")
    if not name and parameters["ResourceType"] == ResourceType.CLUSTER:
        return CLUSTER_NAME
    if not name:
        raise CkafkaError(Code.MISSING_PARAMETER, "The parameter `ResourceName` is missing.")
    return name


def _names(parameters: Mapping[str, Any]) -> list[str]:
    """ResourceName, or those of ResourceNameList, which is a list written as JSON."""
    if "ResourceNameList" not in parameters:
        return [_name(parameters)]
    try:
        names = json.loads(parameters["ResourceNameList"])
    except (ValueError, RecursionError) as error:
        raise CkafkaError(Code.INVALID_VALUE, "ResourceNameList must be a list in JSON.") from error
    if "ResourceName" in parameters or not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise CkafkaError(Code.INVALID_VALUE, "Give ResourceName, or a list of names as ResourceNameList.")
    return names


def _code(parameters: Mapping[str, Any], name: str, known: tuple[Any, ...]) -> Any:
    """One of Kafka's words by its number."""
    for word in known:
        if word.value == parameters[name]:
            return word
    raise CkafkaError(Code.INVALID_VALUE, f"{name} must be one of {', '.join(str(word.value) for word in known)}.")


def _word(rule: Mapping[str, Any], name: str, kind: type[IntEnum]) -> Any:
    """One of Kafka's words, in any case."""
    said = str(rule.get(name, "")).upper()
    if said not in kind.__members__:
        raise CkafkaError(Code.INVALID_VALUE, f"{name} of a rule must be one of Kafka's words, such as Read or Allow.")
    return kind[said]
