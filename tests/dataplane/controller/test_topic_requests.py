"""CreateTopics, DeleteTopics and DescribeConfigs as tenants and the control plane ask them."""

from __future__ import annotations

from dataclasses import replace
from types import CoroutineType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dataplane.cluster.broker_settings import Layers
from dataplane.cluster.paths import parse_topic, topic_path
from dataplane.config import BrokerConfig, Settings
from dataplane.handlers.admin.configs import handle_describe_configs
from dataplane.handlers.admin.partitions import handle_create_partitions
from dataplane.handlers.admin.topics import handle_create_topics, handle_delete_topics
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import CONTROL_PLANE
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import configs, topics
from dataplane.protocol.schema import NO_UUID
from dataplane.slices import Slices
from dataplane.tasks import Future, Task
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.instance import InstanceSpec, InstanceState, Limits, Route
from quota.contracts.namespace import ClusterNames
from tests.dataplane.controller.cluster import ControlledCluster
from tests.support.answering import answer_of

KEY = "k3v9x2qa"
SETTINGS = Settings()
SPEC = InstanceSpec(
    id=f"ins-{KEY}",
    generation=1,
    state=InstanceState.RUNNING,
    limits=Limits(None, None, None, partitions=12),
    whitelist=("0.0.0.0/0",),
    routes=(Route("default", {}),),
    topic_whitelists={"secret": ("10.0.0.0/8",)},
    brokers=(1, 2, 3),
)


class World:
    """A cluster of four, of which the instance uses three; requests go over the wire to the controller."""

    def __init__(self, settings: Settings = SETTINGS, spec: InstanceSpec = SPEC) -> None:
        self.cluster = ControlledCluster(4)
        self.settings = settings
        self.slices = Slices(self.cluster.time, None)  # type: ignore[arg-type]
        self.instance = Instance(spec)
        self.overrides: dict[str, dict[str, str]] = {}

    def ask(self, handle: Any, request: Any, version: int, **how: Any) -> Any:
        """The answer."""
        return self.cluster.wait(self.begin(handle, request, version, **how))

    def begin(
        self,
        handle: Any,
        request: Any,
        version: int,
        *,
        internal: bool = False,
        at: Any = None,
        client_id: str | None = None,
    ) -> Future[Any]:
        """The answer, when it has come over the wire."""
        fake = at or self.cluster.controller()
        broker: Any = SimpleNamespace(
            controller=fake.controller,
            metadata=fake.metadata,
            config=BrokerConfig(fake.id, (), ("127.0.0.1", 1), settings=self.settings),
            doors=SimpleNamespace(loop=self.cluster.time),
            slices=self.slices,
            layers=Layers(Settings()),
            registry=SimpleNamespace(by_key=lambda key: self.instance if key == KEY else None),
            topic_configs=SimpleNamespace(get=lambda topic: self.overrides.get(topic, {})),
        )
        names: Any = ClusterNames() if internal else self.instance.names
        session = Session(
            None if internal else self.instance, "default", names, "127.0.0.1", authenticated=True, identity=ANYBODY
        )
        ctx = RequestContext(broker, session, ApiKey.CREATE_TOPICS, version, 1, client_id, 0)
        decoded = decode(type(request), version, encode(request, version), 0, names)
        reply = answer_of(handle(ctx, decoded))
        answer: Future[Any] = Future()

        def told(reply: Any) -> None:
            answer.resolve(decode(type(reply), version, encode(reply, version, names)))

        if isinstance(reply, CoroutineType):
            reply = Task(reply)
        if isinstance(reply, Future):
            reply.then(lambda future: told(future.result()))
        else:
            told(reply)
        return answer

    def create(self, *wanted: topics.CreatableTopic, version: int = 7, **how: Any) -> list[Any]:
        request = topics.CreateTopicsRequest(topics=wanted, timeout_ms=5000)
        return list(self.ask(handle_create_topics, request, version, **how).topics)


def _topic(name: str, partitions: int = 1, factor: int = 3, **config: str | None) -> topics.CreatableTopic:
    named = tuple(topics.CreatableTopicConfig(k.replace("_", "."), v) for k, v in config.items())
    return topics.CreatableTopic(name, partitions, factor, (), named)


@pytest.fixture
def world() -> World:
    return World()


def test_a_tenant_creates_a_topic_under_its_own_name_on_its_own_brokers(world: World) -> None:
    (answer,) = world.create(_topic("orders", 4, retention_ms="1000"))
    assert (answer.name, answer.error_code, answer.num_partitions, answer.replication_factor) == ("orders", 0, 4, 3)
    stored = parse_topic(world.cluster.data(topic_path(f"{KEY}.orders")))
    assert stored.topic_id == answer.topic_id != NO_UUID
    assert all(sorted(replicas) == [1, 2, 3] for replicas in stored.partitions.values())
    described = {config.name: (config.value, config.config_source) for config in answer.configs}
    assert described["retention.ms"] == ("1000", 1)
    assert described["cleanup.policy"] == ("delete", 5)


def test_the_instances_partition_limit_is_named_with_its_use_whoever_asks(world: World) -> None:
    assert world.create(_topic("a", 3))[0].error_code == 0
    (tenant,) = world.create(_topic("b", 2))
    (plane,) = world.create(_topic(f"{KEY}.b", 2), internal=True)
    for answer in (tenant, plane):
        assert answer.error_code == ErrorCode.POLICY_VIOLATION
        assert "12" in answer.error_message
        assert "holds 9" in answer.error_message
        assert KEY not in answer.error_message
    assert world.create(_topic("b", 1))[0].error_code == 0


def test_the_instances_topic_limit_is_named_with_its_use_whoever_asks(world: World) -> None:
    world.instance.apply(replace(SPEC, limits=Limits(None, None, None, None, topics=2)))
    assert [world.create(_topic(name))[0].error_code for name in ("a", "b")] == [0, 0]
    (tenant,) = world.create(_topic("c"))
    (plane,) = world.create(_topic(f"{KEY}.c"), internal=True)  # the REST API, and topics that come by themselves
    for answer in (tenant, plane):
        assert answer.error_code == ErrorCode.POLICY_VIOLATION
        assert answer.error_message == "the instance may hold 2 topics; it holds 2"


def test_a_tenant_may_not_heap_its_replicas_on_one_broker_and_an_operator_may(world: World) -> None:
    """The limit is 12 on three brokers."""
    heap = tuple(topics.CreatableReplicaAssignment(index, (1,)) for index in range(9))
    (tenant,) = world.create(topics.CreatableTopic("t", -1, -1, heap))
    (plane,) = world.create(topics.CreatableTopic(f"{KEY}.t", -1, -1, heap), internal=True)
    assert (tenant.error_code, plane.error_code) == (ErrorCode.POLICY_VIOLATION, 0)
    more = topics.CreatePartitionsTopic("t", 10, (topics.CreatePartitionsAssignment((1,)),))
    request = topics.CreatePartitionsRequest(topics=(more,), timeout_ms=5000)
    (grown,) = world.ask(handle_create_partitions, request, 3).results
    assert (grown.error_code, "broker 1 would hold 10" in grown.error_message) == (ErrorCode.POLICY_VIOLATION, True)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (_topic("bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (_topic("__mine"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (_topic("x" * 231), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (_topic("secret"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (_topic("t", retention_ms="x"), ErrorCode.INVALID_CONFIG),
        (_topic("t", factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (_topic("t", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (
            topics.CreatableTopic("t", 1, 1, (topics.CreatableReplicaAssignment(0, (1,)),)),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            topics.CreatableTopic("t", -1, -1, (topics.CreatableReplicaAssignment(0, (9,)),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_a_topic_that_may_not_be_is_refused_and_the_others_are_made(
    world: World, topic: topics.CreatableTopic, error: ErrorCode
) -> None:
    refused, made = world.create(topic, _topic("fine"))
    assert (refused.name, refused.error_code, made.error_code) == (topic.name, error, 0)
    assert refused.error_message
    assert KEY not in refused.error_message


def test_what_the_policy_refuses_is_refused_whoever_asks_for_a_tenants_topic(world: World) -> None:
    (tenant,) = world.create(_topic("t", segment_ms="1"))
    (plane,) = world.create(_topic(f"{KEY}.t", segment_ms="1"), internal=True, client_id=CONTROL_PLANE)
    for answer in (tenant, plane):
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert answer.error_message == "segment.ms can be 600000 at least, not 1"
    assert world.create(_topic("__cluster", segment_ms="1"), internal=True)[0].error_code == 0


def test_throttled_replicas_are_for_operators_and_not_for_whom_the_control_plane_asks(world: World) -> None:
    throttled = {"leader_replication_throttled_replicas": "*"}
    (tenant,) = world.create(_topic("t", **throttled))
    (plane,) = world.create(_topic(f"{KEY}.t", **throttled), internal=True, client_id=CONTROL_PLANE)
    assert [answer.error_code for answer in (tenant, plane)] == [ErrorCode.POLICY_VIOLATION] * 2
    (operator,) = world.create(_topic(f"{KEY}.t", **throttled), internal=True, client_id="reassignment")
    assert operator.error_code == 0


def test_the_description_of_a_setting_tells_the_policy(world: World) -> None:
    world.create(_topic("t"))
    name = "segment.ms"
    for topic, internal in (("t", False), (f"{KEY}.t", True)):
        resource = configs.DescribeConfigsResource(2, topic, (name, "leader.replication.throttled.replicas"))
        request = configs.DescribeConfigsRequest(resources=(resource,), include_documentation=True)
        (described,) = world.ask(handle_describe_configs, request, 4, internal=internal).results
        found = {config.name: config for config in described.configs}
        assert found[name].documentation.endswith("In this service 600000 at least.")
        assert found["leader.replication.throttled.replicas"].read_only is not internal


def test_a_topic_named_twice_in_one_request_is_not_made(world: World) -> None:
    answers = world.create(_topic("t"), _topic("t"), _topic("u"))
    assert [(a.name, a.error_code) for a in answers] == [("t", ErrorCode.INVALID_REQUEST)] * 2 + [("u", 0)]
    assert not world.cluster.exists(topic_path(f"{KEY}.t"))


def test_the_cluster_may_make_topics_of_its_own_on_the_internal_listener_only(world: World) -> None:
    (answer,) = world.create(_topic("__consumer_offsets", cleanup_policy="compact"), internal=True)
    assert answer.error_code == 0
    assert world.cluster.exists(topic_path("__consumer_offsets"))


def test_another_broker_says_that_it_is_not_the_controller(world: World) -> None:
    other = world.cluster.others(world.cluster.controller().id)[0]
    assert world.create(_topic("t"), at=other)[0].error_code == ErrorCode.NOT_CONTROLLER


def test_an_old_version_is_answered_in_its_own_form(world: World) -> None:
    (answer,) = world.create(_topic("t"), version=0)
    assert (answer.name, answer.error_code) == ("t", 0)


def _delete(world: World, *states: topics.DeleteTopicState, **how: Any) -> list[tuple[str | None, int]]:
    request = topics.DeleteTopicsRequest(topics=states, timeout_ms=5000)
    return [(a.name, a.error_code) for a in world.ask(handle_delete_topics, request, 6, **how).responses]


def test_a_tenant_deletes_by_name_and_by_id_and_only_what_is_its_own(world: World) -> None:
    mine, also = world.create(_topic("a"), _topic("b"))
    (foreign,) = world.create(_topic("zzzzzzzz.c"), internal=True)
    assert mine.error_code == also.error_code == foreign.error_code == 0
    assert _delete(
        world,
        topics.DeleteTopicState("a"),
        topics.DeleteTopicState(None, also.topic_id),
        topics.DeleteTopicState(None, foreign.topic_id),
        topics.DeleteTopicState(None, UUID(int=9)),
        topics.DeleteTopicState("never"),
        topics.DeleteTopicState("secret"),
    ) == [
        ("a", 0),
        ("b", 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("never", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert world.cluster.exists(topic_path("zzzzzzzz.c"))
    assert not world.cluster.exists(topic_path(f"{KEY}.a"))
    assert not world.cluster.exists(topic_path(f"{KEY}.b"))


def test_old_versions_delete_by_name(world: World) -> None:
    world.create(_topic("a"))
    request = topics.DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=5000)
    answers = world.ask(handle_delete_topics, request, 1).responses
    assert [(a.name, a.error_code) for a in answers] == [("a", 0), ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def _describe(world: World, kind: int, name: str, keys: tuple[str, ...] | None = None, **how: Any) -> Any:
    resource = configs.DescribeConfigsResource(kind, name, keys)
    request = configs.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    return world.ask(handle_describe_configs, request, 4, **how).results[0]


def test_a_topics_configuration_says_where_each_value_comes_from(world: World) -> None:
    world.create(_topic("a"))
    world.overrides[f"{KEY}.a"] = {"retention.ms": "5"}
    found = _describe(world, 2, "a")
    assert (found.error_code, found.resource_name) == (0, "a")
    values = {config.name: config for config in found.configs}
    assert (values["retention.ms"].value, values["retention.ms"].config_source) == ("5", 1)
    assert [s.name for s in values["retention.ms"].synonyms] == ["retention.ms", "log.retention.ms"]
    assert (values["max.message.bytes"].value, values["max.message.bytes"].config_source) == ("1048588", 5)
    assert [c.name for c in _describe(world, 2, "a", ("retention.ms",)).configs] == ["retention.ms"]


def test_what_cannot_be_described_says_why(world: World) -> None:
    world.create(_topic("zzzzzzzz.c"), internal=True)
    assert _describe(world, 2, "zzzzzzzz.c").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _describe(world, 2, "zzzzzzzz.c", internal=True).error_code == 0
    assert _describe(world, 2, "secret").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert _describe(world, 2, "a b").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert _describe(world, 4, "77").error_code == ErrorCode.INVALID_REQUEST
    assert _describe(world, 8, "1").error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_describes_itself_and_no_secret(world: World) -> None:
    broker = world.cluster.controller()
    found = _describe(world, 4, str(broker.id))
    values = {config.name: config.value for config in found.configs}
    assert values["num.partitions"] == "1"
    assert values["broker.id"] == str(broker.id)
    assert not [name for name in values if "secret" in name]
