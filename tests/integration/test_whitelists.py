"""Who may connect to an instance, and who may use a topic: on every kind of request, in force within two seconds."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.schema import Wire as Field
from dataplane.protocol.schema import wires
from quota.contracts.instance import Limits
from tests.integration import asks
from tests.integration.asks import ASKS, IN_COMPANY, SILENT, Ask, error_codes
from tests.integration.clients import create_topic
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire, answers

pytestmark = pytest.mark.integration

INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.99"
ONLY_US = ("127.0.0.1/32",)
EVERYBODY_HERE = ("127.0.0.0/8",)
WITHIN_S = 2.0
DENIED = {29}  # TOPIC_AUTHORIZATION_FAILED


# --- the instance's whitelist ---------------------------------------------------------------------------------------------


def test_a_client_outside_the_whitelist_is_refused_by_every_broker(new_tenant):
    tenant = new_tenant(whitelist=ONLY_US)
    for address in tenant.addresses.values():
        assert answers(address, INSIDE)
        assert not answers(address, OUTSIDE)


def test_an_empty_whitelist_lets_nobody_in(new_tenant):
    tenant = new_tenant(whitelist=())
    assert not answers(tenant.addresses[1], INSIDE)


def test_a_whitelist_of_one_instance_says_nothing_about_another(new_tenant):
    closed, open_ = new_tenant(whitelist=()), new_tenant()
    assert answers(open_.addresses[2], OUTSIDE)
    assert not answers(closed.addresses[2], OUTSIDE)


def test_a_wider_whitelist_lets_in_and_a_narrower_one_cuts_off_open_connections(new_tenant, cluster):
    tenant = new_tenant(whitelist=ONLY_US)
    began = time.monotonic()
    cluster.specs.change(tenant, whitelist=EVERYBODY_HERE)
    wait_for(lambda: answers(tenant.addresses[1], OUTSIDE), promised(WITHIN_S), "the wider whitelist")
    assert time.monotonic() - began < promised(WITHIN_S)
    with Wire(tenant.addresses[1], source=OUTSIDE) as cut_off, Wire(tenant.addresses[1], source=INSIDE) as kept:
        assert cut_off.call(ApiVersionsRequest(), 0).error_code == 0
        began = time.monotonic()
        cluster.specs.change(tenant, whitelist=ONLY_US)
        assert cut_off.is_closed()
        assert time.monotonic() - began < promised(WITHIN_S)
        assert kept.call(ApiVersionsRequest(), 0).error_code == 0
    assert not answers(tenant.addresses[1], OUTSIDE)


def test_more_connections_than_were_bought_are_refused(new_tenant):
    tenant = new_tenant(limits=Limits(None, None, None, None, connections=2))
    address = tenant.addresses[1]
    with Wire(address) as one, Wire(address) as two:
        assert one.call(ApiVersionsRequest(), 0).error_code == two.call(ApiVersionsRequest(), 0).error_code == 0
        assert not answers(address, INSIDE)
    wait_for(lambda: answers(address, INSIDE), 30, "a place to be free again")


# --- a topic's whitelist --------------------------------------------------------------------------------------------------


@pytest.fixture
def one_topic(tenant, cluster):
    """A tenant with a topic that has a record, and a group that has committed an offset of it."""
    create_topic(tenant, "orders")
    for kind in ("Produce", "OffsetCommit"):
        assert error_codes(answer_of(cluster, tenant, ASKS[kind], "orders", "orders", INSIDE)) == set()
    return tenant


def answer_of(cluster, tenant, ask: Ask, topic: str, asked: str, source: str) -> Any:
    with Wire(tenant.addresses[ask.broker(cluster, tenant, topic)], source=source) as wire:
        return wire.call(ask.of(asked), ask.version)


@pytest.mark.parametrize("kind", ASKS)
def test_a_topic_is_refused_to_an_address_outside_its_whitelist(kind, one_topic, cluster):
    ask, name = ASKS[kind], "orders"
    if ask.makes_it:
        name = "invoices"
    cluster.specs.change(one_topic, topic_whitelists={name: ONLY_US})
    assert error_codes(answer_of(cluster, one_topic, ask, "orders", name, OUTSIDE)) == DENIED
    assert error_codes(answer_of(cluster, one_topic, ask, "orders", name, INSIDE)) == ask.answers


@pytest.mark.parametrize("kind", IN_COMPANY)
def test_neither_a_transaction_nor_a_group_lets_somebody_at_a_topic(kind, one_topic, cluster):
    cluster.specs.change(one_topic, topic_whitelists={"orders": ONLY_US})
    ask = IN_COMPANY[kind]
    assert error_codes(answer_of(cluster, one_topic, ask, "orders", "orders", OUTSIDE)) == DENIED
    assert not DENIED & error_codes(answer_of(cluster, one_topic, ask, "orders", "orders", INSIDE))


@pytest.mark.parametrize("kind", ASKS)
def test_a_refused_topic_does_not_say_whether_it_exists(kind, one_topic, cluster):
    cluster.specs.change(one_topic, topic_whitelists={"ghost": ONLY_US})
    assert error_codes(answer_of(cluster, one_topic, ASKS[kind], "orders", "ghost", OUTSIDE)) == DENIED


def test_where_a_topic_is_stored_is_not_told_to_an_address_outside_its_whitelist(one_topic, cluster):
    cluster.specs.change(one_topic, topic_whitelists={"orders": ONLY_US})
    for name in ("orders", None):
        ask = Ask(4, lambda _, n=name: asks.log_dirs(n), "leader")
        inside, outside = (answer_of(cluster, one_topic, ask, "orders", "orders", who) for who in (INSIDE, OUTSIDE))
        assert [topic.name for topic in inside.results[0].topics] == ["orders"]
        assert outside.results[0].topics == ()


def test_every_request_of_tenants_that_names_a_topic_is_among_those_asked_here():
    named = {row.api.request.__name__ for row in HANDLERS.values() if row.tenant and names_topics(row.api.request)}
    asked = {type(ask.of("t")).__name__ for ask in (ASKS | IN_COMPANY | SILENT).values()}
    assert named <= asked
    by_handler = {"DescribeConfigsRequest", "AlterConfigsRequest", "IncrementalAlterConfigsRequest"}
    assert asked - named == by_handler  # which map the names themselves


def names_topics(message: type) -> bool:
    return any(_is_topic(wire) for _, wire, _ in wires(message))


def _is_topic(wire: Field) -> bool:
    element = wire.element
    inside = element is not None and (_is_topic(element) if isinstance(element, Field) else names_topics(element))
    return wire.entity == "topic" or inside


def test_a_list_of_all_topics_leaves_out_what_is_refused(one_topic, cluster):
    create_topic(one_topic, "secret")
    cluster.specs.change(one_topic, topic_whitelists={"secret": ONLY_US})
    for source, expected in ((OUTSIDE, ["orders"]), (INSIDE, ["orders", "secret"])):
        with Wire(one_topic.addresses[1], source=source) as wire:
            found = wire.call(MetadataRequest(topics=None), 12)
        assert sorted(topic.name for topic in found.topics) == expected


def test_a_change_is_in_force_on_open_connections(one_topic, cluster):
    """Also on a connection whose produce requests take the short cut, and on a fetch that waits."""
    address = one_topic.addresses[cluster.leader(one_topic, "orders")]
    with Wire(address, source=OUTSIDE) as writer, Wire(address, source=OUTSIDE) as reader:
        for _ in range(3):
            assert error_codes(writer.call(asks.produce("orders"), 9)) == set()
        reader.send(asks.fetch("orders", 4, max_wait_ms=1500), 12)
        began = time.monotonic()
        cluster.specs.change(one_topic, topic_whitelists={"orders": ()})
        assert error_codes(writer.call(asks.produce("orders"), 9)) == DENIED
        reader.frame()
        assert error_codes(reader.call(asks.fetch("orders"), 12)) == DENIED
        assert time.monotonic() - began < promised(WITHIN_S)
        cluster.specs.change(one_topic, topic_whitelists={})
        assert error_codes(writer.call(asks.produce("orders"), 9)) == set()
