"""Every configuration of a topic: its value, its default, where they come from, and what it does.

Brokers say it, as they would to any client (`kafka.config_door`). They are asked on the cluster's own listener, where they know
nothing of an instance's defaults: of these `max.message.bytes` is a topic's, and is put before what brokers have, as they do it
themselves for the instance's clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from controlplane.kafka import config_bytes, config_door

if TYPE_CHECKING:
    from controlplane.instances.models import Instance
    from controlplane.kafka.config_bytes import ConfigRow
    from controlplane.tenants.models import Organisation

OF_INSTANCE = {"max.message.bytes": "max_message_bytes"}
"""Topics' configurations that an instance has a default for, by its name there."""


class Source(StrEnum):
    """Where a value comes from: what is named first wins."""

    TOPIC = "topic"  # it was set for the topic
    INSTANCE = "instance"  # the instance's own default
    BROKER = "broker"  # whoever runs the brokers has set it
    DEFAULT = "default"  # Kafka's own


SOURCES = tuple(each.value for each in Source)
_SOURCES = {
    config_bytes.OF_TOPIC: Source.TOPIC,
    config_bytes.OF_BROKER: Source.BROKER,
    config_bytes.OF_ALL_BROKERS: Source.BROKER,
    config_bytes.IN_FILE: Source.BROKER,
}


@dataclass(frozen=True, slots=True)
class ConfigView:
    """One configuration. `default` is what would be in force if the topic said nothing, and comes from `default_source`."""

    name: str
    value: str | None
    source: Source
    default: str | None
    default_source: Source
    is_read_only: bool
    documentation: str

    @property
    def is_set(self) -> bool:
        """Whether the topic itself says it."""
        return self.source is Source.TOPIC


def topic_configs(*, organisation: Organisation, instance_id: str, name: str) -> list[ConfigView]:
    """Of one topic, by name. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return configs_of(instance, name)


def configs_of(instance: Instance, name: str) -> list[ConfigView]:
    """The same of an instance that is known."""
    own = config_of(instance.config)
    rows = config_door.read(instance.cluster.address, instance.id, name)
    return [_view(row, own.get(OF_INSTANCE.get(row.name, ""))) for row in rows]


def _view(row: ConfigRow, of_instance: object) -> ConfigView:
    default, default_source = row.inherited.value, _SOURCES.get(row.inherited.source, Source.DEFAULT)
    if of_instance is not None:
        default, default_source = str(of_instance), Source.INSTANCE
    is_set = row.source == config_bytes.OF_TOPIC
    return ConfigView(
        row.name,
        row.value if is_set else default,
        Source.TOPIC if is_set else default_source,
        default,
        default_source,
        row.is_read_only,
        row.documentation,
    )
