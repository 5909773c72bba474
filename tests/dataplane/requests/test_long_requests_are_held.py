"""A long request that waits for somebody else counts as memory of its connection until it is answered."""

from types import SimpleNamespace

import pytest

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.requests.dispatch import ClientConnection
from dataplane.tasks import Future, Task
from tests.support.answering import SlicesAtOnce

SIZE = 1_000


class Holding:
    """A connection that counts what is held for it."""

    held = 0

    def hold(self, more):
        self.held += more


@pytest.fixture
def client():
    made = object.__new__(ClientConnection)
    made._connection = Holding()
    made.broker = SimpleNamespace(slices=SlicesAtOnce())
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
    assert client._connection.held == SIZE
    assert request
    somebody.resolve("answer")
    assert task.result() == "answer"
    assert client._connection.held == 0
    assert request == []


def test_it_counts_no_longer_when_it_has_failed(client):
    somebody, task, _ = waiting(client)
    somebody.fail(LookupError("gone"))
    assert isinstance(task.error, LookupError)
    assert client._connection.held == 0
