"""Which topics take in or give out most, by the hours that are metered for the bill."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.actions.calls import Call, moment_of, offered
from controlplane.ckafka_api.actions.routes import hosts_of
from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.metering import selectors as metering
from controlplane.routes.selectors import routes_shown
from controlplane.topics.selectors import topic_list
from quota.contracts.instance import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

PRODUCED, CONSUMED = "PRO", "CON"
MOST_TOPICS = 100
DAY = timedelta(days=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def topic_flow(call: Call) -> dict[str, Any]:
    """DescribeTopicFlowRanking: the topics with most, up to MOST_TOPICS, in the hours that begin in the range.

    Without dates it is the last day. A topic that was deleted since has no partitions.
    """
    asked = call.parameters
    offered(asked, {"BrokerIp": ("",)})
    if asked["RankingType"] not in (PRODUCED, CONSUMED):
        raise CkafkaError(Code.INVALID_VALUE, f"RankingType must be {PRODUCED} or {CONSUMED}.")
    start, end = _range(asked)
    used = metering.topics_used(instance=call.instance, start=start, end=end)
    flows = [
        (row.produced_bytes if asked["RankingType"] == PRODUCED else row.consumed_bytes, row.topic) for row in used
    ]
    first = sorted((row for row in flows if row[0]), key=lambda row: (-row[0], row[1]))[:MOST_TOPICS]
    there = {view.topic.name: view.topic for view in topic_list(**call.view)}
    rows = [
        {
            "TopicId": name,
            "TopicName": name,
            "PartitionNum": there[name].partitions if name in there else 0,
            "ReplicaNum": there[name].replication_factor if name in there else 0,
            "TopicTraffic": f"{flow / MIB:.2f}",
        }
        for flow, name in first
    ]
    return {"TopicFlow": rows, "BrokerIp": hosts_of(routes_shown([call.instance])[call.instance.id])}


def _range(asked: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """The beginning, and the moment before which it ends. Raises CkafkaError."""
    end = _end_of(asked["EndDate"]) if asked.get("EndDate") else SYSTEM_CLOCK.now()
    try:
        start = moment_of(asked["BeginDate"]) if asked.get("BeginDate") else end - DAY
        start, end = start.astimezone(UTC), end.astimezone(UTC)
    except OverflowError as error:
        raise CkafkaError(Code.INVALID_VALUE, "A date is beyond the calendar.") from error
    if start >= end:
        raise CkafkaError(Code.INVALID_VALUE, "BeginDate must be before EndDate.")
    return start, end


def _end_of(text: str) -> datetime:
    """A day without a time of day is meant as a whole."""
    moment = moment_of(text)
    try:
        return moment + DAY if _DATE.fullmatch(text) else moment
    except OverflowError as error:
        raise CkafkaError(Code.INVALID_VALUE, "A date is beyond the calendar.") from error
