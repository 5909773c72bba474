"""Fetch sessions (KIP-227) when the world changes under them: logs that begin later, topics that go and come again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from dataplane.protocol.messages.topics import DeleteTopicsRequest
from tests.differential.scenarios import scenario

if TYPE_CHECKING:
    from tests.differential.asking import Asker

_SESSIONS_SINCE = 7
_IDS_SINCE = 13


class _Session:
    """One topic's session; `get` is its next request."""

    def __init__(self, asker: Asker, name: str) -> None:
        self.asker, self.name, self.known = asker, name, asker.topic_id(name)
        self.number = self.epoch = 0

    def get(self, label: str, *parts: FetchPartition, forget: tuple[int, ...] = (), **members: Any) -> Any:
        settings = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 2**20} | members
        version = settings.pop("version", None)
        request = FetchRequest(
            session_id=self.number,
            session_epoch=self.epoch,
            topics=(FetchTopic(self.name, self.known, parts),) if parts else (),
            forgotten_topics_data=(ForgottenTopic(self.name, self.known, forget),) if forget else (),
            **settings,
        )
        answer = self.asker.ask(label, request, version)
        if answer is not None and not answer.error_code:
            self.number = answer.session_id
            self.epoch = self.epoch + 1 if self.number else 0
        return answer


def _part(partition: int, offset: int, size: int = 2**20, **members: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size, **members)


@scenario(ApiKey.FETCH)
def sessions_of_changing_logs(asker: Asker) -> None:
    if asker.version < _SESSIONS_SINCE:
        return
    name = asker.topic("changing", 3)
    for partition in range(3):
        asker.produce(name, partition, batches=3)
    session = _Session(asker, name)
    session.get("begin at the ends", _part(0, 9), _part(1, 9), _part(2, 9))
    rows = (DeleteRecordsTopic(name, (DeleteRecordsPartition(1, 3),)),)
    asker.quietly(DeleteRecordsRequest(rows, 10_000), 1)
    session.get("a log that begins later")
    session.get("a log that begins later, again")
    session.get("below where it begins now", _part(1, 0))
    session.get("below where it begins now, again")
    session.get("back inside, where nothing is new", _part(1, 9))
    session.get("back inside, again")
    session.get("one with records", _part(2, 3))
    session.get("the same records as long as nobody moves on")
    session.get("moving on", _part(2, 9))
    session.get("the same one named and forgotten", _part(0, 0), forget=(0,))
    session.get("the forgotten one is silent")
    session.get("wanted anew", _part(0, 9))
    session.get("no more bytes than one", _part(0, 0, 1), _part(2, 0, 1), max_bytes=1)
    session.get("a belief in an epoch to come", _part(0, 9, current_leader_epoch=7), _part(2, 9))
    session.get("a belief in an epoch to come, again")
    session.get("all of them forgotten", forget=(0, 1, 2))


@scenario(ApiKey.FETCH)
def sessions_of_topics_that_go(asker: Asker) -> None:
    if asker.version < _SESSIONS_SINCE:
        return
    name, other = asker.topic("goes", 1), asker.topic("stays", 1)
    asker.produce(name, batches=1)
    session = _Session(asker, name)
    session.get("begin", _part(0, 3))
    stays = FetchTopic(other, asker.topic_id(other), (_part(0, 0),))
    request = FetchRequest(
        max_wait_ms=0, max_bytes=2**20, session_id=session.number, session_epoch=session.epoch, topics=(stays,)
    )
    asker.ask("another topic is added", request)
    session.epoch += 1
    asker.quietly(DeleteTopicsRequest(topic_names=(name,), timeout_ms=10_000), 3)
    session.get(
        "by names or ids, whichever the session does not use", version=12 if asker.version >= _IDS_SINCE else 13
    )
    asker.later(
        "the topic is gone",
        lambda: session.get("while it goes"),
        lambda answer: bool(answer.responses) and answer.responses[0].partitions[0].error_code in (3, 100),
    )
