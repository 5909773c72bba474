"""Changing messages on a tenant's behalf: writing one or some, and deleting records before an offset.

The brokers decide, by the instance's limits, which hold here as for its own clients: how large a message of the topic may be, the
storage bought, the bandwidth. This adds whose it is and the audit trail, in which no content of a message stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core import audit
from controlplane.core.errors import Conflict, Forbidden, Invalid
from controlplane.instances.selectors import instance_running_get
from controlplane.kafka import message_door
from controlplane.kafka.message_door import Message
from controlplane.kafka.topics import names_of
from controlplane.messages.selectors import check_topic, no_partition, out_of_range, spans_of
from quota.contracts.namespace import AUDIT_TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.core.errors import SluiceError
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

MOST_HEADERS = 100
MOST_TOGETHER = 500
FIRST_TIME = 1
"""ms since 1970. 0 is "now" to librdkafka, so a message would not have the time that it was given."""
TO_THE_END = -1
"""Instead of an offset: everything that is there now."""


@dataclass(frozen=True, slots=True)
class ToProduce:
    """A message that may be sent, as far as can be known without sending it. `partition` None: any."""

    instance: Instance
    physical: str  # the topic
    message: Message
    partition: int | None


@dataclass(frozen=True, slots=True)
class ToDelete:
    """Records that may be deleted."""

    instance: Instance
    physical: str  # the topic
    deletions: list[Deletion]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What is deleted in one partition, or would be: records from `first_offset` to before `before_offset`."""

    partition: int
    first_offset: int
    before_offset: int
    end_offset: int  # of the partition

    @property
    def records(self) -> int:
        """Offsets. Where the topic is compacted there are fewer records."""
        return max(0, self.before_offset - self.first_offset)


def message_produce(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    partition: int | None = None,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp_ms: int | None = None,
) -> Message:
    """Write one message, acknowledged by all in-sync replicas, and say where it is.

    `partition` None: by the key as Java's producers choose, any if the key is null. Raises NotFound, Invalid (message_too_large,
    invalid_record), LimitReached (storage_full), Conflict (topic_reserved), ClusterUnavailable: then it may have been written all
    the same.
    """
    asked = message_judge(
        organisation=organisation,
        instance_id=instance_id,
        topic=topic,
        partition=partition,
        key=key,
        value=value,
        headers=headers,
        timestamp_ms=timestamp_ms,
    )
    written = message_door.door(asked.instance.cluster.address).produce(asked.physical, asked.message, partition)
    detail: dict[str, object] = {"partition": written.partition, "offset": written.offset, "bytes": written.size}
    _audit(organisation, actor, "message.produce", asked.instance, topic, detail)
    return written


def message_judge(
    *,
    organisation: Organisation,
    instance_id: str,
    topic: str,
    partition: int | None = None,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp_ms: int | None = None,
) -> ToProduce:
    """Whether a message may be sent. What brokers refuse they say when they have it; `outlook` works it out.

    Raises NotFound, Invalid, Conflict (topic_reserved), ClusterUnavailable.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    physical = _to_change(instance, topic)
    if len(headers) > MOST_HEADERS:
        raise Invalid.field("headers", f"{MOST_HEADERS} at most")
    if timestamp_ms is not None and timestamp_ms < FIRST_TIME:
        raise Invalid.field("timestamp_ms", f"must be {FIRST_TIME} or more")
    if partition is not None:
        _check_partitions(message_door.door(instance.cluster.address), physical, [partition])
    return ToProduce(instance, physical, Message(-1, -1, timestamp_ms, key, value, tuple(headers)), partition)


def messages_produce(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    messages: Sequence[tuple[bytes | None, bytes | None]],
) -> list[Message | SluiceError]:
    """Write up to MOST_TOGETHER messages, each a key and a value: of each, where it is, or what `message_produce` raises of it.

    They go to partitions by their keys. One that is refused keeps no other back. Raises NotFound, Invalid, Conflict
    (topic_reserved), ClusterUnavailable: then none was sent.
    """
    if not 0 < len(messages) <= MOST_TOGETHER:
        raise Invalid.field("messages", f"1 to {MOST_TOGETHER} are written together")
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    physical = _to_change(instance, topic)
    asked = [Message(-1, -1, None, key, value) for key, value in messages]
    outcomes = message_door.door(instance.cluster.address).produce_several(physical, asked)
    written = [each for each in outcomes if isinstance(each, Message)]
    detail: dict[str, object] = {"messages": len(written), "bytes": sum(each.size for each in written)}
    if written:
        _audit(organisation, actor, "message.produce", instance, topic, detail)
    return outcomes


def records_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    before: Mapping[int, int],
    is_owner: bool,
    dry_run: bool = False,
) -> list[Deletion]:
    """Delete the records before these offsets, by partition, for good; with `dry_run` only say how many they are.

    Raises NotFound, Invalid (offset_out_of_range), Forbidden, Conflict (topic_reserved, topic_compacted), ClusterUnavailable.
    """
    asked = records_judge(
        organisation=organisation, instance_id=instance_id, topic=topic, before=before, is_owner=is_owner
    )
    going = {each.partition: each.before_offset for each in asked.deletions if each.records}
    if going and not dry_run:
        message_door.door(asked.instance.cluster.address).delete_before(asked.physical, going)
        detail: dict[str, object] = {
            "records": sum(each.records for each in asked.deletions),
            "before": {str(partition): offset for partition, offset in going.items()},
        }
        _audit(organisation, actor, "topic.records.delete", asked.instance, topic, detail)
    return asked.deletions


def records_judge(
    *, organisation: Organisation, instance_id: str, topic: str, before: Mapping[int, int], is_owner: bool
) -> ToDelete:
    """Which records lie before these offsets, by partition, and whether they may be deleted.

    Raises NotFound, Invalid (offset_out_of_range), Forbidden, Conflict (topic_reserved), ClusterUnavailable.
    """
    if not is_owner:
        raise Forbidden("only owners of the organisation delete records")
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    physical = _to_change(instance, topic)
    if not before:
        raise Invalid.field("before", "name at least one partition")
    door = message_door.door(instance.cluster.address)
    _check_partitions(door, physical, list(before))
    spans = spans_of(instance, topic, sorted(before))
    found = []
    for partition, asked in sorted(before.items()):
        span = spans.get(partition)
        if span is None:
            raise Conflict(f"partition {partition} has no leader now", code="partition_unavailable")
        offset = span.end if asked == TO_THE_END else asked
        if not span.start <= offset <= span.end:
            raise out_of_range(asked, partition, span)
        found.append(Deletion(partition, span.start, offset, span.end))
    return ToDelete(instance, physical, found)


def _to_change(instance: Instance, topic: str) -> str:
    """The physical name of a topic that tenants may change."""
    if topic == AUDIT_TOPIC:
        raise Conflict(f"{topic} is the service's: it can be read, and not be changed", code="topic_reserved")
    check_topic(instance, topic)
    return names_of(instance.id).topic_in(topic)


def _check_partitions(door: message_door.MessageDoor, physical: str, asked: Sequence[int]) -> None:
    """Librdkafka would wait for a partition that is not there."""
    with door.reader(physical) as reader:
        partitions = reader.partitions()
    for partition in asked:
        if not 0 <= partition < partitions:
            raise no_partition(partition, partitions)


def _audit(
    organisation: Organisation, actor: str, action: str, instance: Instance, topic: str, detail: dict[str, object]
) -> None:
    audit.record(organisation=organisation, actor=actor, action=action, target=f"{instance.id}/{topic}", detail=detail)
