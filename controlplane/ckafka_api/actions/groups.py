"""Consumer groups. A group that is not there is Dead, as the vendor's DescribeGroupInfo has it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, done, page_of
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.errors import AlreadyExists
from controlplane.groups import selectors, services
from controlplane.groups.moving import Strategy
from controlplane.kafka import groups
from controlplane.topics.selectors import topic_get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.groups.selectors import GroupSummary, GroupView, PartitionLag
    from controlplane.kafka.group_door import DescribedGroup, ListedGroup
    from controlplane.kafka.groups import Group

SHIFT, TIME, OFFSET = 0, 1, 2
EARLIEST, LATEST = -2, -1
"""Of ShiftTimestamp."""
NOTHING_COMMITTED = -1
PROTOCOL_TYPE = "consumer"
MOST_AT_ONCE = 50
MOST_MOVES = 500


def listed(call: Call) -> dict[str, Any]:
    """DescribeGroup."""
    names = _listed(call, call.parameters.get("SearchWord", ""))
    for each in call.parameters.get("Filters", ()):
        if each.get("Name") != "GroupState":
            raise CkafkaError(Code.INVALID_FILTER, "The filter that is offered here is GroupState.")
        names = [group for group in names if group.state.lower() in {value.lower() for value in each.get("Values", ())}]
    page = names[page_of(call.parameters, default=20, most=MOST_AT_ONCE)]
    found = selectors.group_summaries(**call.view, names=[group.name for group in page])
    rows = [{"Group": group.name, "Protocol": group.protocol} for group in found]
    return {"TotalCount": len(names), "GroupList": rows}


def described(call: Call) -> list[dict[str, Any]]:
    """DescribeGroupInfo."""
    asked = list(dict.fromkeys(call.parameters["GroupList"]))
    if not 0 < len(asked) <= MOST_AT_ONCE:
        raise CkafkaError(Code.INVALID_VALUE, f"GroupList must name 1 to {MOST_AT_ONCE} groups.")
    there = {group.name for group in selectors.group_names(**call.view)}
    present = [name for name in asked if name in there]
    found = {group.name: group for group in selectors.group_summaries(**call.view, names=present)} if present else {}
    return [
        _described(found[name]) if name in found else {"Group": name, "ErrorCode": "0", "State": "Dead"}
        for name in asked
    ]


def offsets(call: Call) -> dict[str, Any]:
    """DescribeGroupOffsets."""
    asked = call.parameters
    group = selectors.group_get(**call.view, name=asked["Group"], paced=False)
    wanted, word = asked.get("Topics"), asked.get("SearchWord", "")
    topics = [
        {"Topic": topic, "Partitions": [_offset(row) for row in rows]}
        for topic, rows in _by_topic(group)
        if (wanted is None or topic in wanted) and word in topic
    ]
    page = topics[page_of(asked, default=50, most=50)]
    return {"TotalCount": len(topics), "TopicList": page}


def create(call: Call) -> dict[str, Any]:
    """CreateConsumer: a group that begins with what comes to these topics from now on."""
    asked = call.parameters
    topics = [*([asked["TopicName"]] if asked.get("TopicName") else []), *asked.get("TopicNameList", ())]
    if not topics:
        raise CkafkaError(Code.MISSING_PARAMETER, "One of `TopicName` and `TopicNameList` must name a topic.")
    try:
        services.group_create(**call.place, name=asked["GroupName"], topic_names=topics)
    except AlreadyExists as error:
        raise CkafkaError(Code.IN_USE, error.detail) from error
    return done()


def topic_forget(call: Call) -> dict[str, Any]:
    """DeleteGroupSubscribeTopic."""
    services.topic_forget(**call.place, name=call.parameters["Group"], topic=call.parameters["Topic"])
    return done()


def offsets_move(call: Call) -> dict[str, Any]:
    """ModifyGroupOffsets."""
    asked = call.parameters
    strategy, value = _strategy(call)
    topics: Sequence[str] | None = asked.get("Topics")
    partitions = asked.get("Partitions")
    if topics is None and partitions is not None:
        topics = selectors.group_get(**call.view, name=asked["Group"], paced=False).topics
    _check_how_many(topics or ())
    for topic in topics if topics is not None else (None,):
        services.offsets_reset(
            **call.place, name=asked["Group"], strategy=strategy, value=value, topic=topic, partitions=partitions
        )
    return done()


def offsets_set(call: Call) -> dict[str, Any]:
    """BatchModifyGroupOffsets: an offset for each partition."""
    asked = call.parameters
    name = asked["GroupName"]
    topics = asked.get("TopicName") or selectors.group_get(**call.view, name=name, paced=False).topics
    for row in asked["Partitions"]:
        if {"Partition", "Offset"} - row.keys():
            raise CkafkaError(Code.MISSING_PARAMETER, "Each of `Partitions` must have Partition and Offset.")
    _check_how_many([topic for topic in topics for _ in asked["Partitions"]])
    for topic in topics:
        for row in asked["Partitions"]:
            services.offsets_reset(
                **call.place, name=name, strategy=Strategy.OFFSET, value=row["Offset"], topic=topic,
                partitions=[row["Partition"]],
            )  # fmt: skip
    return done()


def delete(call: Call) -> dict[str, Any]:
    """DeleteGroup."""
    services.group_delete(**call.place, name=call.parameters["Group"])
    return done()


def subscribed(call: Call) -> dict[str, Any]:
    """DescribeConsumerGroup: groups and the topics of which they have offsets."""
    asked = call.parameters
    names = [group.name for group in _listed(call, "") if group.name == asked.get("GroupName", group.name)]
    page = names[page_of(asked, default=20, most=MOST_AT_ONCE)]
    found = groups.read(call.instance.cluster.address, call.instance.id, page) if page else []
    topic = asked.get("TopicName") if "GroupName" in asked else None
    rows: list[dict[str, Any]] = [
        {"ConsumerGroupName": group.name, "SubscribedInfo": _subscriptions(group, topic)} for group in found
    ]
    topics = sorted({info["TopicName"] for row in rows for info in row["SubscribedInfo"]})
    numbers = sorted({number for row in rows for info in row["SubscribedInfo"] for number in info["Partition"]})
    topic_rows = [{"TopicId": each, "TopicName": each} for each in topics]
    return {
        "TotalCount": len(names),
        "TopicList": topic_rows,
        "GroupList": rows,
        "TotalPartition": len(numbers),
        "PartitionListForMonitor": [{"PartitionId": number} for number in numbers],
        "TotalTopic": len(topics),
        "TopicListForMonitor": topic_rows,
        "GroupListForMonitor": [{"GroupName": group.name} for group in found],
    }


def of_topic(call: Call) -> dict[str, Any]:
    """DescribeTopicSubscribeGroup: groups that have an offset of the topic, or read it now."""
    topic = topic_get(**call.view, name=call.parameters["TopicName"]).topic.name
    names = [group.name for group in _listed(call, "")]
    found = (
        [
            group
            for group in groups.read(call.instance.cluster.address, call.instance.id, names)
            if topic in _topics(group)
        ]
        if names
        else []
    )
    states = [group.described.state for group in found]
    counted = ",".join(f"{state}:{states.count(state)}" for state in sorted(set(states)))
    page = found[page_of(call.parameters, default=20, most=MOST_AT_ONCE)]
    rows = [_described(group.described) for group in page]
    return {"TotalCount": len(found), "StatusCountInfo": counted, "GroupsInfo": rows, "Status": 1}


def _check_how_many(moves: Sequence[str]) -> None:
    """Each is some questions to the brokers, and an answer must not take minutes."""
    if len(moves) > MOST_MOVES:
        raise CkafkaError(
            Code.INVALID_VALUE, f"A request moves a group in {MOST_MOVES} topics, or partitions, at most."
        )


def _listed(call: Call, word: str) -> list[ListedGroup]:
    return [group for group in selectors.group_names(**call.view) if word in group.name]


def _topics(group: Group) -> set[str]:
    read_now = {topic for member in group.described.members for topic, _ in member.partitions}
    return read_now | {topic for topic, _ in group.committed}


def _described(group: GroupSummary | DescribedGroup) -> dict[str, Any]:
    members = [
        {
            "MemberId": member.id,
            "ClientId": member.client_id,
            "ClientHost": member.host,
            "Assignment": {
                "Topics": [
                    {"Topic": topic, "Partitions": [number for _, number in places]}
                    for topic, places in groupby(sorted(member.partitions), key=lambda place: place[0])
                ]
            },
        }
        for member in group.members
    ]
    return {
        "Group": group.name,
        "ErrorCode": "0",
        "State": group.state,
        "ProtocolType": PROTOCOL_TYPE,
        "Protocol": group.protocol,
        "Members": members,
    }


def _by_topic(group: GroupView) -> list[tuple[str, list[PartitionLag]]]:
    rows = sorted((row for row in group.partitions if row.offset is not None), key=lambda row: row.place)
    return [(topic, list(of_topic)) for topic, of_topic in groupby(rows, key=lambda row: row.topic)]


def _offset(row: PartitionLag) -> dict[str, Any]:
    return {
        "Partition": row.partition,
        "Offset": NOTHING_COMMITTED if row.offset is None else row.offset,
        "LogEndOffset": row.end_offset,
        "Lag": row.lag_messages,
        "ErrorCode": 0,
    }


def _subscriptions(group: Group, topic: str | None) -> list[dict[str, Any]]:
    offsets: dict[str, dict[int, int]] = {}
    for (name, number), offset in sorted(group.committed.items()):
        if topic in (None, name):
            offsets.setdefault(name, {})[number] = offset
    return [
        {
            "TopicName": name,
            "TopicId": name,
            "Partition": list(of_topic),
            "PartitionOffset": [{"Partition": str(number), "Offset": offset} for number, offset in of_topic.items()],
        }
        for name, of_topic in offsets.items()
    ]


def _strategy(call: Call) -> tuple[Strategy, int | None]:
    asked = call.parameters
    needed = {SHIFT: "Shift", TIME: "ShiftTimestamp", OFFSET: "Offset"}.get(asked["Strategy"])
    if needed is None:
        raise CkafkaError(Code.INVALID_VALUE, "Strategy must be 0, 1 or 2.")
    if needed not in asked:
        raise CkafkaError(
            Code.MISSING_PARAMETER, f"The parameter `{needed}` is missing: Strategy is {asked['Strategy']}."
        )
    value = asked[needed]
    if needed == "ShiftTimestamp" and value in (EARLIEST, LATEST):
        return (Strategy.EARLIEST if value == EARLIEST else Strategy.LATEST), None
    return {SHIFT: Strategy.SHIFT, TIME: Strategy.TIMESTAMP, OFFSET: Strategy.OFFSET}[asked["Strategy"]], value
