"""What is over is gone with its last reference: Python looks for cycles only when there is very much garbage (`garbage`)."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest

from dataplane.background import ThreadBackground
from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.fetch import FetchPartition, FetchResponsePartitionData
from dataplane.replication.serving import follower_fetches
from dataplane.replication.serving.fetch_sessions import FetchSession, Found, Reading, SessionPartition
from dataplane.slices import Slices
from dataplane.tasks import Task, failed, gather, resolved
from dataplane.tenancy.logins import Pending
from tests.dataplane.replication.cluster import ReplicatedCluster
from tests.dataplane.test_slices import Turns
from tests.support.collecting import no_collection
from tests.support.memory_files import ImmediateBackground


class Witness:
    """Held by the frames of what goes wrong."""


def in_memory(kind):
    return sum(type(each) is kind for each in gc.get_objects())


@pytest.fixture(autouse=True)
def _nothing_is_found():
    with no_collection():
        yield


async def a_task_that_fails(witness):
    raise ValueError(witness)


async def one_that_catches(witness):
    with pytest.raises(ValueError, match="no"):
        await failed(ValueError("no"))
    return witness is not None


async def one_that_fails_beside_others(witness):
    await gather([resolved(witness), failed(ValueError("no")), failed(ValueError("nor this"))])


TASKS = (a_task_that_fails, one_that_catches, one_that_fails_beside_others)


@pytest.mark.parametrize("work", TASKS, ids=lambda work: work.__name__)
def test_a_task_and_all_that_it_had(work):
    witness = Witness()
    known = weakref.ref(witness)
    task = Task(work(witness))
    assert task.done
    assert task.error is None or isinstance(task.error, ValueError)
    del task, witness
    assert known() is None


def test_work_in_slices_that_fails():
    def steps(witness):
        yield None
        raise ValueError(witness)

    witness = Witness()
    known = weakref.ref(witness)
    job = Slices(Turns(), ImmediateBackground(), lambda *_: None).run("somebody", steps(witness))
    assert isinstance(job.error, ValueError)
    del job, witness
    assert known() is None


def test_work_in_a_thread_that_fails():
    def work(witness):
        raise ValueError(witness)

    witness = Witness()
    known = weakref.ref(witness)
    background = ThreadBackground(SimpleNamespace(call_threadsafe=lambda callback: callback()))
    future = background.run(lambda witness=witness: work(witness))
    background.close()
    assert isinstance(future.error, ValueError)
    del future, witness
    assert known() is None


def test_a_login_that_fails():
    def reply(witness):
        raise ValueError(witness)

    witness = Witness()
    known = weakref.ref(witness)
    pending = Pending()
    pending.become(lambda witness=witness: reply(witness))
    assert isinstance(pending.error, ValueError)
    del pending, witness
    assert known() is None


def test_what_a_refusal_was_about_that_is_kept_for_the_answer():
    def refuse(witness):
        try:
            raise ValueError(witness)
        except ValueError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, "no") from error

    def all_refused(witness):
        refusals = []
        try:
            refuse(witness)
        except ApiError as refusal:
            refusals.append(refusal.kept())
        return [refusal.code for refusal in refusals]

    witness = Witness()
    known = weakref.ref(witness)
    assert all_refused(witness) == [ErrorCode.INVALID_REQUEST]
    del witness
    assert known() is None


def test_what_a_timer_did_that_has_fired():
    class Once(Witness):
        def __init__(self, loop):
            self.timer = loop.call_later(0.0, self.go)
            self.loop = loop

        def go(self):
            self.loop.stop()

    loop = EpollLoop(SystemClock())
    try:
        once = Once(loop)
        known = weakref.ref(once)
        loop.run()
        del once
        assert known() is None
    finally:
        loop.close()


def test_a_fetch_session_and_its_partitions():
    before = in_memory(SessionPartition)
    session = FetchSession(1, "somebody", 0.0, uses_topic_ids=False)
    found, wanted = Found(), [("orders", FetchPartition(number)) for number in range(3)]
    for topic, partition in wanted:
        data = FetchResponsePartitionData(partition.partition, high_watermark=0, records=b"")
        found.add(None, topic, Reading(data, 0, {}, True))
    session.begin(found, wanted)
    assert in_memory(SessionPartition) == before + 3
    session.close()
    del session, found
    assert in_memory(SessionPartition) == before


def test_followers_fetches_that_waited():
    before = in_memory(follower_fetches._FollowerFetch)
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(5.0)
    assert cluster[1].fetch_requests > 6
    assert in_memory(follower_fetches._FollowerFetch) <= before + 2, "each follower's last one waits"
