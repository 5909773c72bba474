"""Where Kafka keeps a cluster in ZooKeeper, and the JSON it keeps there (as Kafka 3.9 in ZooKeeper mode writes it).

    /brokers/ids/<id>                              ephemeral; czxid = broker epoch
    /brokers/topics/<topic>                        topic id and assignment
    /brokers/topics/<topic>/partitions/<p>/state   leader and ISR; the node's version = partition epoch
    /controller                                    ephemeral; who is the controller
    /controller_epoch                              a plain number, grows at every election
    /admin/delete_topics/<topic>                   deletions that are not finished
    /config/topics/<topic>                         overrides of one topic
    /config/brokers/<id>                           settings of one broker, changed while it runs
    /config/brokers/<default>                      the same for all brokers; the angle brackets are Kafka's
    /config/changes/config_change_<seq>            names what changed below /config

Readers ignore members they do not know. A topic id is written as Kafka prints it: base64 of its 16 bytes, URL-safe,
without padding (22 characters). Pure: bytes in, values out.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from quota.contracts.instance import address_text, parse_address

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
DELETE_TOPICS = "/admin/delete_topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
CONFIG_CHANGES = "/config/changes"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"

PERSISTENT = (BROKER_IDS, TOPICS, DELETE_TOPICS, TOPIC_CONFIGS, BROKER_CONFIGS, CONFIG_CHANGES, LOG_DIR_EVENTS)
"""Directories that every broker makes sure of when it starts."""

INTERNAL_LISTENER = "INTERNAL"
NO_LEADER = -1
LEADER_DURING_DELETE = -2
"""In UpdateMetadata: forget this partition."""


def broker_path(broker_id: int) -> str:
    """Registration of a broker."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Assignment of a topic."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Directory of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, index: int) -> str:
    """Directory of one partition."""
    return f"{TOPICS}/{topic}/partitions/{index}"


def state_path(topic: str, index: int) -> str:
    """Leader and ISR of one partition."""
    return f"{TOPICS}/{topic}/partitions/{index}/state"


def delete_topic_path(topic: str) -> str:
    """A deletion that was asked for."""
    return f"{DELETE_TOPICS}/{topic}"


def topic_config_path(topic: str) -> str:
    """Overrides of a topic."""
    return f"{TOPIC_CONFIGS}/{topic}"


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where other brokers reach one."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Which brokers hold each partition, the preferred leader first."""

    topic_id: UUID
    partitions: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the state node of a partition holds; `partition_epoch` is the node's version, not in the JSON."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int = 0


def _dump(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def topic_id_text(topic_id: UUID) -> str:
    """As Kafka prints topic ids."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> UUID:
    """The inverse of `topic_id_text`. Raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def broker_json(address: BrokerAddress, timestamp_ms: int) -> bytes:
    """Registration of a broker whose only listener for the cluster is the internal one."""
    document: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {INTERNAL_LISTENER: "SASL_PLAINTEXT"},
        "endpoints": [f"{INTERNAL_LISTENER}://{address_text((address.host, address.port))}"],
        "jmx_port": -1,
        "port": address.port,
        "host": address.host,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if address.rack:
        document["rack"] = address.rack
    return _dump(document)


def parse_broker(broker_id: int, data: bytes) -> BrokerAddress:
    """Address of the internal listener. Raises ValueError where there is none."""
    document = json.loads(data)
    for endpoint in document["endpoints"]:
        listener, _, address = endpoint.partition("://")
        if listener == INTERNAL_LISTENER:
            host, port = parse_address(address)
            return BrokerAddress(broker_id, host, port, document.get("rack"))
    raise ValueError(f"broker {broker_id} has no {INTERNAL_LISTENER} listener")


def topic_json(assignment: TopicAssignment) -> bytes:
    """The node of a topic."""
    return _dump(
        {
            "version": 3,
            "topic_id": topic_id_text(assignment.topic_id),
            "partitions": {str(index): list(replicas) for index, replicas in sorted(assignment.partitions.items())},
            "adding_replicas": {},
            "removing_replicas": {},
        }
    )


def parse_topic(data: bytes) -> TopicAssignment:
    """Assignment and id. Raises KeyError for a topic older than topic ids (version 2): nothing here writes those."""
    document = json.loads(data)
    partitions = {int(index): tuple(replicas) for index, replicas in document["partitions"].items()}
    return TopicAssignment(parse_topic_id(document["topic_id"]), dict(sorted(partitions.items())))


def state_json(state: PartitionState) -> bytes:
    """The state node of a partition."""
    return _dump(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def parse_state(data: bytes, version: int) -> PartitionState:
    """State of a partition, from its node's data and version."""
    document = json.loads(data)
    return PartitionState(
        leader=document["leader"],
        leader_epoch=document["leader_epoch"],
        isr=tuple(document["isr"]),
        controller_epoch=document["controller_epoch"],
        partition_epoch=version,
    )


def controller_json(broker_id: int, timestamp_ms: int) -> bytes:
    """Who the controller is."""
    return _dump({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp_ms)})


def parse_controller(data: bytes) -> int:
    """The controller's broker id."""
    broker_id: int = json.loads(data)["brokerid"]
    return broker_id


def config_json(config: Mapping[str, str]) -> bytes:
    """Overrides of an entity."""
    return _dump({"version": 1, "config": dict(sorted(config.items()))})


def parse_config(data: bytes) -> dict[str, str]:
    """Overrides of an entity. Raises ValueError for what is none."""
    try:
        return {str(name): str(value) for name, value in json.loads(data)["config"].items()}
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not a configuration: {error}") from error


def topic_entity(topic: str) -> str:
    """A topic as a thing that has a configuration."""
    return f"topics/{topic}"


def broker_entity(broker: int | None) -> str:
    """A broker as a thing that has a configuration; None is all brokers."""
    return f"brokers/{'<default>' if broker is None else broker}"


def entity_config_path(entity: str) -> str:
    """Overrides of an entity."""
    return f"/config/{entity}"


def config_change_json(topic: str) -> bytes:
    """A notification: this topic's configuration was written."""
    return entity_change_json(topic_entity(topic))


def entity_change_json(entity: str) -> bytes:
    """A notification: this entity's configuration was written."""
    return _dump({"version": 2, "entity_path": entity})


def parse_config_change(data: bytes) -> str | None:
    """The entity that a notification names; None where it is of a kind that is not followed here."""
    entity = str(json.loads(data).get("entity_path", ""))
    kind, _, name = entity.partition("/")
    return entity if kind in ("topics", "brokers") and name else None


def log_dir_event_json(broker_id: int) -> bytes:
    """A data directory of this broker went offline: the controller asks it about all its replicas."""
    return _dump({"version": 1, "broker": broker_id, "event": 1})


def parse_log_dir_event(data: bytes) -> int | None:
    """The broker; None for something else."""
    try:
        broker = json.loads(data)["broker"]
    except (ValueError, KeyError, TypeError):
        return None
    return broker if isinstance(broker, int) else None
