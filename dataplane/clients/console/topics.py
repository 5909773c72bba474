"""`topics`: create, list, describe, alter, delete."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TextIO

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from dataplane.clients.console.connection import configuration, pairs
from dataplane.clients.console.failures import USAGE, Failure, failure_of

_PATIENCE_S = 5.0  # beyond the request's own timeout


def create(arguments: Namespace, out: TextIO) -> None:
    """Create one topic; what is not said is as the instance has it."""
    topic = NewTopic(
        arguments.topic,
        num_partitions=arguments.partitions,
        replication_factor=arguments.replication_factor,
        config=pairs(arguments.config, "--config"),
    )
    client = _client(arguments)
    doing = f"creating {arguments.topic}"
    how = {"request_timeout": arguments.timeout, "operation_timeout": arguments.timeout}
    try:
        futures = client.create_topics([topic], validate_only=arguments.validate_only, **how)
    except (ValueError, TypeError) as error:
        raise Failure(f"{doing}: {error}", USAGE) from error
    try:
        _wait(futures, arguments, lambda _: doing)
    except Failure as failure:
        if not (arguments.if_not_exists and "TOPIC_ALREADY_EXISTS" in str(failure)):
            raise
        print(f"{arguments.topic} exists already.", file=out)
        return
    print(f"{arguments.topic} {'could be created' if arguments.validate_only else 'created'}.", file=out)


def list_topics(arguments: Namespace, out: TextIO) -> None:
    """Print every topic's name, one a line."""
    for name in _names(arguments):
        print(name, file=out)


def describe(arguments: Namespace, out: TextIO) -> None:
    """The named topics, or all: a line for each and one for each partition; what is set beside the defaults."""
    names = arguments.topics or _names(arguments)
    if not names:
        return
    client = _client(arguments)
    how = {"request_timeout": arguments.timeout}
    found = _wait(client.describe_topics(TopicCollection(names), **how), arguments, lambda name: f"describing {name}")
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    configs = _wait(
        client.describe_configs(resources, **how), arguments, lambda resource: f"describing {resource.name}"
    )
    own = {resource.name: _own(entries.values()) for resource, entries in configs.items()}
    for name in names:
        _print(found[name], own[name], out)


def alter(arguments: Namespace, out: TextIO) -> None:
    """More partitions, other configurations, or both: configurations first, since they can be undone."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in pairs(arguments.config, "--config").items()
    ]
    entries += [
        ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in arguments.delete_config
    ]
    if not entries and arguments.partitions is None:
        raise Failure("there is nothing to alter: give --partitions, --config or --delete-config", USAGE)
    client, name = _client(arguments), arguments.topic
    how = {"request_timeout": arguments.timeout}
    if entries:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        _wait(client.incremental_alter_configs([resource], **how), arguments, lambda _: f"configuring {name}")
        print(f"{name} configured.", file=out)
    if arguments.partitions is not None:
        wanted = [NewPartitions(name, arguments.partitions)]
        futures = client.create_partitions(wanted, operation_timeout=arguments.timeout, **how)
        _wait(futures, arguments, lambda _: f"adding partitions to {name}")
        print(f"{name} has {arguments.partitions} partitions.", file=out)


def delete(arguments: Namespace, out: TextIO) -> None:
    """All named ones; one that cannot be deleted does not keep the others."""
    client = _client(arguments)
    how = {"request_timeout": arguments.timeout, "operation_timeout": arguments.timeout}
    failures = []
    for name, future in client.delete_topics(arguments.topics, **how).items():
        try:
            _wait({name: future}, arguments, lambda name: f"deleting {name}")
            print(f"{name} deleted.", file=out)
        except Failure as failure:
            failures.append(failure)
    if failures:
        raise Failure("\n".join(map(str, failures)), max(failure.status for failure in failures))


def _client(arguments: Namespace) -> AdminClient:
    try:
        return AdminClient(configuration(arguments))
    except KafkaException as error:  # a property that there is not
        raise Failure(error.args[0].str(), USAGE) from error


def _wait(futures: Mapping[Any, Future[Any]], arguments: Namespace, doing: Callable[[Any], str]) -> dict[Any, Any]:
    """All results. Raises Failure with the first refusal."""
    found = {}
    for key, future in futures.items():
        try:
            found[key] = future.result(arguments.timeout + _PATIENCE_S)
        except KafkaException as error:
            raise failure_of(error, doing(key)) from error
    return found


def _names(arguments: Namespace) -> list[str]:
    try:
        found = _client(arguments).list_topics(timeout=arguments.timeout).topics
    except KafkaException as error:
        raise failure_of(error, "listing topics") from error
    return sorted(name for name in found if arguments.internal or not name.startswith("__"))


def _own(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    """What was set for the topic itself."""
    source: Any = ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # the library keeps the number
    return {entry.name: entry.value or "" for entry in entries if entry.source == source}


def _print(topic: Any, own: Mapping[str, str], out: TextIO) -> None:
    partitions = sorted(topic.partitions, key=lambda partition: partition.id)
    head = {
        "Topic": topic.name,
        "TopicId": topic.topic_id,
        "PartitionCount": len(partitions),
        "ReplicationFactor": len(partitions[0].replicas) if partitions else 0,
        "Configs": ",".join(f"{name}={value}" for name, value in sorted(own.items())),
    }
    print("\t".join(f"{name}: {value}" for name, value in head.items()), file=out)
    for partition in partitions:
        row = {
            "Partition": partition.id,
            "Leader": partition.leader.id if partition.leader is not None else "none",
            "Replicas": _ids(partition.replicas),
            "Isr": _ids(partition.isr),
        }
        print("\t" + "\t".join(f"{name}: {value}" for name, value in row.items()), file=out)


def _ids(nodes: Iterable[Any]) -> str:
    return ",".join(str(node.id) for node in nodes)
