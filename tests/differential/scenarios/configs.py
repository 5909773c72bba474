"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, DescribeLogDirs, AlterReplicaLogDirs."""

from __future__ import annotations

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario

TOPIC, BROKER, LOGGER = 2, 4, 8


@scenario(ApiKey.DESCRIBE_CONFIGS)
def describe_configs(asker: Asker) -> None:
    name = asker.topic("t", retention_ms="3600000", cleanup_policy="compact,delete")

    def describe(
        label: str, kind: int, of: str, keys: tuple[str, ...] | None = None, *, synonyms: bool = False
    ) -> None:
        asker.ask(label, DescribeConfigsRequest((DescribeConfigsResource(kind, of, keys),), synonyms))

    describe("all of a topic", TOPIC, name)
    describe("all of a topic with synonyms", TOPIC, name, synonyms=True)
    describe("some of a topic", TOPIC, name, ("retention.ms", "segment.bytes"))
    describe("an unknown one of a topic", TOPIC, name, ("no.such",))
    describe("no keys", TOPIC, name, ())
    describe("an unknown topic", TOPIC, asker.name("no"))
    describe("a name that cannot be", TOPIC, "a b")
    describe("the empty topic", TOPIC, "")
    keys = ("log.retention.ms", "num.partitions", "message.max.bytes", "broker.id", "compression.type")
    describe("some of the broker", BROKER, "0", keys)
    describe("some of the broker with synonyms", BROKER, "0", keys, synonyms=True)
    describe("all brokers' defaults", BROKER, "", keys)
    describe("another broker", BROKER, "77")
    describe("a broker that is no number", BROKER, "x")
    describe("an unknown type", 77, "x")
    asker.ask("nothing", DescribeConfigsRequest(()))
    twice = (DescribeConfigsResource(TOPIC, name, ("retention.ms",)),) * 2
    asker.ask("the same twice", DescribeConfigsRequest(twice))


@scenario(ApiKey.ALTER_CONFIGS)
def alter_configs(asker: Asker) -> None:
    name = asker.topic("t", retention_ms="3600000")

    def alter(label: str, kind: int, of: str, configs: dict[str, str | None], *, validate_only: bool = False) -> None:
        values = tuple(AlterConfigsRequestAlterableConfig(*pair) for pair in configs.items())
        resource = AlterConfigsRequestAlterConfigsResource(kind, of, values)
        asker.ask(label, AlterConfigsRequest((resource,), validate_only))

    def show(label: str) -> None:
        keys = ("retention.ms", "segment.ms", "max.message.bytes")
        request = DescribeConfigsRequest((DescribeConfigsResource(TOPIC, name, keys),))
        asker.later(label, lambda: asker.quietly(request, 2), lambda _: False, within_s=0.5)

    asker.ask("nothing", AlterConfigsRequest(()))
    alter("only looked at", TOPIC, name, {"segment.ms": "3600000"}, validate_only=True)
    show("after looking")
    alter("one, and the other goes", TOPIC, name, {"segment.ms": "3600000"})
    show("after one")
    alter("an unknown config", TOPIC, name, {"no.such": "1"})
    alter("a bad value", TOPIC, name, {"retention.ms": "soon"})
    alter("one good, one bad", TOPIC, name, {"retention.ms": "5000", "segment.ms": "x"})
    alter("null", TOPIC, name, {"retention.ms": None})
    show("after errors")
    alter("none", TOPIC, name, {})
    show("after none")
    alter("an unknown topic", TOPIC, asker.name("no"), {"retention.ms": "5000"})
    alter("a name that cannot be", TOPIC, "a b", {"retention.ms": "5000"})
    alter("the empty topic", TOPIC, "", {"retention.ms": "5000"})
    alter("an unknown type", 77, "x", {"a": "b"})
    alter("another broker", BROKER, "77", {"log.retention.ms": "5000"}, validate_only=True)
    alter("a broker that is no number", BROKER, "x", {"log.retention.ms": "5000"}, validate_only=True)
    alter("read only", BROKER, "0", {"broker.id": "5"}, validate_only=True)
    resource = AlterConfigsRequestAlterConfigsResource(TOPIC, name, ())
    asker.ask("the same twice", AlterConfigsRequest((resource, resource)))


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def incremental_alter_configs(asker: Asker) -> None:
    name = asker.topic("t", retention_ms="3600000")
    put, delete, append, subtract = 0, 1, 2, 3

    def alter(
        label: str,
        *changes: tuple[str, int, str | None],
        kind: int = TOPIC,
        of: str = name,
        validate_only: bool = False,
    ) -> None:
        values = tuple(IncrementalAlterConfigsRequestAlterableConfig(*change) for change in changes)
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(kind, of, values)
        asker.ask(label, IncrementalAlterConfigsRequest((resource,), validate_only))

    def show(label: str) -> None:
        keys = ("retention.ms", "segment.ms", "cleanup.policy")
        request = DescribeConfigsRequest((DescribeConfigsResource(TOPIC, name, keys),))
        asker.later(label, lambda: asker.quietly(request, 2), lambda _: False, within_s=0.5)

    asker.ask("nothing", IncrementalAlterConfigsRequest(()))
    alter("only looked at", ("segment.ms", put, "3600000"), validate_only=True)
    alter("set", ("segment.ms", put, "3600000"))
    show("after setting")
    alter("delete", ("retention.ms", delete, None))
    alter("append to a list", ("cleanup.policy", append, "compact"))
    show("after appending")
    alter("append what is there", ("cleanup.policy", append, "compact"))
    alter("subtract from a list", ("cleanup.policy", subtract, "delete"))
    alter("subtract what is not there", ("cleanup.policy", subtract, "delete"))
    show("after subtracting")
    alter("subtract the last", ("cleanup.policy", subtract, "compact"))
    alter("append to a number", ("retention.ms", append, "5"))
    alter("an unknown operation", ("retention.ms", 9, "5"))
    alter("an unknown config", ("no.such", put, "1"))
    alter("delete an unknown config", ("no.such", delete, None))
    alter("a bad value", ("retention.ms", put, "soon"))
    alter("null", ("retention.ms", put, None))
    alter("the same config twice", ("retention.ms", put, "5000"), ("retention.ms", put, "6000"))
    alter("one good, one bad", ("retention.ms", put, "5000"), ("segment.ms", put, "x"))
    alter("none")
    show("after all")
    alter("an unknown topic", ("retention.ms", put, "5000"), of=asker.name("no"))
    alter("a name that cannot be", ("retention.ms", put, "5000"), of="a b")
    alter("the empty topic", ("retention.ms", put, "5000"), of="")
    alter("an unknown type", ("a", put, "b"), kind=77, of="x")
    alter("another broker", ("log.retention.ms", put, "5000"), kind=BROKER, of="77", validate_only=True)
    alter("read only", ("broker.id", put, "5"), kind=BROKER, of="0", validate_only=True)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(TOPIC, name, ())
    asker.ask("the same twice", IncrementalAlterConfigsRequest((resource, resource)))


@scenario(ApiKey.DESCRIBE_LOG_DIRS)
def describe_log_dirs(asker: Asker) -> None:
    name = asker.topic("t", 2)
    asker.ask("one topic", DescribeLogDirsRequest((DescribableLogDirTopic(name, (0, 1)),)))
    asker.ask("one partition", DescribeLogDirsRequest((DescribableLogDirTopic(name, (1,)),)))
    asker.ask("an unknown partition", DescribeLogDirsRequest((DescribableLogDirTopic(name, (9,)),)))
    asker.ask("an unknown topic", DescribeLogDirsRequest((DescribableLogDirTopic(asker.name("no"), (0,)),)))
    asker.ask("no partitions", DescribeLogDirsRequest((DescribableLogDirTopic(name, ()),)))
    asker.ask("nothing", DescribeLogDirsRequest(()))


@scenario(ApiKey.ALTER_REPLICA_LOG_DIRS)
def alter_replica_log_dirs(asker: Asker) -> None:
    name = asker.topic("t")
    answer = asker.quietly(DescribeLogDirsRequest((DescribableLogDirTopic(name, (0,)),)), 1)
    here = answer.results[0].log_dir

    def move(label: str, path: str, topic: str, *partitions: int) -> None:
        directory = AlterReplicaLogDir(path, (AlterReplicaLogDirTopic(topic, partitions),))
        asker.ask(label, AlterReplicaLogDirsRequest((directory,)))

    asker.ask("nothing", AlterReplicaLogDirsRequest(()))
    move("to where it is", here, name, 0)
    move("to an unknown folder", "/no/such/folder", name, 0)
    move("to a folder without a root", "somewhere", name, 0)
    move("an unknown partition", here, name, 9)
    move("an unknown topic", here, asker.name("no"), 0)
