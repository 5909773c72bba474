"""A fetch that has waited leaves nothing in memory: Python would find a cycle only when there is very much garbage."""

from __future__ import annotations

import gc

import pytest

from dataplane.handlers.records.fetch_reading import ConsumerReader
from dataplane.protocol.codec import SHORT_ELEMENTS
from dataplane.protocol.messages import fetch
from tests.dataplane.handlers.acl_cases import ORDERS
from tests.dataplane.handlers.test_acls_of_every_api import Tenant
from tests.support.collecting import no_collection


@pytest.fixture(scope="module")
def tenant():
    made = Tenant()
    made.rules(everyone=True)
    return made


@pytest.fixture(autouse=True)
def _nothing_is_found():
    with no_collection():
        yield


def request_for(partition, times=1, **session):
    topic = fetch.FetchTopic(ORDERS, partitions=(partition,) * times)
    return fetch.FetchRequest(max_wait_ms=1_000, min_bytes=1, topics=(topic,), **session)


def waiting(tenant, request):
    answer = tenant.begin(request, 12)
    tenant.cluster.network.run_for(0.3)
    assert not answer.done, "it waits"
    return answer


def in_memory():
    # By type: `isinstance` would wake what is lazy in Django.
    return sum(type(each) is ConsumerReader for each in gc.get_objects())


REQUESTS = {
    "of everything": request_for(fetch.FetchPartition(0), session_epoch=-1),
    "the first of a session": request_for(fetch.FetchPartition(0), session_epoch=0),
    "a long one": request_for(fetch.FetchPartition(0), SHORT_ELEMENTS + 10, session_epoch=-1),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_when_its_time_is_up(tenant, request_):
    before = in_memory()
    answer = waiting(tenant, request_)
    assert in_memory() == before + 1
    assert tenant.answer_of(answer).error_code == 0
    assert in_memory() == before


def test_within_a_session(tenant):
    before = in_memory()
    first = tenant.answer_of(waiting(tenant, REQUESTS["the first of a session"]))
    again = fetch.FetchRequest(max_wait_ms=1_000, min_bytes=1, session_id=first.session_id, session_epoch=1)
    assert tenant.answer_of(waiting(tenant, again)).error_code == 0
    assert in_memory() == before


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_when_its_client_has_gone(tenant, request_):
    before = in_memory()
    waiting(tenant, request_)
    for connection in list(tenant.instance.connections):
        connection.close()
    tenant.cluster.network.run_for(0.3)
    assert in_memory() == before
