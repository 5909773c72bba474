"""`sluice_instance`: what is bought. Sizes, name and config are changed in place; its place cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Missing, ProviderError
from controlplane.terraform.planning import changed
from controlplane.terraform.resources.base import ID, TIMEOUTS, Doing, Resource, given
from controlplane.terraform.schema import BOOL, NUMBER, STRING, STRINGS, Attribute, networks
from controlplane.terraform.values import State, is_known, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.terraform.rest import Client

GONE = ("isolated", "deleting", "deleted")
SIZES = ("bandwidth_mib_per_s", "storage_gib")
WORDS = ("confirm_price", "accept_full_storage")
"""Said with a change, and kept nowhere."""
CONFIG = (
    Attribute("auto_create_topics", BOOL, "whether a topic comes into being when a client names it", computed=True),
    Attribute("default_partitions", NUMBER, "of a topic that does not say", computed=True),
    Attribute("default_replication_factor", NUMBER, "of a topic that does not say", computed=True),
    Attribute("max_message_bytes", NUMBER, "the largest batch of records of a topic that does not say", computed=True),
    Attribute("allow_everyone_if_no_acl_found", BOOL, "who may use what has no ACL", computed=True),
    Attribute("super_users", STRINGS, "principals who may do everything, such as User:admin", computed=True),
    Attribute("audit", BOOL, "whether brokers write what happens to __sluice_audit", computed=True),
)
WINDOW = (
    Attribute("day", STRING, "day of the week", required=True),
    Attribute("hour_utc", NUMBER, "its beginning", required=True),
    Attribute("length_hours", NUMBER, "its length", required=True),
)
PLACEMENT = (
    Attribute("zones", STRINGS, "its cluster has brokers in each of them", empty_is_null=True),
    Attribute("apart_from", STRINGS, "ids of instances that its cluster must not have", empty_is_null=True),
)


class InstanceResource(Resource):
    """An instance."""

    name = "sluice_instance"
    about = "An instance: Kafka of one's own, with the sizes that are paid for."
    attributes = (
        ID,
        Attribute("name", STRING, "what people call it", required=True),
        Attribute("bandwidth_mib_per_s", NUMBER, "for each direction", required=True),
        Attribute("storage_gib", NUMBER, "all replicas together", required=True),
        Attribute("partitions", NUMBER, "replicas included", required=True),
        Attribute(
            "whitelist",
            STRINGS,
            "who may connect; a new one lets nobody in. Left out: somebody else's, such as sluice_whitelist",
            computed=True,
            canonical=networks,
        ),
        Attribute("config", STRING, "what holds for topics that do not say", computed=True, nested=CONFIG),
        Attribute("deletion_protection", BOOL, "while it is on, nobody deletes the instance", computed=True),
        Attribute("maintenance_window", STRING, "when in a week changes may happen that wait for it", nested=WINDOW),
        Attribute("placement", STRING, "where it is", nested=PLACEMENT, replaces=True, empty_is_null=True),
        Attribute("confirm_price", BOOL, "the price is known"),
        Attribute("accept_full_storage", BOOL, "less storage than is used is meant"),
        TIMEOUTS,
        Attribute("bootstrap", STRING, "host:port,… of the default route", computed=True, settable=False),
        Attribute("zones", STRINGS, "where its brokers are", computed=True, settable=False),
        Attribute("created_at", STRING, "when it was bought", computed=True, settable=False),
    )
    codes: ClassVar[Mapping[str, str]] = {
        "deletion_protected": "deletion_protection",
        "price_unconfirmed": "confirm_price",
        "storage_below_use": "storage_gib",
        "no_place": "placement",
    }

    def create(self, doing: Doing, planned: State) -> State:
        """Buy it, and wait until it is open. What fails behind the purchase leaves its id with Terraform."""
        sizes = (*SIZES, "partitions")
        members = given(
            planned, "name", *sizes, "config", "deletion_protection", "maintenance_window", "placement", "confirm_price"
        )
        whitelist = planned["whitelist"] if is_known(planned["whitelist"]) else None
        answer = doing.change(ops.INSTANCE_CREATE, {**members, "whitelist": whitelist or frozenset()})
        begun = {**_left_out(planned), "id": answer["id"]}
        try:
            doing.awaited(answer, planned, "create")
            return self.read(doing.client, begun)
        except ProviderError as error:
            error.state = begun
            raise

    def read(self, client: Client, state: State) -> State:
        """One that was deleted elsewhere is no more, although it can be restored for a while."""
        found = client.get(ops.INSTANCE, instance_id=state["id"])
        if found["state"] in GONE:
            raise Missing(404, {"title": "The instance was deleted", "detail": _until(found)})
        return {**state, **of_document(found)}

    def update(self, doing: Doing, prior: State, planned: State) -> State:
        """All that differs in one change, and then the whitelist, which is in force without waiting."""
        differs = changed(self.attributes, prior, planned, "name", *SIZES, "partitions", "deletion_protection")
        if differs or not all(_same(self, name, prior, planned) for name in ("maintenance_window", "config")):
            self._change(doing, prior, planned, differs)
        if changed(self.attributes, prior, planned, "whitelist"):
            body = {"cidrs": planned["whitelist"]}
            doing.change(ops.INSTANCE_WHITELIST, body, instance_id=prior["id"])
        return self.read(doing.client, {**planned, "id": prior["id"]})

    def _change(self, doing: Doing, prior: State, planned: State, differs: State) -> None:
        body: dict[str, Any] = {**differs, **given(planned, *WORDS)}
        config = planned["config"] if isinstance(planned["config"], dict) else {}
        settings = changed(CONFIG, prior["config"] or {}, config, *config)
        if settings:
            body["config"] = settings
        if not _same(self, "maintenance_window", prior, planned):
            body["maintenance_window"] = planned["maintenance_window"]  # null is none
        doing.awaited(doing.change(ops.INSTANCE_CHANGE, body, instance_id=prior["id"]), planned, "update")

    def delete(self, doing: Doing, state: State) -> None:
        """It is isolated, and destroyed when its grace period has ended."""
        doing.awaited(doing.change(ops.INSTANCE_DELETE, instance_id=state["id"]), state, "delete")

    def of_id(self, text: str) -> State:
        return {"id": text}


def of_document(found: Mapping[str, Any]) -> State:
    """The attributes that the service says."""
    config = {**found["config"], "super_users": frozenset(found["config"]["super_users"])}
    placement = {name: frozenset(found["placement"].get(name) or ()) or None for name in ("zones", "apart_from")}
    return {
        "id": found["id"],
        "name": found["name"],
        **{name: number(found[name]) for name in SIZES},
        "partitions": found["partitions"],
        "whitelist": frozenset(found["whitelist"]),
        "config": config,
        "deletion_protection": found["deletion_protection"],
        "maintenance_window": found["maintenance_window"],
        "placement": placement if any(placement.values()) else None,
        "bootstrap": found["bootstrap"],
        "zones": frozenset(found["zones"]),
        "created_at": found["created_at"],
    }


def _same(resource: Resource, name: str, prior: State, planned: State) -> bool:
    attribute = next(each for each in resource.attributes if each.name == name)
    return not is_known(planned[name]) or attribute.same(prior.get(name), planned[name])


def _left_out(planned: State) -> State:
    """What is known of one that was only just bought: what is not is null, since a state has nothing unknown."""
    return {name: value if is_known(value) else None for name, value in planned.items()}


def _until(found: Mapping[str, Any]) -> str:
    way_back = f"Until {found['destroys_at']} it can be restored: sluice instance restore {found['id']}."
    return way_back if found["destroys_at"] else f"{found['id']} is {found['state']}."
