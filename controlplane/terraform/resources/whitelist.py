"""`sluice_whitelist`: who may connect to an instance, or use one topic, apart from the resource of that.

For those who manage it elsewhere than the instance. Whoever writes both has two that undo each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Missing
from controlplane.terraform.resources.base import ID, INSTANCE_ID, Doing, Resource
from controlplane.terraform.resources.instance import GONE
from controlplane.terraform.schema import STRING, STRINGS, Attribute, networks

if TYPE_CHECKING:
    from controlplane.terraform.rest import Client
    from controlplane.terraform.values import State


class WhitelistResource(Resource):
    """A whitelist."""

    name = "sluice_whitelist"
    about = "Who may connect to an instance, or use one of its topics."
    attributes = (
        ID,
        INSTANCE_ID,
        Attribute("topic", STRING, "a topic of it; left out: the instance", replaces=True),
        Attribute("cidrs", STRINGS, "addresses and blocks; [] lets nobody in", required=True, canonical=networks),
    )

    def create(self, doing: Doing, planned: State) -> State:
        """It takes the place of the one before: there always is one."""
        self._put(doing, planned, planned["cidrs"])
        topic = planned["topic"]
        found = planned["instance_id"] if topic is None else f"{planned['instance_id']}/{topic}"
        return self.read(doing.client, {**planned, "id": found})

    def read(self, client: Client, state: State) -> State:
        """That of a topic which is as the instance is no more."""
        ids = {"instance_id": state["instance_id"]}
        if state["topic"] is None:
            found = client.get(ops.INSTANCE, **ids)
            cidrs = None if found["state"] in GONE else found["whitelist"]
        else:
            cidrs = client.get(ops.TOPIC, **ids, topic=state["topic"])["whitelist"]
        if cidrs is None:
            raise Missing(404, {"title": "There is no whitelist", "detail": f"{state['id']} has none of its own."})
        return {**state, "cidrs": frozenset(cidrs)}

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        self._put(doing, planned, planned["cidrs"])
        return self.read(doing.client, {**planned, "id": prior["id"]})

    def delete(self, doing: Doing, state: State) -> None:
        """Nobody may connect to the instance then; the topic is as the instance."""
        self._put(doing, state, frozenset() if state["topic"] is None else None)

    def of_id(self, text: str) -> State:
        instance_id, _, topic = text.partition("/")
        return {"id": text, "instance_id": instance_id, "topic": topic or None}

    def _put(self, doing: Doing, state: State, cidrs: frozenset[str] | None) -> None:
        ids = {"instance_id": state["instance_id"]}
        if state["topic"] is None:
            doing.change(ops.INSTANCE_WHITELIST, {"cidrs": cidrs}, **ids)
        else:
            doing.change(ops.TOPIC_WHITELIST, {"cidrs": cidrs}, **ids, topic=state["topic"])
