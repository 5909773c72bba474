"""Old versions of requests that change topics wait for their turn. Who loses the right meanwhile changes nothing."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from dataplane.throttle.mutations import mutation_bucket
from quota.contracts.acls import CLUSTER_NAME
from tests.dataplane.handlers.acl_cases import CLUSTER, ORDERS, TOPIC
from tests.dataplane.handlers.test_acls_of_every_api import NO_TOPIC, Op, Tenant, deny

TIMEOUT_MS = 20_000


def creation(name):
    return CreateTopicsRequest((CreatableTopic(name, 1, 1, (), ()),), TIMEOUT_MS)


CASES = {
    "create": (creation("late"), 4, [(Op.CREATE, TOPIC, "late"), (Op.CREATE, CLUSTER, CLUSTER_NAME)]),
    "delete": (DeleteTopicsRequest(topic_names=(ORDERS,), timeout_ms=TIMEOUT_MS), 4, [(Op.DELETE, TOPIC, ORDERS)]),
    "grow": (
        CreatePartitionsRequest((CreatePartitionsTopic(ORDERS, 2, None),), TIMEOUT_MS),
        2,
        [(Op.ALTER, TOPIC, ORDERS)],
    ),
}


@pytest.fixture(scope="module")
def shared():
    return Tenant()


@pytest.fixture
def tenant(shared):
    """Who has to wait for some seconds."""
    shared.rules(everyone=True)
    broker, clock = shared.broker, shared.broker.doors.loop.clock
    bucket = mutation_bucket(shared.instance, broker.config.settings, clock.monotonic())
    bucket.charge(bucket.rate * 14, clock.monotonic())
    assert 1 < bucket.delay(clock.monotonic()) < 10
    yield shared
    shared.instance.mutation_bucket = None


def topics_of(tenant):
    metadata = tenant.broker.metadata
    return {name: len(metadata.partitions(f"simulate.{name}")) for name in (ORDERS, "late")}


def codes(answer):
    rows = next(rows for rows in (getattr(answer, name, None) for name in ("topics", "responses", "results")) if rows)
    return [row.error_code for row in rows]


@pytest.mark.parametrize("name", CASES)
def test_what_was_permitted_when_it_came_is_asked_again_when_its_turn_has_come(tenant, name):
    request, version, rights = CASES[name]
    asked = tenant.begin(request, version)
    tenant.cluster.network.run_for(0.2)
    assert not asked.done
    tenant.rules(deny(*rights), everyone=True)
    assert codes(tenant.answer_of(asked)) == [NO_TOPIC]
    assert topics_of(tenant) == {ORDERS: 1, "late": 0}


@pytest.mark.parametrize("name", CASES)
def test_nor_does_who_would_not_be_let_in_any_more(tenant, name, monkeypatch):
    request, version, _ = CASES[name]
    asked = tenant.begin(request, version)
    tenant.cluster.network.run_for(0.2)
    monkeypatch.setattr(type(tenant.instance), "still_lets_in", lambda *_: False)
    assert codes(tenant.answer_of(asked)) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert topics_of(tenant) == {ORDERS: 1, "late": 0}


def test_who_keeps_the_right_is_served_although_access_has_changed(tenant):
    asked = tenant.begin(creation("kept"), 4)
    tenant.cluster.network.run_for(0.2)
    tenant.rules(deny((Op.WRITE, TOPIC, ORDERS)), everyone=True)
    assert codes(tenant.answer_of(asked)) == [ErrorCode.NONE]
