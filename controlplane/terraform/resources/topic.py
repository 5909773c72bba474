"""`sluice_topic`. Partitions only grow in place: fewer of them is another topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import ProviderError
from controlplane.terraform.planning import changed
from controlplane.terraform.resources.base import ID, INSTANCE_ID, Doing, Resource, given, parts
from controlplane.terraform.schema import NUMBER, SETTINGS, STRING, STRINGS, Attribute, networks
from controlplane.terraform.values import State, is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.terraform.rest import Client

NOTES = ("note", "tags")


class TopicResource(Resource):
    """A topic."""

    name = "sluice_topic"
    about = "A topic of an instance."
    attributes = (
        ID,
        INSTANCE_ID,
        Attribute("name", STRING, "its name", required=True, replaces=True),
        Attribute("partitions", NUMBER, "by default as config of the instance says; fewer replaces it", computed=True),
        Attribute("replication_factor", NUMBER, "likewise", computed=True, replaces=True),
        Attribute("config", SETTINGS, 'such as {"retention.ms" = "60000"}: all that is set', empty_is_null=True),
        Attribute(
            "whitelist",
            STRINGS,
            "who may use it, among those who may connect. Left out: somebody else's; at first as the instance",
            computed=True,
            canonical=networks,
        ),
        Attribute("note", STRING, "what is written about it", computed=True),
        Attribute("tags", STRINGS, "words that it is found by", computed=True),
    )

    def create(self, doing: Doing, planned: State) -> State:
        """Make it, and then what is not part of making it."""
        instance_id, _name = planned["instance_id"], planned["name"]
        body = given(planned, "name", "partitions", "replication_factor", "config")
        found = doing.change(ops.TOPIC_CREATE, body, instance_id=instance_id)
        begun = _state(instance_id, found)
        try:
            self._beside(doing, begun, planned)
            return self.read(doing.client, begun)
        except ProviderError as error:
            error.state = begun
            raise

    def read(self, client: Client, state: State) -> State:
        found = client.get(ops.TOPIC, instance_id=state["instance_id"], topic=state["name"])
        return _state(state["instance_id"], found)

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        """Partitions and config in one change; a setting that is no longer written goes back to its default."""
        body: dict[str, Any] = changed(self.attributes, prior, planned, "partitions")
        before, after = prior["config"] or {}, planned["config"] or {}
        config = {name: after.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
        if config or body:
            ids = {"instance_id": prior["instance_id"], "topic": prior["name"]}
            doing.client.change(ops.TOPIC_CHANGE, {**body, **({"config": config} if config else {})}, **ids)
        self._beside(doing, prior, planned)
        return self.read(doing.client, prior)

    def _beside(self, doing: Doing, prior: State, planned: State) -> None:
        ids = {"instance_id": prior["instance_id"], "topic": prior["name"]}
        if changed(self.attributes, prior, planned, "whitelist"):
            doing.change(ops.TOPIC_WHITELIST, {"cidrs": planned["whitelist"]}, **ids)
        notes = changed(self.attributes, prior, planned, *NOTES)
        if notes:
            doing.change(ops.TOPIC_NOTE, notes, **ids)

    def delete(self, doing: Doing, state: State) -> None:
        doing.change(ops.TOPIC_DELETE, instance_id=state["instance_id"], topic=state["name"])

    def of_id(self, text: str) -> State:
        instance_id, name = parts(text, "ins-…/orders")
        return {"instance_id": instance_id, "name": name}

    def replaced(self, prior: State, planned: State) -> Sequence[str]:
        """Fewer partitions than there are."""
        wanted = planned["partitions"]
        return ("partitions",) if is_known(wanted) and wanted is not None and wanted < prior["partitions"] else ()


def _state(instance_id: str, found: dict[str, Any]) -> State:
    whitelist = found["whitelist"]
    return {
        "id": f"{instance_id}/{found['name']}",
        "instance_id": instance_id,
        "name": found["name"],
        "partitions": found["partitions"],
        "replication_factor": found["replication_factor"],
        "config": {name: _text(value) for name, value in (found["config"] or {}).items()},
        "whitelist": None if whitelist is None else frozenset(whitelist),
        "note": found["note"],
        "tags": frozenset(found["tags"]),
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
