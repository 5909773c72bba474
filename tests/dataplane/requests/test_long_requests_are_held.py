"""A long request that waits for somebody else takes its owner's room until it is answered, whoever has gone meanwhile."""

import tracemalloc
from types import SimpleNamespace

import pytest

from dataplane.decoded import Decoded
from dataplane.protocol.codec import encode, limited_decoder_in_steps
from dataplane.protocol.messages.configs import ComponentData, DescribeClientQuotasRequest
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.records.steps import run_through
from dataplane.requests.dispatch import ClientConnection, decoded_bytes
from dataplane.tasks import Future, Task
from quota.contracts.namespace import ClusterNames
from tests.support.answering import SlicesAtOnce

SIZE = 1_000
NAMES = ClusterNames()


@pytest.fixture
def client():
    made = object.__new__(ClientConnection)
    made.broker = SimpleNamespace(slices=SlicesAtOnce(), decoded=Decoded())
    return made


def waiting(client):
    """(who answers, the task, the request): a handler that waits."""
    somebody = Future()
    request = [MetadataRequest(topics=tuple(MetadataRequestTopic(name=f"topic-{n}") for n in range(1_000)))]

    async def handler():
        return await somebody

    ctx = SimpleNamespace(owner="one")
    return somebody, Task(client._until_released(ctx, handler(), request, SIZE)), request


def test_it_counts_until_it_is_answered_and_is_let_go_first(client):
    somebody, task, request = waiting(client)
    assert client.broker.decoded._taken == {"one": SIZE}
    assert request
    somebody.resolve("answer")
    assert task.result() == "answer"
    assert client.broker.decoded._taken == {}
    assert request == []


def test_it_counts_no_longer_when_it_has_failed(client):
    somebody, task, _ = waiting(client)
    somebody.fail(LookupError("gone"))
    assert isinstance(task.error, LookupError)
    assert client.broker.decoded._taken == {}


@pytest.mark.parametrize("longest", [1, 8, 80])
def test_what_it_takes_is_not_more_than_what_counts(longest):
    """Elements may be of few bytes each, and then their objects are most of it."""
    components = tuple(ComponentData(str(n)[-longest:] * (longest // 5 or 1), 0, str(n)) for n in range(19_000))
    frame = encode(DescribeClientQuotasRequest(components), 1)
    del components
    tracemalloc.start()
    try:
        decoded = run_through(limited_decoder_in_steps(DescribeClientQuotasRequest, 1)(memoryview(frame), 0, NAMES))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(decoded[0].components) == 19_000
    assert 0.3 * decoded_bytes(len(frame)) < taken <= decoded_bytes(len(frame))
