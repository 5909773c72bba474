"""Whatever happens, an incremental answer holds what a model says that remembers everything and looks at everything.

The model has no due partitions and no watchers: with every fetch it goes through all partitions of the session, works out
what a full answer would say of each, and leaves out those of which the reader knows it all. That is Kafka's code.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from dataplane.replication.leadership import stop_replicas
from dataplane.storage.log import removing
from tests.dataplane.fetching.support import Door, request, rows, single
from tests.dataplane.replication.cluster import CONTROLLER, TOPIC, TOPIC_ID

PARTITIONS = 3
indexes = st.integers(0, PARTITIONS - 1)
offsets = st.integers(0, 5)
wishes = st.dictionaries(indexes, offsets, max_size=PARTITIONS)


@dataclass
class Remembered:
    """What the model keeps of one partition of the session."""

    offset: int
    high_watermark: int = -2
    log_start_offset: int = -2


class Sessions(RuleBasedStateMachine):
    """One client with one session at a time."""

    def __init__(self):
        super().__init__()
        self.cluster = single(PARTITIONS)
        self.door = Door(self.cluster)
        self.version = 12
        self.session_id = self.epoch = 0
        self.model: dict[int, Remembered] = {}
        self.waiting = None

    # --- what happens to partitions -----------------------------------------------------------------------------------

    @rule(index=indexes, count=st.integers(1, 3))
    def produce(self, index, count):
        for _ in range(count):
            self.cluster.produce(1, "x" * 10, acks=1, index=index)
        self.cluster.run(0.01)

    @rule(index=indexes, offset=offsets)
    def delete_records(self, index, offset):
        replicas = self.cluster[1].replicas
        partition = replicas.registry.get(TOPIC, index)
        if partition is not None and partition.log.start_offset < offset <= partition.state.high_watermark:
            removing.set_start_offset(partition.log, offset)
            replicas.progress.start_moved(partition)

    @rule(index=indexes)
    def delete_partition(self, index):
        state = StopReplicaPartitionState(partition_index=index, leader_epoch=-2, delete_partition=True)
        topics = (StopReplicaTopicState(topic_name=TOPIC, partition_states=(state,)),)
        stop = StopReplicaRequest(
            controller_id=CONTROLLER, controller_epoch=1, broker_epoch=self.cluster[1].broker_epoch, topic_states=topics
        )
        self.cluster[1].loop.post(lambda: stop_replicas(self.cluster[1].replicas, stop))
        self.cluster.run(0.01)

    @rule(index=indexes)
    def create_partition(self, index):
        if self.cluster[1].replicas.registry.get(TOPIC, index) is None:
            self.cluster.create((1,), index=index)

    @rule(index=indexes)
    def next_leader_epoch(self, index):
        if self.cluster[1].replicas.registry.get(TOPIC, index) is not None:
            self.cluster.elect(1, (1,), index=index)

    # --- what the client does -----------------------------------------------------------------------------------------

    @initialize(version=st.sampled_from([7, 12, 13, 17]), wanted=wishes)
    def begin(self, version, wanted):
        self.version = version
        self.begin_anew(wanted)

    @precondition(lambda self: self.waiting is None)
    @rule(wanted=wishes)
    def begin_anew(self, wanted):
        answer = self.door.fetch(wanted, self.version, session_id=self.session_id, session_epoch=0)
        assert sorted(rows(answer)) == sorted(wanted)
        self.model = {index: Remembered(offset) for index, offset in wanted.items()}
        self.session_id, self.epoch = answer.session_id, 1
        self._check(answer, everything=True)

    @precondition(lambda self: self.waiting is None and self.model)
    @rule(wanted=wishes, forget=st.lists(indexes, max_size=2, unique=True))
    def go_on(self, wanted, forget):
        sent = self._next(wanted, forget, max_wait_ms=0)
        if self.model:
            assert sent.done
            self._check(sent.result())
        else:  # an empty session ends, and the request is answered as one without
            assert (sent.result().session_id, sorted(rows(sent.result()))) == (0, sorted(wanted))
            self.session_id = self.epoch = 0

    @precondition(lambda self: self.waiting is None and self.model)
    @rule(wanted=wishes)
    def go_on_and_wait(self, wanted):
        self.waiting = self._next(wanted, (), max_wait_ms=10_000)

    @precondition(lambda self: self.waiting is not None)
    @rule()
    def time_passes(self):
        self.cluster.run(11)
        assert self.waiting.done

    @precondition(lambda self: self.model and self.waiting is None)
    @rule(epoch=st.integers(1, 5))
    def ask_with_a_wrong_epoch(self, epoch):
        if epoch != self.epoch:
            answer = self.door.fetch({}, self.version, session_id=self.session_id, session_epoch=epoch)
            assert (answer.error_code, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)

    def _next(self, wanted, forget, max_wait_ms):
        sent = self.door.send(
            request(
                wanted,
                self.version,
                forget=forget,
                session_id=self.session_id,
                session_epoch=self.epoch,
                max_wait_ms=max_wait_ms,
            ),
            self.version,
        )
        self.epoch += 1
        for index, offset in wanted.items():
            self.model.setdefault(index, Remembered(offset)).offset = offset
        for index in forget:
            self.model.pop(index, None)
        return sent

    @invariant()
    def what_waited_is_answered_when_there_is_something(self):
        if self.waiting is not None:
            if self.waiting.done:
                answer, self.waiting = self.waiting.result(), None
                self._check(answer, waited=True)
            else:
                assert not any(self._cannot_wait(index) for index in self.model)

    # --- the model ----------------------------------------------------------------------------------------------------

    def _full(self, index):
        """What a full answer says: (error, high watermark, start, has records)."""
        partition = self.cluster[1].replicas.registry.get(TOPIC, index)
        offset = self.model[index].offset
        if partition is None:
            unknown_id = self.version >= 13 and self.cluster[1].replicas.registry.topic_of_id(TOPIC_ID) is None
            return (100 if unknown_id else 3, -1, -1, False)
        log = partition.log
        if not log.start_offset <= offset <= log.end_offset:
            return (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, False)
        return (0, partition.state.high_watermark, log.start_offset, offset < partition.state.high_watermark)

    def _cannot_wait(self, index):
        full = self._full(index)
        return full[0] or full[3]

    def _check(self, answer, *, everything=False, waited=False):
        assert (answer.error_code, answer.session_id) == (0, self.session_id)
        got = rows(answer)
        for index, kept in self.model.items():
            code, high_watermark, start, has_records = full = self._full(index)
            if waited and code in (3, 100):  # it was woken as the partition went, and saw it on its way
                if index in got and got[index].error_code:
                    kept.high_watermark = kept.log_start_offset = -1
                continue
            news = code or has_records or (kept.high_watermark, kept.log_start_offset) != (high_watermark, start)
            assert (index in got) == bool(news or everything), (index, full, kept, waited)
            if index in got:
                data = got[index]
                assert (data.error_code, data.high_watermark, data.log_start_offset) == (code, high_watermark, start)
                assert bool(len(data.records)) == has_records
                kept.high_watermark, kept.log_start_offset = high_watermark, start
        assert set(got) <= set(self.model)

    @invariant()
    def idle_partitions_are_not_looked_at(self):
        pool = self.door.broker.fetch_sessions.pool(self.door.instance.names.key)
        for session in pool:
            for kept in session.partitions():
                if kept not in session.due:
                    assert self._full(kept.wanted.partition)[0] == 0

    def teardown(self):
        pool = self.door.broker.fetch_sessions.pool(self.door.instance.names.key)
        assert len(pool) <= 1
        self.door.broker.fetch_sessions.drop(self.door.instance.names.key)
        for partition in self.cluster[1].replicas.registry.partitions():
            assert not partition.queues.read_waiters, "something still hangs on a partition"


Sessions.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestSessions = Sessions.TestCase
