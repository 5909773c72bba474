"""A sentence on each configuration, for callers that ask DescribeConfigs for documentation. Ours, not Kafka's text."""

from __future__ import annotations

_TOPIC = {
    "cleanup.policy": "What happens to old segments: delete removes them, compact keeps the last record of each key.",
    "compression.gzip.level": "Level of gzip where the broker compresses.",
    "compression.lz4.level": "Level of lz4 where the broker compresses.",
    "compression.type": "How batches are stored; producer keeps what the producer chose.",
    "compression.zstd.level": "Level of zstd where the broker compresses.",
    "delete.retention.ms": "How long a compacted topic keeps a deletion marker, so that readers see it.",
    "file.delete.delay.ms": "How long the files of a deleted segment stay on disk.",
    "flush.messages": "After so many messages a log is forced to disk. 1: nothing is acknowledged that is not on disk.",
    "flush.ms": "After so long a log is forced to disk.",
    "follower.replication.throttled.replicas": "Replicas whose copying is throttled at the follower.",
    "index.interval.bytes": "Bytes of log between two entries of its index.",
    "leader.replication.throttled.replicas": "Replicas whose copying is throttled at the leader.",
    "local.retention.bytes": "Size of the part that is kept on the broker beside tiered storage.",
    "local.retention.ms": "Age of the part that is kept on the broker beside tiered storage.",
    "max.compaction.lag.ms": "The longest time that a record waits for compaction.",
    "max.message.bytes": "The largest batch of records that is taken, compressed.",
    "message.format.version": "Taken and not used, as in Kafka since 3.0: what is stored has format 2.",
    "message.downconversion.enable": "Whether old consumers get records in the formats that they know.",
    "message.timestamp.after.max.ms": "How far in the future a record's time may lie.",
    "message.timestamp.before.max.ms": "How far in the past a record's time may lie.",
    "message.timestamp.difference.max.ms": "The older form of the two bounds on a record's time.",
    "message.timestamp.type": "Whose clock stamps records: the producer's (CreateTime) or the broker's (LogAppendTime).",
    "min.cleanable.dirty.ratio": "The part of a log that must be uncompacted before it is compacted.",
    "min.compaction.lag.ms": "The time for which a record is safe from compaction.",
    "min.insync.replicas": "Replicas that must be in sync for a write with acks=all to be taken.",
    "preallocate": "Whether a new segment's room on disk is taken at once.",
    "remote.log.copy.disable": "Whether tiered storage takes no more segments.",
    "remote.log.delete.on.disable": "Whether tiered segments go when tiered storage is switched off.",
    "remote.storage.enable": "Whether old segments move to tiered storage.",
    "retention.bytes": "The size of a partition above which its oldest segments are deleted; -1 is unlimited.",
    "retention.ms": "The age at which segments are deleted; -1 is never.",
    "segment.bytes": "The size at which a new segment is begun.",
    "segment.index.bytes": "The largest size of a segment's index.",
    "segment.jitter.ms": "A random time by which segment.ms is shortened, so that not all segments end at once.",
    "segment.ms": "The age at which a new segment is begun, even if the last is not full.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may lead when no other is left: this loses data.",
}

_BROKER = {
    "advertised.listeners": "Addresses that clients are told.",
    "auto.create.topics.enable": "Whether a topic comes into being when a client asks for its metadata.",
    "auto.leader.rebalance.enable": "Whether leaderships return to preferred replicas.",
    "broker.id": "The broker's number.",
    "broker.rack": "Where the broker stands.",
    "connections.max.reauth.ms": "For so long a login by SASL is good; then the client logs in again. 0: for good.",
    "connections.max.idle.ms": "A connection that says nothing for so long is closed.",
    "default.replication.factor": "Replicas of a topic that does not say.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "The largest answer to a fetch.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for more members.",
    "group.max.session.timeout.ms": "The longest session timeout a member may have.",
    "group.max.size": "Members that a group may have.",
    "group.min.session.timeout.ms": "The shortest session timeout a member may have.",
    "inter.broker.protocol.version": "The version of the protocol between brokers.",
    "listeners": "Addresses where the broker listens for other brokers.",
    "log.dirs": "Directories that hold the logs.",
    "log.retention.check.interval.ms": "How often it is looked for segments to delete.",
    "max.connections": "Connections of all clients together.",
    "node.id": "The broker's number.",
    "num.partitions": "Partitions of a topic that does not say.",
    "offset.metadata.max.bytes": "The longest text that may be committed with an offset.",
    "offsets.retention.minutes": "How long the offsets of an empty group are kept.",
    "offsets.topic.num.partitions": "Partitions of the topic that holds committed offsets.",
    "offsets.topic.replication.factor": "Replicas of the topic that holds committed offsets.",
    "producer.id.expiration.ms": "A producer that is silent for so long is forgotten.",
    "replica.fetch.max.bytes": "Bytes that a follower fetches of one partition at a time.",
    "replica.fetch.response.max.bytes": "Bytes that a follower fetches at a time.",
    "replica.fetch.wait.max.ms": "How long a follower's fetch waits for bytes.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written to disk.",
    "replica.lag.time.max.ms": "A follower that has not caught up for so long leaves the in-sync replicas.",
    "socket.listen.backlog.size": "Connections that wait to be accepted.",
    "socket.request.max.bytes": "The largest request.",
    "zookeeper.connect": "Where ZooKeeper is.",
    "zookeeper.session.timeout.ms": "A broker that ZooKeeper does not hear of for so long is gone.",
}


def topic_documentation(name: str, policy: str = "") -> str | None:
    """What a configuration of a topic means, and what the policy says of it."""
    meaning = _TOPIC.get(name)
    return f"{meaning} {policy}".rstrip() if meaning is not None else None


def broker_documentation(name: str, topic_name: str | None = None) -> str | None:
    """What a configuration of a broker means; as the default of `topic_name`, if it is one."""
    if topic_name is not None:
        return f"Of topics that do not set {topic_name}: {_TOPIC.get(topic_name, '')}".rstrip()
    return _BROKER.get(name)
