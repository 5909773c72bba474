"""What writing a message or deleting records would do: brokers are asked how things are, and sent nothing.

A message is judged by what its topic is configured to take, by the replicas in sync, and by what the flow master says of storage:
brokers refuse it by the same. How long it would wait for bandwidth is not foretold. Of records that would go it is asked how many
bytes they have, and which groups have still to read them. Both raise what their services raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.clusters import master
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Affected, affected
from controlplane.core.errors import ClusterUnavailable, Unavailable
from controlplane.kafka import backlog_door, groups, message_door, topics
from controlplane.messages import services, taking
from controlplane.messages.selectors import spans_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.client import Partition
    from controlplane.kafka.topics import Topic
    from controlplane.messages.services import Deletion

MOST_GROUPS = 300
"""That are asked for what they have read."""
MOST_LOSERS = 20
"""Groups of which it is said how much they would lose; of the others together that they would."""
STORAGE_NOT_KNOWN = "whether storage is full is not known now"
NOT_KNOWN = "who has still to read these records is not known: {why}"


@dataclass(frozen=True, slots=True)
class Producing:
    """Where a message would stand, and how large it is; without its content."""

    document: Mapping[str, object]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deleting:
    """By partition the first offset, records and bytes before and afterwards; bytes None: not known."""

    before: Mapping[str, object]
    after: Mapping[str, object]
    problems: tuple[str, ...]
    affected: tuple[Affected, ...]
    rows: tuple[Deletion, ...] = ()
    losers: tuple[
        tuple[str, int], ...
    ] = ()  # groups and records that they have not read, the most first; "": not to be named
    unknown: str = ""  # why it is not known who has still to read them

    @property
    def is_something(self) -> bool:
        """Whether any record would go."""
        return any(row.records for row in self.rows)


def producing(*, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Producing:
    """Of services.message_produce: also raises Invalid (message_too_large, …) and LimitReached, which brokers say otherwise."""
    asked, name = services.message_judge(**members), members["topic"]
    topic = topics.get(asked.instance.cluster.address, asked.instance.id, name)
    settings = topics.settings_in_force(asked.instance.cluster.address, asked.instance.id, name)
    partition = 0 if asked.partition is None and topic.partitions == 1 else asked.partition
    # In the order in which a message meets them: a client asks nobody but a leader, which looks at its tenant's storage first.
    led = _led(topic, partition)
    problems = _check_storage(asked.instance)
    refused = taking.refusal(asked.message, settings, int(clock.now().timestamp() * 1000))
    if refused is not None:
        raise refused
    _check_replicas(led, int(settings.get("min.insync.replicas", "1")))
    message = asked.message
    document = {
        "partition": partition,
        "offset": None if partition is None else spans_of(asked.instance, name, [partition])[partition].end,
        "timestamp_ms": message.timestamp_ms,
        "key_bytes": None if message.key is None else len(message.key),
        "value_bytes": None if message.value is None else len(message.value),
        "headers_bytes": message.headers_bytes,
        "header_count": len(message.headers),
        "batch_bytes": taking.batch_bytes(message),
    }
    return Producing(document, problems)


def _led(topic: Topic, partition: int | None) -> list[Partition]:
    """The partition, or those of which one would be chosen. Raises ClusterUnavailable without a leader."""
    rows = [row for row in topic.layout if partition in (None, row.partition)]
    led = [row for row in rows if row.leader is not None]
    if not led:
        raise ClusterUnavailable(
            "no broker leads the partition now" if len(rows) == 1 else "no partition has a leader now"
        )
    return led


def _check_replicas(led: Sequence[Partition], least: int) -> None:
    """Raises ClusterUnavailable where too few are in sync in each."""
    # As brokers have it, all replicas that there are will do.
    if all(len(row.isr) < min(least, len(row.replicas)) for row in led):
        raise message_door.too_few_in_sync()


def _check_storage(instance: Instance) -> tuple[str, ...]:
    """What is not known of it. Raises LimitReached."""
    try:
        found = master.short(instance.cluster.address, [instance.id])
    except Unavailable:
        return (STORAGE_NOT_KNOWN,)
    if any(row.get("storage_full") for row in found):
        raise message_door.storage_full()
    is_known = bool(found) and not any(row.get("learning") for row in found)
    return () if is_known else (STORAGE_NOT_KNOWN,)


def deleting(*, may_name_groups: bool, **members: Any) -> Deleting:
    """Of services.records_delete: also raises Conflict (topic_compacted), which brokers say otherwise.

    `may_name_groups`: whether the caller may look at groups; else it is only said how many would lose records.
    """
    asked, topic = services.records_judge(**members), members["topic"]
    instance, rows = asked.instance, asked.deletions
    going = {row.partition: row for row in rows if row.records}
    settings = topics.settings_in_force(instance.cluster.address, instance.id, topic) if going else {}
    if "delete" not in settings.get("cleanup.policy", "delete"):
        raise message_door.compacted()
    sizes = _sizes(instance, topic, rows)
    before, after = (_document(rows, sizes, is_after=each) for each in (False, True))
    losers, unknown = _losing(instance, topic, going) if going else ({}, "")
    readers = _readers(losers)
    if not may_name_groups:
        readers, losers = _counted(readers), ({"": len(losers)} if losers else {})
    problems = (*_lost(rows, sizes), *((NOT_KNOWN.format(why=unknown),) if unknown else ()))
    return Deleting(before, after, problems, readers, tuple(rows), tuple(losers.items()), unknown)


def _document(rows: Sequence[Deletion], sizes: Mapping[tuple[int, int], int], *, is_after: bool) -> dict[str, object]:
    found = {}
    for row in rows:
        first = max(row.first_offset, row.before_offset) if is_after else row.first_offset
        size = sizes.get((row.partition, first))
        found[str(row.partition)] = {"first_offset": first, "records": row.end_offset - first, "bytes": size}
    return {"partitions": found}


def _sizes(instance: Instance, topic: str, rows: Sequence[Deletion]) -> dict[tuple[int, int], int]:
    """By partition and offset: the bytes from there to its end, about. Absent: not known."""
    places = [(row.partition, first, row.end_offset) for row in rows for first in (row.first_offset, row.before_offset)]
    stretches = {(topic, *place) for place in places if place[1] < place[2]}
    try:
        found = backlog_door.read(instance.cluster.address, instance.id, sorted(stretches)) if stretches else {}
    except Unavailable:
        found = {}
    known = {(partition, first): size for (_, partition, first, _), size in found.items()}
    return known | {(partition, first): 0 for partition, first, end in places if first >= end}


def _lost(rows: Sequence[Deletion], sizes: Mapping[tuple[int, int], int]) -> tuple[str, ...]:
    records = sum(row.records for row in rows)
    if not records:
        return ()
    pairs = [
        (sizes.get((row.partition, row.first_offset)), sizes.get((row.partition, row.before_offset))) for row in rows
    ]
    known = [first - left for first, left in pairs if first is not None and left is not None]
    about = f" (about {sum(known)} bytes, one replica counted)" if len(known) == len(rows) else ""
    return (f"{_records(records)}{about} would be deleted for good",)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number} records"


def _losing(instance: Instance, topic: str, going: Mapping[int, Deletion]) -> tuple[dict[str, int], str]:
    """Groups that have not read what goes with the records that each would lose, the most first; and why that is not known."""
    try:
        names = [group.name for group in groups.list_all(instance.cluster.address, instance.id)]
        if len(names) > MOST_GROUPS:
            return {}, f"there are more than {MOST_GROUPS} groups"
        found = groups.read(instance.cluster.address, instance.id, names)
    except Unavailable as error:
        return {}, error.detail
    losses = {group.name: _unread(group.committed, topic, going) for group in found}
    return {name: losses[name] for name in sorted(losses, key=lambda name: (-losses[name], name)) if losses[name]}, ""


def _readers(losses: Mapping[str, int]) -> tuple[Affected, ...]:
    losers = list(losses)
    told = [
        each
        for name in losers[:MOST_LOSERS]
        for each in affected("groups", [name], f"would lose {_records(losses[name])} that it has not read")
    ]
    return (*told, *affected("groups", losers[MOST_LOSERS:], "would lose records that they have not read"))


def _counted(readers: tuple[Affected, ...]) -> tuple[Affected, ...]:
    """Only how many they are."""
    total = sum(each.count for each in readers)
    return (Affected("groups", total, (), "would lose records that they have not read"),) if total else ()


def _unread(committed: Mapping[tuple[str, int], int], topic: str, going: Mapping[int, Deletion]) -> int:
    return sum(
        max(0, going[number].before_offset - max(offset, going[number].first_offset))
        for (name, number), offset in committed.items()
        if name == topic and number in going
    )
