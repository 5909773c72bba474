"""TxnOffsetCommit at tenants' doors: rights, topics, what the transaction's coordinator says, answered for each partition."""

from types import SimpleNamespace

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC, PartitionMetadata
from dataplane.coordination.placement import partition_of
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.handlers.groups.rows import PORTION, stored_bytes
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from dataplane.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from dataplane.tasks import Future, resolved
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from tests.dataplane.groups.support import PARTITIONS, World
from tests.dataplane.handlers.doors import PEER, reply, versions
from tests.support.answering import SlicesAtOnce

E = ErrorCode
MINE = "aaaabbbb"
THEIRS = next(
    f"{n:08d}" for n in range(99) if partition_of(f"{n:08d}.g", PARTITIONS) == partition_of(f"{MINE}.g", PARTITIONS)
)
INDEX = partition_of(f"{MINE}.g", PARTITIONS)
TXN_OFFSET_COMMIT = 28


def tenant(key):
    route = Route("default", {1: Endpoint(("0.0.0.0", 9100), ("1.invalid", 19100))})
    limits = Limits(None, None, None, None)
    closed = {"closed": ("192.0.2.0/24",)}
    instance = Instance(
        InstanceSpec(f"ins-{key}", 1, InstanceState.RUNNING, limits, ("0.0.0.0/0",), (route,), topic_whitelists=closed)
    )
    return Session(instance, "default", instance.names, PEER, authenticated=True)


class Verifier:
    """What the transactions' coordinators say, in the turn in which they are asked or when `later` is resolved."""

    def __init__(self):
        self.asked, self.added = [], []
        self.says = None
        self.later = None

    def verify(self, transactional_id, producer_id, producer_epoch, partitions):
        self.asked.append((transactional_id, producer_id, producer_epoch, partitions))
        if self.says is None:
            return None
        return self.later or resolved(dict.fromkeys(partitions, self.says))

    def add(self, *asked):
        self.added.append(asked)
        return self.verify(*asked)


class Broker:
    """It keeps every group; tenants ask it."""

    def __init__(self):
        self.world = World()
        partition = PartitionMetadata(1, 0, (1,), (1,), ())
        topics = {f"{key}.{name}": range(100) for key in (MINE, THEIRS) for name in ("orders", "closed")}
        self.known = {(name, index): partition for name, indexes in topics.items() for index in indexes}
        self.verifier = Verifier()
        self.sessions = {key: tenant(key) for key in (MINE, THEIRS)}

    def begin(self, request, version, who=MINE):
        session = self.sessions[who]
        heard = decode(type(request), version, encode(request, version), 0, session.names)
        rooms = {
            "groups": self.world.coordinator,
            "verifier": self.verifier,
            "metadata": SimpleNamespace(partition=lambda topic, index: self.known.get((topic, index))),
            "slices": SlicesAtOnce(),
        }
        return reply(session, heard, version, **rooms)

    def ask(self, request, version, who=MINE):
        answer = self.begin(request, version, who)
        if isinstance(answer, Future):
            self.world.run(0.1)
            answer = answer.result()
        return decode(type(answer), version, encode(answer, version, self.sessions[who].names))

    def commit(self, *rows, version=4, who=MINE, **more):
        answer = self.ask(asking(*rows, **more), version, who)
        return [(topic.name, p.partition_index, p.error_code) for topic in answer.topics for p in topic.partitions]

    def error(self, *rows, **more):
        """The one error of all."""
        [error] = {error for _, _, error in self.commit(*rows, **more)}
        return error

    def fetched(self, who=MINE, require_stable=True):
        request = OffsetFetchRequest("g", (OffsetFetchRequestTopic("orders", (0,)),), require_stable=require_stable)
        [[row]] = [topic.partitions for topic in self.ask(request, 7, who).topics]
        return row.committed_offset, row.error_code

    def end(self, producer_id=7, *, committed=True):
        self.world.coordinator.transaction_ended(INDEX, producer_id, committed=committed)


def asking(*rows, group="g", producer=(7, 0), topic="orders", name="payments", metadata="", **more):
    partitions = tuple(
        TxnOffsetCommitRequestPartition(index, offset, committed_metadata=metadata)
        for index, offset in rows or ((0, 5),)
    )
    return TxnOffsetCommitRequest(
        name, group, *producer, topics=(TxnOffsetCommitRequestTopic(topic, partitions),), **more
    )


@pytest.mark.parametrize("version", versions(TXN_OFFSET_COMMIT))
def test_in_every_version_the_offset_is_visible_when_the_transaction_is_committed(version):
    broker = Broker()
    assert broker.commit((0, 5), (1, 6), version=version) == [("orders", 0, E.NONE), ("orders", 1, E.NONE)]
    assert broker.fetched() == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert broker.fetched(require_stable=False) == (-1, E.NONE)
    broker.end()
    assert broker.fetched() == (5, E.NONE)


def test_partitions_that_do_not_exist_or_are_closed_to_the_client_keep_none_of_the_others_out():
    broker = Broker()
    assert broker.commit((0, 5), (100, 6)) == [("orders", 0, E.NONE), ("orders", 100, E.UNKNOWN_TOPIC_OR_PARTITION)]
    assert broker.commit(topic="missing") == [("missing", 0, E.UNKNOWN_TOPIC_OR_PARTITION)]
    assert broker.commit(topic="closed") == [("closed", 0, E.TOPIC_AUTHORIZATION_FAILED)]


def test_where_nothing_is_left_to_commit_no_coordinator_is_asked():
    broker = Broker()
    broker.commit(topic="missing")
    assert broker.verifier.asked == []


def test_the_transaction_is_asked_whether_the_groups_partition_is_in_it():
    broker = Broker()
    broker.commit(producer=(9, 4))
    assert broker.verifier.asked == [(f"{MINE}.payments", 9, 4, [(OFFSETS_TOPIC, INDEX)])]


@pytest.mark.parametrize(
    ("coordinator_says", "producer_hears"),
    [
        (E.NONE, E.NONE),
        (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
        (E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
        (E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_EPOCH),
        (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (E.NETWORK_EXCEPTION, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_COORDINATOR, E.NOT_COORDINATOR),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
    ],
)
def test_what_the_transactions_coordinator_says_is_told(coordinator_says, producer_hears):
    broker = Broker()
    broker.verifier.says = coordinator_says
    assert broker.error() == producer_hears
    assert broker.world.log.batches.get(INDEX, []) != [] or producer_hears != E.NONE


@pytest.mark.parametrize(
    ("coordinator_says", "told_3", "told_4", "told_5"),
    [
        (E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
        (E.POLICY_VIOLATION, E.POLICY_VIOLATION, E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE),
    ],
)
def test_a_transaction_that_has_to_be_aborted_is_called_so_to_clients_that_know_it(
    coordinator_says, told_3, told_4, told_5
):
    broker = Broker()
    broker.verifier.says = coordinator_says
    assert [broker.error(version=version) for version in (3, 4, 5)] == [told_3, told_4, told_5]


def test_so_is_one_for_whose_offsets_its_instance_has_no_room(monkeypatch):
    monkeypatch.setattr(GroupCoordinator, "_holds_too_much", lambda *_: True)
    broker = Broker()
    told = [broker.error(version=version) for version in (3, 4, 5)]
    assert told == [E.POLICY_VIOLATION, E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE]


def test_a_group_that_has_moved_while_the_coordinator_was_asked_is_not_committed_to():
    broker = Broker()
    broker.verifier.says, broker.verifier.later = E.NONE, Future()
    answer = broker.begin(asking(), 4)
    broker.world.resign()
    broker.verifier.later.resolve({(OFFSETS_TOPIC, INDEX): E.NONE})
    [topic] = answer.result().topics
    assert [p.error_code for p in topic.partitions] == [E.NOT_COORDINATOR]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"group": ""}, E.INVALID_GROUP_ID),
        ({"producer": (-1, 0)}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer": (7, -1)}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"metadata": "x" * 4097}, E.OFFSET_METADATA_TOO_LARGE),
        ({"generation_id": 1, "member_id": "m"}, E.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i", "member_id": "m", "generation_id": 1}, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_cannot_be_is_refused(asked, error):
    broker = Broker()
    assert broker.error(**asked) == error
    assert broker.world.log.batches.get(INDEX, []) == []


@pytest.mark.parametrize(
    ("version", "told"),
    [(0, E.COORDINATOR_NOT_AVAILABLE), (1, E.COORDINATOR_NOT_AVAILABLE), (2, E.COORDINATOR_LOAD_IN_PROGRESS)],
)
def test_that_a_coordinator_is_loading_is_told_to_clients_that_can_bear_it(version, told):
    broker = Broker()
    broker.world.resign()
    broker.world.background.held = True
    broker.world.epoch += 1
    broker.world.log.put(INDEX, [(b"\0\x09", b"")] * 20)
    broker.world.elect()
    assert broker.error(version=version) == told
    assert broker.verifier.asked == []


def test_who_does_not_lead_the_groups_partition_says_so():
    broker = Broker()
    broker.world.resign()
    assert broker.error() == E.NOT_COORDINATOR


def test_very_many_are_committed_in_portions_and_each_is_answered():
    broker = Broker()
    told = broker.commit(*((n, n) for n in range(100)), (100, 0))
    assert [error for *_, error in told] == [E.NONE] * 100 + [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert [len(batch.records) for batch in broker.world.log.batches[INDEX]] == [
        *[PORTION] * (100 // PORTION),
        100 % PORTION,
    ]
    broker.end()
    assert len(broker.world.coordinator.committed(f"{MINE}.g")) == 100


def test_two_instances_with_the_same_names_have_two_transactions():
    broker = Broker()
    assert broker.error((0, 5)) == E.NONE
    assert broker.error((0, 6), who=THEIRS, producer=(8, 0)) == E.NONE
    assert [asked[0] for asked in broker.verifier.asked] == [f"{MINE}.payments", f"{THEIRS}.payments"]
    broker.end(7)
    assert (broker.fetched(), broker.fetched(THEIRS)) == ((5, E.NONE), (-1, E.UNSTABLE_OFFSET_COMMIT))
    broker.end(8, committed=False)
    assert (broker.fetched(), broker.fetched(THEIRS)) == ((5, E.NONE), (-1, E.NONE))


def test_what_it_leaves_behind_is_a_record_for_each_partition_in_every_version():
    request = asking((0, 5), (1, 6))
    row = OffsetCommitRequestPartition(0, 5, committed_metadata="")
    ordinary = OffsetCommitRequest("g", topics=(OffsetCommitRequestTopic("orders", (row, row)),))
    assert {stored_bytes(request, version) for version in range(5)} == {stored_bytes(ordinary, 8)}
    assert stored_bytes(ordinary, 0) > stored_bytes(request, 0)


def test_from_version_5_on_the_partition_is_added_to_the_transaction():
    broker = Broker()
    assert broker.error(version=4) == E.NONE
    assert broker.verifier.added == []
    assert broker.error(version=5) == E.NONE
    assert broker.verifier.added == [(f"{MINE}.payments", 7, 0, [(OFFSETS_TOPIC, INDEX)])]


def test_it_is_offered_in_all_versions():
    assert list(versions(TXN_OFFSET_COMMIT)) == [0, 1, 2, 3, 4, 5]
    assert HANDLERS[TXN_OFFSET_COMMIT].tenant
