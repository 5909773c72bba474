"""AlterConfigs and IncrementalAlterConfigs of a tenant keep to the policy of topics; a topic from before does too."""

import pytest

from dataplane.cluster.config_writer import write_config
from dataplane.cluster.paths import topic_entity
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.dataplane.handlers.asking import Tenant
from tests.simulation.cluster import SimulatedCluster
from tests.support.deciding import at_once

TOPIC = 2


@pytest.fixture
def tenant():
    cluster = SimulatedCluster(seed=6)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    asker = Tenant(cluster)
    zookeeper = cluster.brokers[1].doors.zookeeper  # what somebody may have set before there was a policy
    before_a_policy = at_once(lambda before: {**before, "segment.ms": "1"})
    cluster.run(write_config(zookeeper, topic_entity("simulate.orders"), before_a_policy))
    cluster.until(lambda: asker.partition().log.config.segment_ms == 1, 10)
    return asker


def alter(tenant, name, value):
    row = AlterConfigsRequestAlterableConfig(name, value)
    resource = AlterConfigsRequestAlterConfigsResource(TOPIC, "orders", (row,))
    return tenant.ask(AlterConfigsRequest((resource,)), 2).responses[0]


def alter_one(tenant, name, value):
    row = IncrementalAlterConfigsRequestAlterableConfig(name, 0, value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(TOPIC, "orders", (row,))
    return tenant.ask(IncrementalAlterConfigsRequest((resource,)), 1).responses[0]


@pytest.mark.parametrize("ask", [alter, alter_one])
def test_beyond_a_bound_nothing_changes(tenant, ask):
    answer = ask(tenant, "segment.ms", "599999")
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert answer.error_message == "segment.ms can be 600000 at least, not 599999"
    assert ask(tenant, "follower.replication.throttled.replicas", "*").error_code == ErrorCode.POLICY_VIOLATION
    assert ask(tenant, "segment.ms", "600000").error_code == ErrorCode.NONE
    assert tenant.partition().log.config.segment_ms == 600_000


def test_a_topic_from_before_rolls_no_more_often_than_the_floor_and_can_be_changed(tenant):
    assert tenant.partition().log.config.rolls_after_ms == 600_000
    assert alter_one(tenant, "retention.ms", "5").error_code == ErrorCode.NONE
