"""Data sources: what is looked up and not managed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from controlplane.cli import operations as ops
from controlplane.terraform.diagnostics import Diagnostic, ProviderError
from controlplane.terraform.resources.instance import GONE, InstanceResource, of_document
from controlplane.terraform.schema import STRING, STRINGS, Attribute

if TYPE_CHECKING:
    from controlplane.terraform.rest import Client
    from controlplane.terraform.values import State

_INSTANCE = (
    "bandwidth_mib_per_s",
    "storage_gib",
    "partitions",
    "whitelist",
    "deletion_protection",
    "bootstrap",
    "zones",
)


class Lookup(ABC):
    """A data source."""

    name: ClassVar[str]
    about: ClassVar[str]
    attributes: ClassVar[tuple[Attribute, ...]]

    @abstractmethod
    def read(self, client: Client, config: State) -> State:
        """What is found. Raises ProviderError."""


class InstanceLookup(Lookup):
    """An instance that somebody else manages."""

    name = "sluice_instance"
    about = "An instance, by its id or its name."
    attributes = (
        Attribute("id", STRING, "its id, or name", computed=True),
        Attribute("name", STRING, "its name, or id", computed=True),
        Attribute("state", STRING, "such as running", computed=True, settable=False),
        *(
            Attribute(each.name, each.type, each.about, computed=True, settable=False)
            for each in InstanceResource.attributes
            if each.name in _INSTANCE
        ),
    )

    def read(self, client: Client, config: State) -> State:
        instance_id, name = config["id"], config["name"]
        if (instance_id is None) == (name is None):
            raise ProviderError(Diagnostic("One of id and name", "Write one of both, not both.", ("id",)))
        if instance_id is None:
            instance_id = _id_of(client, name)
        found = client.get(ops.INSTANCE, instance_id=instance_id)
        return {**of_document(found), "state": found["state"]}


class ZonesLookup(Lookup):
    """Where instances can be."""

    name = "sluice_zones"
    about = "The zones that a placement can wish for."
    attributes = (
        Attribute("names", STRINGS, "all of them", computed=True, settable=False),
        Attribute("taking_new", STRINGS, "those in which new instances are placed now", computed=True, settable=False),
    )

    def read(self, client: Client, config: State) -> State:
        del config
        found = client.get(ops.ZONES)["items"]
        open_now = frozenset(zone["name"] for zone in found if zone["takes_new"])
        return {"names": frozenset(zone["name"] for zone in found), "taking_new": open_now}


def _id_of(client: Client, name: str) -> str:
    found = [each for each in client.items(ops.INSTANCES, query={"name": name}) if each["name"] == name]
    there = [str(each["id"]) for each in found if each["state"] not in GONE]
    if len(there) != 1:
        said = f"Several are called {name}: {', '.join(there)}." if there else f"None is called {name}."
        raise ProviderError(Diagnostic("No instance, or several", said, ("name",)))
    return there[0]
