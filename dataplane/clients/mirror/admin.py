"""Requests about topics, to whichever broker has to be asked. Raises ClientError."""

from __future__ import annotations

from collections.abc import Mapping

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import raise_for
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_TOPIC = 2
_OF_THE_TOPIC = 1  # where a configuration comes from, among defaults of all kinds
_SET, _DELETE = 0, 1
_TIMEOUT_MS = 20_000


def create(cluster: Cluster, name: str, partitions: int, factor: int, configs: Mapping[str, str]) -> None:
    """It may be there already."""
    rows = tuple(CreatableTopicConfig(key, value) for key, value in sorted(configs.items()))
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=rows)
    answer: CreateTopicsResponse = cluster.call(
        cluster.controller_id, CreateTopicsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS), timeout_ms=_TIMEOUT_MS
    )
    if answer.topics[0].error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise_for(answer.topics[0].error_code, f"create {name} ({answer.topics[0].error_message})")


def grow(cluster: Cluster, name: str, partitions: int) -> None:
    """To so many partitions."""
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    answer: CreatePartitionsResponse = cluster.call(
        cluster.controller_id, CreatePartitionsRequest(topics=(topic,), timeout_ms=_TIMEOUT_MS), timeout_ms=_TIMEOUT_MS
    )
    raise_for(answer.results[0].error_code, f"grow {name} ({answer.results[0].error_message})")


def configs_of(cluster: Cluster, name: str, where: str = "the target") -> dict[str, str]:
    """What was set for the topic itself. `where` is for who reads of a refusal."""
    request = DescribeConfigsRequest(resources=(DescribeConfigsResource(_TOPIC, name, None),))
    answer: DescribeConfigsResponse = cluster.on_any(lambda connection: connection.call(request))
    raise_for(answer.results[0].error_code, f"looking at the configuration of {name} in {where}")
    return {
        one.name: one.value
        for one in answer.results[0].configs
        if one.config_source == _OF_THE_TOPIC and one.value is not None
    }


def setting_of(cluster: Cluster, name: str, setting: str) -> str | None:
    """What is in force for a topic, wherever it comes from; None where the broker knows no such setting."""
    resource = DescribeConfigsResource(_TOPIC, name, (setting,))
    request = DescribeConfigsRequest(resources=(resource,))
    answer: DescribeConfigsResponse = cluster.on_any(lambda connection: connection.call(request))
    raise_for(answer.results[0].error_code, f"looking at the configuration of {name}")
    return next((one.value for one in answer.results[0].configs if one.name == setting), None)


def configure(cluster: Cluster, name: str, changes: Mapping[str, str | None]) -> None:
    """None: back to the default."""
    rows = tuple(
        IncrementalAlterConfigsRequestAlterableConfig(key, _DELETE if value is None else _SET, value)
        for key, value in sorted(changes.items())
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(_TOPIC, name, rows)
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    answer: IncrementalAlterConfigsResponse = cluster.call(cluster.controller_id, request)
    raise_for(answer.responses[0].error_code, f"configure {name} ({answer.responses[0].error_message})")
