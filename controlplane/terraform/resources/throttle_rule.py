"""`sluice_throttle_rule`: a limit within an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.cli import operations as ops
from controlplane.terraform.planning import changed
from controlplane.terraform.resources.base import ID, INSTANCE_ID, Doing, Resource, given, parts
from controlplane.terraform.schema import NUMBER, STRING, STRINGS, Attribute
from controlplane.terraform.values import State, number

if TYPE_CHECKING:
    from controlplane.terraform.rest import Client

RATES = ("produce_mib_per_s", "consume_mib_per_s")
NAMES = ("topics", "users", "clients", "groups")
EACH = "*"
"""In a set where REST has null, as `sluice` has it: each that no nearer rule names."""


class ThrottleRuleResource(Resource):
    """A throttle rule."""

    name = "sluice_throttle_rule"
    about = "A limit for topics, for clients, or for consumer groups."
    attributes = (
        ID,
        INSTANCE_ID,
        Attribute("kind", STRING, "of what", required=True, replaces=True, choices=("topic", "client", "group")),
        Attribute("produce_mib_per_s", NUMBER, "over all brokers; left out: no limit"),
        Attribute("consume_mib_per_s", NUMBER, "over all brokers; left out: no limit"),
        Attribute("topics", STRINGS, "of a topic rule", empty_is_null=True),
        Attribute("users", STRINGS, 'of a client rule; "*": each that no nearer rule names', empty_is_null=True),
        Attribute("clients", STRINGS, "of a client rule: client ids, likewise", empty_is_null=True),
        Attribute("groups", STRINGS, "of a group rule: consumer groups", empty_is_null=True),
    )

    def create(self, doing: Doing, planned: State) -> State:
        body = _body(given(planned, "kind", *RATES, *NAMES))
        found = doing.change(ops.RULE_CREATE, body, instance_id=planned["instance_id"])
        return _state(planned["instance_id"], found)

    def read(self, client: Client, state: State) -> State:
        found = client.get(ops.RULE, instance_id=state["instance_id"], rule_id=_rule_id(state))
        return _state(state["instance_id"], found)

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        """Lists that are no longer written are empty, and rates no limit."""
        body = _body(changed(self.attributes, prior, planned, *RATES, *NAMES))
        instance_id = prior["instance_id"]
        if not body:
            return self.read(doing.client, prior)
        return _state(
            instance_id, doing.change(ops.RULE_CHANGE, body, instance_id=instance_id, rule_id=_rule_id(prior))
        )

    def delete(self, doing: Doing, state: State) -> None:
        doing.change(ops.RULE_DELETE, instance_id=state["instance_id"], rule_id=_rule_id(state))

    def of_id(self, text: str) -> State:
        instance_id, _ = parts(text, "ins-…/rule-…")
        return {"id": text, "instance_id": instance_id}


def _rule_id(state: State) -> str:
    return str(state["id"].partition("/")[2])


def _body(members: dict[str, Any]) -> dict[str, Any]:
    lists = {name: members[name] or () for name in NAMES if name in members}
    return {**members, **{name: [None if each == EACH else each for each in sorted(of)] for name, of in lists.items()}}


def _state(instance_id: str, found: dict[str, Any]) -> State:
    return {
        "id": f"{instance_id}/{found['id']}",
        "instance_id": instance_id,
        "kind": found["kind"],
        **{name: None if found[name] is None else number(found[name]) for name in RATES},
        **{name: frozenset(EACH if each is None else each for each in found[name]) for name in NAMES},
    }
