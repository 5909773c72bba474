"""Where Kafka keeps a cluster in ZooKeeper, and the JSON it keeps there (as Kafka 3.9 in ZooKeeper mode writes it).

    /brokers/ids/<id>                              ephemeral; czxid = broker epoch; and since when its logs are whole
    /brokers/topics/<topic>                        topic id and assignment
    /brokers/topics/<topic>/partitions/<p>/state   leader and ISR; the node's version = partition epoch; and who else
                                                   may be elected (members that Kafka does not have, and skips)
    /controller                                    ephemeral; who is the controller
    /controller_epoch                              a plain number, grows at every election
    /admin/delete_topics/<topic>                   deletions that are not finished
    /admin/reassign_partitions                     reassignments that somebody asks for by writing them here
    /admin/preferred_replica_election              the same of preferred leaders
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
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from quota.contracts.addresses import checked_address
from quota.contracts.instance import address_text

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
ADMIN = "/admin"
DELETE_TOPICS = f"{ADMIN}/delete_topics"
REASSIGN_PARTITIONS = f"{ADMIN}/reassign_partitions"
PREFERRED_ELECTION = f"{ADMIN}/preferred_replica_election"
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
    """Where a broker registers: an ephemeral node, whose czxid is the broker epoch."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Where a topic's assignment stands, with its id."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Directory of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, index: int) -> str:
    """Above the node with a partition's state; empty itself."""
    return f"{TOPICS}/{topic}/partitions/{index}"


def state_path(topic: str, index: int) -> str:
    """Leader and ISR of one partition."""
    return f"{TOPICS}/{topic}/partitions/{index}/state"


def delete_topic_path(topic: str) -> str:
    """A deletion that was asked for."""
    return f"{DELETE_TOPICS}/{topic}"


def topic_config_path(topic: str) -> str:
    """Where the overrides of a topic stand."""
    return f"{TOPIC_CONFIGS}/{topic}"


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where other brokers reach one."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_plaintext: bool = field(default=True, compare=False)  # only written: nobody decides by it what to speak


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Which brokers hold each partition, the preferred leader first."""

    topic_id: UUID
    partitions: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # only of partitions that are reassigned
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the state node of a partition holds; `partition_epoch` is the node's version, not in the JSON."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int = 0
    eligible: tuple[int, ...] = ()
    """Not in sync any more, but they have all that is committed (KIP-966: eligible leader replicas)."""
    last_leader: int = NO_LEADER
    """Who led last, while nobody does."""
    broker_epochs: Mapping[int, int] = field(default_factory=dict)
    """Of each of `isr` and `eligible`: the registration under which it has what is committed."""


def _dump(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def topic_id_text(topic_id: UUID) -> str:
    """As Kafka prints topic ids."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> UUID:
    """The inverse of `topic_id_text`. Raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def broker_json(address: BrokerAddress, timestamp_ms: int, whole_since: int | None = None) -> bytes:
    """Registration of a broker whose only listener for the cluster is the internal one.

    `whole_since`: since which of its registrations its logs have lost nothing; None: not even since the last one.
    """
    document: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {INTERNAL_LISTENER: "SASL_PLAINTEXT" if address.is_plaintext else "SSL"},
        "endpoints": [f"{INTERNAL_LISTENER}://{address_text((address.host, address.port))}"],
        "jmx_port": -1,
        "port": address.port,
        "host": address.host,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if address.rack:
        document["rack"] = address.rack
    if whole_since is not None:
        document["whole_since"] = whole_since
    return _dump(document)


def parse_broker(broker_id: int, data: bytes) -> BrokerAddress:
    """Address of the internal listener. Raises ValueError where there is none."""
    document = json.loads(data)
    for endpoint in document["endpoints"]:
        listener, _, address = endpoint.partition("://")
        if listener == INTERNAL_LISTENER:
            host, port = checked_address(address)
            return BrokerAddress(broker_id, host, port, document.get("rack"))
    raise ValueError(f"broker {broker_id} has no {INTERNAL_LISTENER} listener")


def parse_whole_since(data: bytes, broker_epoch: int) -> int:
    """Since which of its registrations a broker's logs are whole: since this one, where it says nothing."""
    since: int = json.loads(data).get("whole_since", broker_epoch)
    return since


def topic_json(assignment: TopicAssignment) -> bytes:
    """The node of a topic."""
    return _dump(
        {
            "version": 3,
            "topic_id": topic_id_text(assignment.topic_id),
            "partitions": _replicas_json(assignment.partitions),
            "adding_replicas": _replicas_json(assignment.adding),
            "removing_replicas": _replicas_json(assignment.removing),
        }
    )


def _replicas_json(partitions: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(index): list(replicas) for index, replicas in sorted(partitions.items()) if replicas}


def _parse_replicas(document: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
    return dict(sorted((int(index), tuple(replicas)) for index, replicas in document.items()))


def parse_topic(data: bytes) -> TopicAssignment:
    """Assignment and id. Raises KeyError for a topic older than topic ids (version 2): nothing here writes those."""
    document = json.loads(data)
    return TopicAssignment(
        parse_topic_id(document["topic_id"]),
        _parse_replicas(document["partitions"]),
        _parse_replicas(document.get("adding_replicas", {})),
        _parse_replicas(document.get("removing_replicas", {})),
    )


def reassignment_json(targets: Mapping[tuple[str, int], tuple[int, ...]]) -> bytes:
    """The reassignments that are asked for."""
    rows = [
        {"topic": topic, "partition": index, "replicas": list(replicas)} for (topic, index), replicas in targets.items()
    ]
    return _dump({"version": 1, "partitions": rows})


def parse_reassignment(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """The replicas asked for by (topic, partition). Raises ValueError for what is none."""
    try:
        rows = json.loads(data)["partitions"]
        return {(str(row["topic"]), int(row["partition"])): tuple(map(int, row["replicas"])) for row in rows}
    except (LookupError, TypeError) as error:
        raise ValueError(f"not a reassignment: {error}") from error


def parse_preferred_election(data: bytes) -> list[tuple[str, int]]:
    """The (topic, partition) pairs whose preferred replica shall lead. Raises ValueError for what is none."""
    try:
        return [(str(row["topic"]), int(row["partition"])) for row in json.loads(data)["partitions"]]
    except (LookupError, TypeError) as error:
        raise ValueError(f"not an election: {error}") from error


def state_json(state: PartitionState) -> bytes:
    """The state node of a partition."""
    document: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
    }
    if state.eligible:
        document["eligible_leader_replicas"] = list(state.eligible)
    if state.last_leader != NO_LEADER:
        document["last_known_leader"] = state.last_leader
    if state.broker_epochs:
        document["broker_epochs"] = {str(broker): epoch for broker, epoch in state.broker_epochs.items()}
    return _dump(document)


def parse_state(data: bytes, version: int) -> PartitionState:
    """State of a partition, from its node's data and version."""
    document = json.loads(data)
    return PartitionState(
        leader=document["leader"],
        leader_epoch=document["leader_epoch"],
        isr=tuple(document["isr"]),
        controller_epoch=document["controller_epoch"],
        partition_epoch=version,
        eligible=tuple(document.get("eligible_leader_replicas", ())),
        last_leader=document.get("last_known_leader", NO_LEADER),
        broker_epochs={int(broker): epoch for broker, epoch in document.get("broker_epochs", {}).items()},
    )


def controller_json(broker_id: int, timestamp_ms: int) -> bytes:
    """What the winner of an election writes at /controller."""
    return _dump({"version": 1, "brokerid": broker_id, "timestamp": str(timestamp_ms)})


def parse_controller(data: bytes) -> int:
    """The broker id that /controller holds. Raises ValueError, KeyError."""
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
