"""`sluice_acl`: one rule. A rule that is another is another rule: each attribute replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Diagnostic, Missing, ProviderError
from controlplane.terraform.resources.base import ID, INSTANCE_ID, Doing, Resource, given
from controlplane.terraform.schema import STRING, Attribute

if TYPE_CHECKING:
    from controlplane.terraform.rest import Client
    from controlplane.terraform.values import State

OPERATIONS = (
    *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"),
    *("ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS"),
)
TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
MEMBERS = ("principal", "host", "operation", "permission", "resource_type", "resource_name", "pattern_type")


class AclResource(Resource):
    """An ACL."""

    name = "sluice_acl"
    about = "One rule: who may, or may not, do what to which resource."
    attributes = (
        ID,
        INSTANCE_ID,
        Attribute("principal", STRING, "User:anna, or User:* for everybody", required=True, replaces=True),
        Attribute("host", STRING, "*, an address, or a CIDR block; by default *", computed=True, replaces=True),
        Attribute("operation", STRING, "what", required=True, replaces=True, choices=OPERATIONS),
        Attribute("permission", STRING, "by default ALLOW", computed=True, replaces=True, choices=("ALLOW", "DENY")),
        Attribute("resource_type", STRING, "of what", required=True, replaces=True, choices=TYPES),
        Attribute("resource_name", STRING, "its name; * with LITERAL: each", required=True, replaces=True),
        Attribute(
            "pattern_type", STRING, "by default LITERAL", computed=True, replaces=True, choices=("LITERAL", "PREFIXED")
        ),
    )

    def create(self, doing: Doing, planned: State) -> State:
        """One that is there already is taken over: two rules that say the same are one."""
        instance_id = planned["instance_id"]
        return _state(instance_id, doing.change(ops.ACL_CREATE, given(planned, *MEMBERS), instance_id=instance_id))

    def read(self, client: Client, state: State) -> State:
        query = {name: state[name] for name in MEMBERS}
        for found in client.items(ops.ACLS, query=query, instance_id=state["instance_id"]):
            if all(found[name] == state[name] for name in MEMBERS):
                return _state(state["instance_id"], found)
        raise Missing(404, {"title": "There is no such ACL", "detail": str(state.get("id"))})

    def delete(self, doing: Doing, state: State) -> None:
        doing.change(ops.ACLS_DELETE, {name: state[name] for name in MEMBERS}, instance_id=state["instance_id"])

    def of_id(self, text: str) -> State:
        instance_id, *members = map(unquote, text.split("|"))
        if len(members) != len(MEMBERS) or not all((instance_id, *members)):
            form = "ins-…|User:anna|*|READ|ALLOW|TOPIC|orders|LITERAL"
            raise ProviderError(Diagnostic("That is no id to import", f"{text!r}: it is like {form}."))
        return {"instance_id": instance_id, **dict(zip(MEMBERS, members, strict=True))}


def _state(instance_id: str, found: dict[str, Any]) -> State:
    members = {name: found[name] for name in MEMBERS}
    said = "|".join(quote(text, safe=":*/@. ") for text in (instance_id, *members.values()))
    return {"id": said, "instance_id": instance_id, **members}
