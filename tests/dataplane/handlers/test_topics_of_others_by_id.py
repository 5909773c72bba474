"""A topic's id is no way around the boundary between tenants: to who does not own the topic, the id does not exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dataplane.cluster.metadata import Metadata
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import handle_metadata
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic, MetadataResponse
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.namespace import ClusterNames
from tests.support.answering import answer_of

OURS, CLOSED, THEIRS, CLUSTERS = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=4)
TOPICS = {"aaaabbbb.orders": OURS, "aaaabbbb.closed": CLOSED, "ccccdddd.orders": THEIRS, "__usage": CLUSTERS}
SPEC = InstanceSpec(
    "ins-aaaabbbb",
    1,
    InstanceState.RUNNING,
    Limits(None, None, None, None),
    ("0.0.0.0/0",),
    (),
    topic_whitelists={"closed": ()},
)
BY_ID = range(12, 13)


def ask(version: int, topic_id: UUID, session: Session) -> tuple[int, str | None, UUID, int]:
    metadata = Metadata()
    states = tuple(
        UpdateMetadataTopicState(name, its_id, (UpdateMetadataPartitionState(leader=1, isr=(1,), replicas=(1,)),))
        for name, its_id in TOPICS.items()
    )
    metadata.apply(UpdateMetadataRequest(controller_id=1, controller_epoch=1, topic_states=states))
    broker: Any = SimpleNamespace(metadata=metadata)
    context = RequestContext(broker, session, ApiKey.METADATA, version, 1, None, 0)
    answer = answer_of(handle_metadata(context, MetadataRequest(topics=(MetadataRequestTopic(topic_id, None),))))
    assert isinstance(answer, MetadataResponse)
    (topic,) = decode(MetadataResponse, version, encode(answer, version, session.names)).topics
    return topic.error_code, topic.name, topic.topic_id, len(topic.partitions)


def tenant() -> Session:
    instance = Instance(SPEC)
    return Session(instance, "default", instance.names, "127.0.0.1", authenticated=True)


@pytest.mark.parametrize("version", BY_ID)
def test_a_topic_of_ones_own_is_described(version: int) -> None:
    assert ask(version, OURS, tenant()) == (ErrorCode.NONE, "orders", OURS, 1)


@pytest.mark.parametrize("version", BY_ID)
@pytest.mark.parametrize("foreign", [THEIRS, CLUSTERS], ids=["another tenant's", "the cluster's"])
def test_any_other_is_as_unknown_as_one_that_is_nowhere(version: int, foreign: UUID) -> None:
    nowhere = UUID(int=99)
    error_code, name, _, partitions = ask(version, nowhere, tenant())
    assert ask(version, foreign, tenant()) == (error_code, name, foreign, partitions)
    assert (error_code, name, partitions) == (ErrorCode.UNKNOWN_TOPIC_ID, None, 0)


@pytest.mark.parametrize("version", BY_ID)
def test_the_id_of_a_topic_of_ones_own_that_is_refused_is_no_secret_and_its_name_is(version: int) -> None:
    """As in Kafka."""
    assert ask(version, CLOSED, tenant()) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, CLOSED, 0)


@pytest.mark.parametrize("topic_id", [OURS, THEIRS, CLUSTERS])
def test_inside_the_cluster_every_id_is_known(topic_id: UUID) -> None:
    session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=ANYBODY)
    assert ask(12, topic_id, session)[0] == ErrorCode.NONE
