"""Topics. Their name is their TopicId too; what the cluster does not keep of them (a note, when they were made) is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, done, offered, page_of
from controlplane.ckafka_api.errors import CkafkaError, Code, ckafka_error
from controlplane.core.errors import SluiceError
from controlplane.core.whitelist import whitelist_parse
from controlplane.kafka import groups
from controlplane.topics import selectors, services

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.kafka.client import Partition
    from controlplane.kafka.group_door import Span
    from controlplane.topics.selectors import TopicView

CONFIG: Mapping[str, str] = {
    "MinInsyncReplicas": "min.insync.replicas",
    "CleanUpPolicy": "cleanup.policy",
    "SegmentMs": "segment.ms",
    "UncleanLeaderElectionEnable": "unclean.leader.election.enable",
    "SegmentBytes": "segment.bytes",
    "MaxMessageBytes": "max.message.bytes",
    "RetentionBytes": "retention.bytes",
    "LogMsgTimestampType": "message.timestamp.type",
    "RetentionMs": "retention.ms",
}
TEXTS = ("CleanUpPolicy", "LogMsgTimestampType")
NOT_KEPT: Mapping[str, Sequence[object]] = {"Note": ("",), "Tags": ([],), "EnableAclRule": (0,), "AclRuleName": ("",)}
DEFAULT_RETENTION_MS = 604_800_000
"""Kafka's, and that of our brokers."""
MOST_IN_A_BATCH = 10
MOST_PARTITIONS = 3_000
NO_LEADER = -1


def create(call: Call) -> dict[str, Any]:
    """CreateTopic."""
    wanted, cidrs = _wanted(call)
    services.topic_create(**call.place, **wanted)
    if cidrs is not None:
        services.topic_whitelist_set(**call.place, name=wanted["name"], cidrs=cidrs)
    return {"TopicId": wanted["name"]}


def create_check(call: Call) -> None:
    """Whether it could be made."""
    services.topic_create_check(**call.view, **_wanted(call)[0])


def _wanted(call: Call) -> tuple[dict[str, Any], Sequence[str] | None]:
    """A new topic, and its whitelist, which is right before there is a topic that it could not be given to."""
    asked = call.parameters
    offered(asked, NOT_KEPT)
    wanted = {
        "name": asked["TopicName"],
        "partitions": asked["PartitionNum"],
        "replication_factor": asked.get("ReplicaNum"),
        "config": _config(asked),
    }
    return wanted, _whitelist_checked(_whitelist_asked(asked))


def _whitelist_checked(cidrs: Sequence[str] | None) -> Sequence[str] | None:
    if cidrs is not None:
        whitelist_parse(cidrs, field="IpWhiteList")
    return cidrs


def delete(call: Call) -> dict[str, Any]:
    """DeleteTopic."""
    services.topic_delete(**call.place, name=call.parameters["TopicName"])
    return done()


def delete_check(call: Call) -> None:
    """Whether it could be deleted."""
    services.topic_delete_check(**call.view, name=call.parameters["TopicName"])


def grow(call: Call) -> dict[str, Any]:
    """CreatePartition: the number that the topic has then."""
    services.topic_update(**call.place, name=call.parameters["TopicName"], partitions=call.parameters["PartitionNum"])
    return done()


def grow_check(call: Call) -> None:
    """Whether it could have so many."""
    asked = call.parameters
    services.topic_update_check(**call.view, name=asked["TopicName"], partitions=asked["PartitionNum"])


def change(call: Call) -> dict[str, Any]:
    """ModifyTopicAttributes."""
    name, config, is_about_whitelist, cidrs = _changes(call)
    if config or not is_about_whitelist:
        services.topic_update(**call.place, name=name, config=config or None)
    if is_about_whitelist:
        services.topic_whitelist_set(**call.place, name=name, cidrs=cidrs)
    return done()


def change_check(call: Call) -> None:
    """Whether it could be changed so."""
    name, config, is_about_whitelist, _ = _changes(call)
    if config or not is_about_whitelist:
        services.topic_update_check(**call.view, name=name, config=config or None)
    else:
        selectors.topic_get(**call.view, name=name)


def _changes(call: Call) -> tuple[str, dict[str, str], bool, Sequence[str] | None]:
    """The topic's name, its config, whether the whitelist is meant as well, and that."""
    asked = call.parameters
    offered(asked, {**NOT_KEPT, "QuotaProducerByteRate": (-1,), "QuotaConsumerByteRate": (-1,), "ReplicaNum": ()})
    is_about_whitelist = "EnableWhiteList" in asked or "IpWhiteList" in asked
    cidrs = _whitelist_checked(_whitelist_asked(asked)) if is_about_whitelist else None
    return asked["TopicName"], _config(asked), is_about_whitelist, cidrs


def change_several(call: Call) -> list[dict[str, Any]]:
    """BatchModifyTopicAttributes: each is changed or refused for itself."""
    topics = call.parameters["Topic"]
    if not 0 < len(topics) <= MOST_IN_A_BATCH:
        raise CkafkaError(Code.INVALID_VALUE, f"Topic must name 1 to {MOST_IN_A_BATCH} topics.")
    return [_changed(call, {name: value for name, value in topic.items() if value is not None}) for topic in topics]


def whitelist_set(call: Call) -> dict[str, Any]:
    """CreateTopicIpWhiteList: those who may use the topic."""
    services.topic_whitelist_set(**call.place, name=call.parameters["TopicName"], cidrs=call.parameters["IpWhiteList"])
    return done()


def whitelist_check(call: Call) -> None:
    """Whether these could be those who may."""
    _whitelist_checked(call.parameters["IpWhiteList"])
    selectors.topic_get(**call.view, name=call.parameters["TopicName"])


def listed(call: Call) -> dict[str, Any]:
    """DescribeTopic."""
    views = _found(call)
    page = views[page_of(call.parameters, default=20, most=50)]
    rows = [{"TopicId": view.topic.name, "TopicName": view.topic.name} for view in page]
    return {"TotalCount": len(views), "TopicList": rows}


def detailed(call: Call) -> dict[str, Any]:
    """DescribeTopicDetail, in the order of names."""
    asked = call.parameters
    offered(asked, {"OrderBy": ("", "PartitionNum")})
    views = _found(call)
    for each in asked.get("Filters", ()):
        if each.get("Name") != "ReplicaNum":
            raise CkafkaError(Code.INVALID_FILTER, "The filter that is offered here is ReplicaNum.")
        views = [view for view in views if str(view.topic.replication_factor) in (each.get("Values") or ())]
    if asked.get("OrderBy"):
        views.sort(key=lambda view: view.topic.partitions)
    if asked.get("OrderType", 0):
        views.reverse()
    page = views[page_of(asked, default=20, most=50)]
    return {"TotalCount": len(views), "TopicList": [_detail(call, view) for view in page]}


def attributes(call: Call) -> dict[str, Any]:
    """DescribeTopicAttributes."""
    view = selectors.topic_get(**call.view, name=call.parameters["TopicName"])
    return {
        "TopicId": view.topic.name,
        "PartitionNum": view.topic.partitions,
        "ReplicaNum": view.topic.replication_factor,
        "EnableWhiteList": int(view.whitelist is not None),
        "IpWhiteList": view.whitelist or [],
        "Config": _config_shown(view.config or {}),
        "Partitions": [
            {
                "Partition": each.partition,
                "LeaderStatus": 0 if each.leader is not None else 1,
                "IsrNum": len(each.isr),
                "ReplicaNum": len(each.replicas),
            }
            for each in view.topic.layout
        ],
    }


def replicas(call: Call) -> dict[str, Any]:
    """DescribeTopicSyncReplica."""
    asked = call.parameters
    topic = selectors.topic_get(**call.view, name=asked["TopicName"]).topic
    wanted = [
        part for part in topic.layout if not asked.get("OutOfSyncReplicaOnly") or set(part.replicas) - set(part.isr)
    ]
    page = wanted[page_of(asked, default=20, most=MOST_PARTITIONS)]
    spans = groups.spans(
        call.instance.cluster.address, call.instance.id, [(topic.name, part.partition) for part in page]
    )
    rows = [_replicas(part, spans.get((topic.name, part.partition))) for part in page]
    return {"TotalCount": len(wanted), "TopicInSyncReplicaList": rows}


def _replicas(part: Partition, span: Span | None) -> dict[str, Any]:
    """Without a leader, its offsets are 0, as is its number of messages."""
    behind = [broker for broker in part.replicas if broker not in part.isr]
    return {
        "Partition": str(part.partition),
        "Leader": NO_LEADER if part.leader is None else part.leader,
        "Replica": _brokers(part.replicas),
        "InSyncReplica": _brokers(part.isr),
        "OutOfSyncReplica": _brokers(behind),
        "BeginOffset": span.start if span else 0,
        "EndOffset": span.end if span else 0,
        "MessageCount": span.end - span.start if span else 0,
    }


def _brokers(numbers: Sequence[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _found(call: Call) -> list[TopicView]:
    offered(call.parameters, {"AclRuleName": ("",)})
    word = call.parameters.get("SearchWord", "")
    views = selectors.topic_list(**call.view)
    if call.parameters.get("SearchWordIgnoreCaseFlag"):
        return [view for view in views if word.lower() in view.topic.name.lower()]
    return [view for view in views if word in view.topic.name]


def _detail(call: Call, view: TopicView) -> dict[str, Any]:
    topic = selectors.topic_get(**call.view, name=view.topic.name)
    config = _config_shown(topic.config or {})
    minutes = config["Retention"] // 60_000
    return {
        "TopicName": view.topic.name,
        "TopicId": view.topic.name,
        "PartitionNum": view.topic.partitions,
        "ReplicaNum": view.topic.replication_factor,
        "EnableWhiteList": view.whitelist is not None,
        "IpWhiteListCount": len(view.whitelist or ()),
        "ForwardStatus": 1,
        "Config": config,
        "RetentionTimeConfig": {"Expect": minutes, "Current": minutes},
    }


def _changed(call: Call, asked: Mapping[str, Any]) -> dict[str, Any]:
    said = {"InstanceId": call.instance.id, "TopicName": asked.get("TopicName", "")}
    try:
        offered(asked, {"Note": ("",), "ReplicaNum": ()})
        services.topic_update(
            **call.place,
            name=asked.get("TopicName", ""),
            partitions=asked.get("PartitionNum"),
            config=_config(asked) or None,
        )
    except SluiceError as error:
        refused = ckafka_error(error)
        return {**said, "ReturnCode": refused.code.value, "Message": refused.message}
    except CkafkaError as error:
        return {**said, "ReturnCode": error.code.value, "Message": error.message}
    return {**said, "ReturnCode": "0", "Message": "ok"}


def _whitelist_asked(asked: Mapping[str, Any]) -> Sequence[str] | None:
    """None: whoever may connect. Raises CkafkaError."""
    is_on = asked.get("EnableWhiteList", int("IpWhiteList" in asked))
    if is_on not in (0, 1):
        raise CkafkaError(Code.INVALID_VALUE, "EnableWhiteList must be 0 or 1.")
    if is_on and "IpWhiteList" not in asked:
        raise CkafkaError(Code.MISSING_PARAMETER, "The parameter `IpWhiteList` is missing: EnableWhiteList is 1.")
    return asked["IpWhiteList"] if is_on else None


def _config(asked: Mapping[str, Any]) -> dict[str, str]:
    """As Kafka names and writes it."""
    return {ours: _text(theirs, asked[theirs]) for theirs, ours in CONFIG.items() if theirs in asked}


def _text(name: str, value: object) -> str:
    if name == "UncleanLeaderElectionEnable":
        return {0: "false", 1: "true"}.get(int(value) if isinstance(value, int) else -1, str(value))
    return str(value).replace(" ", "")


def _config_shown(config: Mapping[str, str]) -> dict[str, Any]:
    """What was set for the topic; the rest is null, which the vendor's models allow for all but the retention."""
    shown: dict[str, Any] = {"Retention": int(config.get("retention.ms", DEFAULT_RETENTION_MS))}
    for theirs, ours in CONFIG.items():
        if ours in config and theirs != "RetentionMs":
            shown[theirs] = config[ours] if theirs in TEXTS else _number(config[ours])
    return shown


def _number(text: str) -> int:
    return int(text == "true") if text in ("true", "false") else int(text)
