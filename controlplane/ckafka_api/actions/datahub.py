"""Topics that are asked for without an instance: the vendor's "elastic" or DIP topics.

With the vendor their names begin with the account's id ("AppId-name"), and where they are it does not say. Here the id is an
instance's: ``ins-k3v9x2qa-orders`` is the topic ``orders`` of ``ins-k3v9x2qa``, and everything is as the actions that name an
instance have it. An organisation's are all topics of its instances.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions import groups, messages
from controlplane.ckafka_api.actions.calls import Call, done, instance_found, offered, page_of
from controlplane.ckafka_api.actions.routes import addresses_of
from controlplane.ckafka_api.actions.topics import DEFAULT_RETENTION_MS
from controlplane.ckafka_api.errors import CkafkaError, Code, ckafka_error
from controlplane.core.errors import SluiceError
from controlplane.messages import services as messages_services
from controlplane.routes.selectors import routes_shown
from controlplane.topics import selectors, services

if TYPE_CHECKING:
    from controlplane.topics.selectors import TopicView

NOT_KEPT = {"Note": ("",), "Tags": ([],)}
MOST_NAME, MOST_PARTITIONS, LEAST_RETENTION_MS = 128, 500, 60_000
IN_USE = 1
RETENTION = "retention.ms"
_NAME = re.compile(r"(?P<instance>ins-[a-z0-9]{8})-(?P<topic>.+)", re.ASCII | re.DOTALL)
_INSTANCE = re.compile(r"ins-[a-z0-9]{8}", re.ASCII)


def create(call: Call) -> dict[str, Any]:
    """CreateDatahubTopic, with as many replicas as the instance's config says."""
    place, wanted = _wanted(call)
    services.topic_create(**place.place, **wanted)
    return {"TopicName": wanted["name"], "TopicId": wanted["name"]}


def create_check(call: Call) -> None:
    """Whether it could be made."""
    place, wanted = _wanted(call)
    services.topic_create_check(**place.view, **wanted)


def _wanted(call: Call) -> tuple[Call, dict[str, Any]]:
    asked = call.parameters
    offered(asked, NOT_KEPT)
    place, topic = _found(call, asked["Name"])
    if len(asked["Name"]) > MOST_NAME:
        raise CkafkaError(Code.INVALID_VALUE, f"Name must have {MOST_NAME} characters at most.")
    if not 0 < asked["PartitionNum"] <= MOST_PARTITIONS:
        raise CkafkaError(Code.INVALID_VALUE, f"PartitionNum must be 1 to {MOST_PARTITIONS}.")
    config = {RETENTION: _retention(asked["RetentionMs"])}
    return place, {"name": topic, "partitions": asked["PartitionNum"], "config": config}


def delete(call: Call) -> dict[str, Any]:
    """DeleteDatahubTopic."""
    place, topic = _found(call, call.parameters["Name"])
    services.topic_delete(**place.place, name=topic)
    return done()


def delete_check(call: Call) -> None:
    """Whether it could be deleted."""
    place, topic = _found(call, call.parameters["Name"])
    services.topic_delete_check(**place.view, name=topic)


def change(call: Call) -> dict[str, Any]:
    """ModifyDatahubTopic: the retention, which is all that is kept."""
    place, changes = _changes(call)
    services.topic_update(**place.place, **changes)
    return done()


def change_check(call: Call) -> None:
    """Whether it could be changed so."""
    place, changes = _changes(call)
    services.topic_update_check(**place.view, **changes)


def _changes(call: Call) -> tuple[Call, dict[str, Any]]:
    asked = call.parameters
    offered(asked, NOT_KEPT)
    place, topic = _found(call, asked["Name"])
    config = {RETENTION: _retention(asked["RetentionMs"])} if "RetentionMs" in asked else None
    return place, {"name": topic, "config": config}


def listed(call: Call) -> dict[str, Any]:
    """DescribeDatahubTopics: those of all instances that run."""
    asked = call.parameters
    offered(asked, {"QueryFromConnectResource": (False,), "ConnectResourceId": ("",), "TopicRegularExpression": ("",)})
    word = asked.get("SearchWord", "")
    found = [
        (instance, topic)
        for instance, topic in selectors.topic_names(organisation=call.organisation)
        if word in f"{instance.id}-{topic}"
    ]
    rows = [
        _shown(place, selectors.topic_get(**place.view, name=topic))
        for instance, topic in found[page_of(asked, default=20, most=100)]
        for place in [replace(call, found=instance)]
    ]
    return {"TotalCount": len(found), "TopicList": rows}


def described(call: Call) -> dict[str, Any]:
    """DescribeDatahubTopic. Users are the instance's, so that the topic has none of its own."""
    place, topic = _found(call, call.parameters["Name"])
    view = selectors.topic_get(**place.view, name=topic)
    addresses = addresses_of(routes_shown([place.instance])[place.instance.id])
    return {
        **_shown(place, view),
        "Address": ",".join(f"{address['Vip']}:{address['Vport']}" for address in addresses),
    }


def offsets(call: Call) -> dict[str, Any]:
    """DescribeDatahubGroupOffsets: of a topic, or, where Name is an instance's id alone, of all that the group reads."""
    asked = call.parameters
    if _INSTANCE.fullmatch(asked["Name"]):
        place = replace(call, found=instance_found(call.organisation, asked["Name"]))
        return groups.offsets(place)
    place, topic = _found(call, asked["Name"])
    return groups.offsets(replace(place, parameters={**asked, "Topics": [topic]}))


def message(call: Call) -> dict[str, Any]:
    """FetchDatahubMessageByOffset."""
    return messages.by_offset(_of_topic(call, "Name"))


def newest(call: Call) -> list[dict[str, Any]]:
    """FetchLatestDatahubMessageList: messages from an offset on, with what stands in them."""
    return messages.whole_from(_of_topic(call, "Name"))


def send(call: Call) -> dict[str, Any]:
    """SendMessage. An id says where a message is: its partition and offset."""
    asked = call.parameters
    place, topic = _found(call, asked["DataHubId"])
    for each in asked["Message"]:
        if "Body" not in each:
            raise CkafkaError(Code.MISSING_PARAMETER, "Each of `Message` must have a Body.")
    sent = [(each["Key"].encode() if "Key" in each else None, each["Body"].encode()) for each in asked["Message"]]
    outcomes = messages_services.messages_produce(**place.place, topic=topic, messages=sent)
    refused = [each for each in outcomes if isinstance(each, SluiceError)]
    if refused:
        error = ckafka_error(refused[0])
        written = len(outcomes) - len(refused)
        raise CkafkaError(
            error.code, f"{error.message}; {written} of {len(outcomes)} messages are known to be written."
        )
    return {"MessageId": [f"{each.partition}-{each.offset}" for each in outcomes if not isinstance(each, SluiceError)]}


def _of_topic(call: Call, name: str) -> Call:
    """As if the topic had been named with its instance."""
    place, topic = _found(call, call.parameters[name])
    return replace(place, parameters={**call.parameters, "Topic": topic})


def _found(call: Call, name: str) -> tuple[Call, str]:
    """A call about the instance, and the topic's name in it. Raises CkafkaError."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise CkafkaError(
            Code.INVALID_VALUE, "A topic's name begins with its instance's id here, as in ins-k3v9x2qa-orders."
        )
    return replace(call, found=instance_found(call.organisation, match["instance"])), match["topic"]


def _retention(milliseconds: int) -> str:
    if milliseconds < LEAST_RETENTION_MS:
        raise CkafkaError(Code.INVALID_VALUE, f"RetentionMs must be {LEAST_RETENTION_MS} at least.")
    return str(milliseconds)


def _shown(call: Call, view: TopicView) -> dict[str, Any]:
    name = view.topic.name
    return {
        "Name": f"{call.instance.id}-{name}",
        "TopicName": name,
        "TopicId": name,
        "PartitionNum": view.topic.partitions,
        "RetentionMs": int((view.config or {}).get(RETENTION, DEFAULT_RETENTION_MS)),
        "Status": IN_USE,
    }
