"""Requests about transactions, through both doors of a broker: names, rights, versions, and what another instance sees."""

from types import SimpleNamespace

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.handlers.awaited_topic import CREATION_WAIT_S
from dataplane.handlers.table import HANDLERS, served
from dataplane.handlers.transaction_charges import MARKER_BYTES
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
)
from dataplane.records.control import Marker, build_marker
from dataplane.tasks import Future, resolved
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from dataplane.transactions.limits import Allowed
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from tests.dataplane.handlers.doors import PEER, internal, reply
from tests.dataplane.transactions.support import PARTITIONS, World, partition
from tests.support.answering import SlicesAtOnce

E = ErrorCode
MINE, THEIRS = "aaaabbbb", "ccccdddd"


def tenant(key):
    addresses = {broker: Endpoint(("0.0.0.0", 9100), (f"{broker}.invalid", 19100)) for broker in (1, 2)}
    route = Route("default", addresses)
    limits = Limits(None, None, None, None)
    spec = InstanceSpec(f"ins-{key}", 1, InstanceState.RUNNING, limits, ("0.0.0.0/0",), (route,), {"closed": ()})
    instance = Instance(spec)
    return Session(instance, "default", instance.names, PEER, authenticated=True)


class Metadata:
    """Topics of two instances and of the cluster."""

    def __init__(self):
        self.version = 1
        names = [f"{key}.{topic}" for key in (MINE, THEIRS) for topic in ("orders", "events", "closed")]
        self.topics = {name: {index: partition(1) for index in range(3)} for name in names}
        for name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            self.topics[name] = {index: partition(index % 2 + 1) for index in range(PARTITIONS)}
        self.brokers = {1: None, 2: None}

    def partitions(self, topic):
        return self.topics.get(topic, {})

    def partition(self, topic, index):
        return self.partitions(topic).get(index)


class Broker:
    """One that coordinates everything; `ask` in the name of an instance, or inside."""

    def __init__(self, **changes):
        self.world = World(**changes)
        self.metadata = self.world.topics = Metadata()
        self.world.take_over()
        self.created = []
        self.charged = []  # bytes
        self.creates = lambda _name: Future()
        self.sessions = {key: tenant(key) for key in (MINE, THEIRS)}

    def ask(self, request, version, who=MINE, run_s=0.1):
        """As `doors.asked`; the world goes on until the handler has answered."""
        rooms = {
            "transactions": self.world.coordinator,
            "producer_ids": self.world.ids,
            "metadata": self.metadata,
            "slices": SlicesAtOnce(),
            "doors": SimpleNamespace(loop=self.world.loop, clock=self.world.loop.clock),
            "ensure_internal_topic": self._ensure,
            "debt_queues": SimpleNamespace(charge=lambda _bucket, _sender, size, _now: self.charged.append(size)),
        }
        session = self.sessions[who] if who else internal()
        row = next(row for row in HANDLERS.values() if row.api.request is type(request))
        heard = decode(row.api.request, version, encode(request, version), 0, session.names)
        answer = reply(session, heard, version, **rooms)
        if isinstance(answer, Future):
            self.world.run(run_s)
            answer = answer.result()
        return decode(row.api.response, version, encode(answer, version, session.names))

    def _ensure(self, name):
        self.created.append(name)
        return self.creates(name)

    def producer(self, name="t", who=MINE):
        answer = self.ask(InitProducerIdRequest(name, 60_000), 4, who)
        assert answer.error_code == E.NONE
        return answer.producer_id, answer.producer_epoch

    def add(self, producer, *topics, name="t", who=MINE, version=3):
        named = tuple(AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in topics)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=named,
        )
        answer = self.ask(request, version, who)
        return rows(answer.results_by_topic_v3_and_below)

    def end(self, producer, name="t", who=MINE, version=3, committed=True):
        return self.ask(EndTxnRequest(name, *producer, committed), version, who).error_code

    def listed(self, who=MINE, states=(), producers=(), duration=-1, pattern=None):
        return self.ask(ListTransactionsRequest(states, producers, duration, pattern), 1 if pattern is None else 2, who)

    def described(self, *names, who=MINE):
        return self.ask(DescribeTransactionsRequest(names), 0, who).transaction_states


def rows(topics):
    return {
        (topic.name, row.partition_index): row.partition_error_code
        for topic in topics
        for row in topic.results_by_partition
    }


@pytest.fixture
def broker():
    return Broker()


# --- the whole way ----------------------------------------------------------------------------------------------------


def test_a_transaction_under_the_tenants_own_names(broker):
    who = broker.producer()
    assert broker.add(who, ("orders", (0, 1))) == {("orders", 0): E.NONE, ("orders", 1): E.NONE}
    offsets = broker.ask(AddOffsetsToTxnRequest("t", *who, "readers"), 3)
    assert offsets.error_code == E.NONE
    (state,) = broker.described("t")
    assert (state.transaction_state, state.producer_id, state.producer_epoch) == ("Ongoing", *who)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("orders", (0, 1))]
    assert broker.end(who) == E.NONE
    told = broker.world.leaders.said()
    index = partition_of(f"{MINE}.readers", PARTITIONS)
    assert told == {(f"{MINE}.orders", 0): True, (f"{MINE}.orders", 1): True, (OFFSETS_TOPIC, index): True}
    (state,) = broker.described("t")
    assert (state.transaction_state, state.topics) == ("CompleteCommit", ())


def test_two_instances_with_the_same_transactional_id_never_meet(broker):
    mine, theirs = broker.producer(), broker.producer(who=THEIRS)
    assert mine[0] != theirs[0]
    broker.add(mine, ("orders", (0,)))
    assert broker.end(theirs, who=THEIRS) == E.INVALID_TXN_STATE
    assert broker.add(mine, ("orders", (1,)), who=THEIRS) == {("orders", 1): E.INVALID_PRODUCER_ID_MAPPING}
    assert broker.end(mine, who=THEIRS) == E.INVALID_PRODUCER_ID_MAPPING
    assert broker.producer(who=THEIRS) == (theirs[0], 1)
    assert [row.producer_id for row in broker.listed().transaction_states] == [mine[0]]
    assert [row.producer_id for row in broker.listed(who=THEIRS).transaction_states] == [theirs[0]]
    assert broker.described("t")[0].producer_id == mine[0]
    assert broker.listed(producers=(theirs[0],)).transaction_states == ()
    assert {row.transactional_id for row in broker.listed(who=None).transaction_states} == {f"{MINE}.t", f"{THEIRS}.t"}


def test_nothing_is_told_of_an_id_that_only_another_has(broker):
    broker.producer("theirs", who=THEIRS)
    (state,) = broker.described("theirs")
    assert (state.error_code, state.transactional_id) == (E.TRANSACTIONAL_ID_NOT_FOUND, "theirs")


# --- InitProducerId, EndTxn -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_each_version_of_init_producer_id(broker, version):
    for epoch in (0, 1):
        answer = broker.ask(InitProducerIdRequest("t", 60_000), version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (E.NONE, 1000, epoch)
    answer = broker.ask(InitProducerIdRequest("t", 900_001), version)
    assert (answer.error_code, answer.producer_id) == (E.INVALID_TRANSACTION_TIMEOUT, -1)


@pytest.mark.parametrize(("version", "code"), [(3, E.INVALID_PRODUCER_EPOCH), (4, E.PRODUCER_FENCED)])
def test_a_producer_that_is_not_the_latest_is_called_as_its_version_knows(broker, version, code):
    broker.producer()
    broker.producer()
    assert broker.ask(InitProducerIdRequest("t", 60_000, 1000, 0), version).error_code == code


@pytest.mark.parametrize(("version", "code"), [(1, E.INVALID_PRODUCER_EPOCH), (2, E.PRODUCER_FENCED)])
def test_so_it_is_called_when_it_adds_and_when_it_ends(broker, version, code):
    old = broker.producer()
    broker.producer()
    assert broker.add(old, ("orders", (0,)), version=version) == {("orders", 0): code}
    assert broker.end(old, version=version) == code
    assert broker.ask(AddOffsetsToTxnRequest("t", *old, "g"), version).error_code == code


@pytest.mark.parametrize("version", range(5))
def test_each_version_of_end_txn_and_add_offsets(broker, version):
    who = broker.producer()
    assert broker.end(who, version=version) == E.INVALID_TXN_STATE
    assert broker.ask(AddOffsetsToTxnRequest("t", *who, "g"), version).error_code == E.NONE
    assert broker.end(who, version=version, committed=False) == E.NONE
    assert broker.end(who, version=version, committed=False) == E.NONE
    assert broker.end(who, version=version) == E.INVALID_TXN_STATE


def test_from_version_5_on_an_end_says_with_what_the_producer_goes_on(broker):
    who = broker.producer()
    assert verify(broker, ("t", who, (2,), False)) == [("t", [E.NONE])]
    ended = broker.ask(EndTxnRequest("t", *who, True), 5)
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (E.NONE, who[0], who[1] + 1)
    refused = broker.ask(EndTxnRequest("t", *who, False), 5)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (E.INVALID_TXN_STATE, -1, -1)
    again = broker.ask(EndTxnRequest("t", *who, True), 5)
    assert (again.error_code, again.producer_epoch) == (E.NONE, who[1] + 1)


@pytest.mark.parametrize("name", ["", "x" * 1_000])
def test_an_id_without_a_name_or_with_one_without_an_end_is_none(broker, name):
    assert broker.ask(InitProducerIdRequest(name, 60_000), 4).error_code == E.INVALID_REQUEST
    assert broker.end((1, 0), name=name) == E.INVALID_REQUEST
    assert broker.add((1, 0), ("orders", (0,)), name=name) == {("orders", 0): E.INVALID_REQUEST}
    assert broker.ask(AddOffsetsToTxnRequest(name, 1, 0, "g"), 3).error_code == E.INVALID_REQUEST
    assert broker.described(name)[0].error_code == E.INVALID_REQUEST
    assert broker.world.log.records == {}


# --- AddPartitionsToTxn -----------------------------------------------------------------------------------------------


def test_one_partition_that_cannot_be_added_keeps_out_the_others(broker):
    who = broker.producer()
    told = broker.add(who, ("orders", (0, 7)), ("nowhere", (0,)), ("closed", (0,)))
    assert told == {
        ("orders", 0): E.OPERATION_NOT_ATTEMPTED,
        ("orders", 7): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("closed", 0): E.TOPIC_AUTHORIZATION_FAILED,
    }
    assert broker.described("t")[0].transaction_state == "Empty"


@pytest.mark.parametrize("topic", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_a_coordinators_topic_is_added_by_nobody(broker, topic):
    assert broker.add((7, 0), (topic, (0,)), name="t", who=None) == {(topic, 0): E.TOPIC_AUTHORIZATION_FAILED}
    assert broker.add((7, 0), (topic, (0,))) == {(topic, 0): E.UNKNOWN_TOPIC_OR_PARTITION}


def test_another_instances_topic_does_not_exist(broker):
    who = broker.producer()
    name = f"{THEIRS}.orders"
    assert broker.add(who, (name, (0,))) == {(name, 0): E.UNKNOWN_TOPIC_OR_PARTITION}


def test_more_partitions_than_a_transaction_may_have_are_refused():
    broker = Broker(max_partitions=2)
    who = broker.producer()
    assert set(broker.add(who, ("orders", (0, 1, 2))).values()) == {E.POLICY_VIOLATION}
    assert set(broker.add(who, ("orders", (0, 1))).values()) == {E.NONE}
    assert broker.add(who, ("orders", (2,))) == {("orders", 2): E.POLICY_VIOLATION}
    assert broker.ask(AddOffsetsToTxnRequest("t", *who, "g"), 3).error_code == E.NONE, "clients would give up"


def test_clients_are_offered_the_versions_that_are_for_them_and_brokers_all():
    offered = {tenant: {row.api.key: (row.low, row.high) for row in served(tenant=tenant)} for tenant in (True, False)}
    for api, of_clients, of_brokers in ((ApiKey.ADD_PARTITIONS_TO_TXN, 3, 5), (ApiKey.WRITE_TXN_MARKERS, 1, 2)):
        assert offered[True].pop(api) == (0, of_clients)
        assert offered[False].pop(api) == (0, of_brokers)
    assert offered[True].items() <= offered[False].items()


def verify(broker, *transactions, version=4):
    asked_for = tuple(
        AddPartitionsToTxnTransaction(
            f"{MINE}.{name}", *who, verify_only, (AddPartitionsToTxnTopic(f"{MINE}.orders", indexes),)
        )
        for name, who, indexes, verify_only in transactions
    )
    answer = broker.ask(AddPartitionsToTxnRequest(transactions=asked_for), version, who=None)
    assert answer.error_code == E.NONE
    return [
        (result.transactional_id.removeprefix(f"{MINE}."), list(rows(result.topic_results).values()))
        for result in answer.results_by_transaction
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_asks_whether_partitions_are_in_several_transactions(broker, version):
    who, other = broker.producer(), broker.producer("u")
    broker.add(who, ("orders", (0,)))
    asked = (("t", who, (0, 1), True), ("u", other, (0,), True), ("v", who, (0,), True), ("t", (9, 9), (0,), True))
    assert verify(broker, *asked, version=version) == [
        ("t", [E.NONE, E.TRANSACTION_ABORTABLE]),
        ("u", [E.TRANSACTION_ABORTABLE]),
        ("v", [E.INVALID_PRODUCER_ID_MAPPING]),
        ("t", [E.INVALID_PRODUCER_ID_MAPPING]),
    ]
    assert broker.described("u")[0].transaction_state == "Empty", "asking adds nothing"


def test_a_coordinator_that_has_not_heard_of_a_partition_yet_knows_whether_it_is_in_a_transaction(broker):
    who = broker.producer()
    broker.add(who, ("orders", (0, 1)))
    del broker.metadata.topics[f"{MINE}.orders"][1]
    assert verify(broker, ("t", who, (0, 1), True)) == [("t", [E.NONE, E.NONE])]


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_may_add_partitions_too(broker, version):
    who = broker.producer()
    assert verify(broker, ("t", who, (2,), False), version=version) == [("t", [E.NONE])]
    assert verify(broker, ("t", who, (2,), True), version=version) == [("t", [E.NONE])]
    assert verify(broker, ("t", who, (9,), False), version=version) == [("t", [E.UNKNOWN_TOPIC_OR_PARTITION])]


def test_what_a_change_writes_is_charged_to_the_instance_with_all_partitions_that_it_has(broker):
    who = broker.producer()
    broker.add(who, ("orders", (0, 1, 2)))
    assert broker.charged == [], "there is no limit"
    broker.sessions[MINE].instance.group_bucket = object()
    broker.add(who, ("events", (0,)))
    broker.end(who)
    broker.world.run(1)
    broker.end(who)
    adding, ending, again = broker.charged
    one = 100 + len(f"{MINE}.t") + 3 * 8
    assert adding == one + MARKER_BYTES
    assert ending == 2 * (one + 8)
    assert again < ending


def test_the_markers_that_a_transaction_will_need_are_charged_when_partitions_are_added(broker):
    who = broker.producer()
    broker.sessions[MINE].instance.group_bucket = object()
    broker.add(who, ("orders", (0, 1, 2)))
    broker.ask(AddOffsetsToTxnRequest("t", *who, "g"), 3)
    one = 100 + len(f"{MINE}.t")
    assert broker.charged == [one + 3 * MARKER_BYTES, one + 3 * 8 + MARKER_BYTES]
    marker = build_marker(Marker.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=0)
    assert len(marker) == MARKER_BYTES


# --- limits of the instance -------------------------------------------------------------------------------------------


def test_one_transaction_too_many_is_refused_so_that_its_producer_can_go_on_after_an_abort(broker):
    who = broker.producer()
    broker.world.allowed[MINE] = Allowed(open_transactions=0)
    assert broker.add(who, ("orders", (0, 1))) == dict.fromkeys((("orders", 0), ("orders", 1)), E.POLICY_VIOLATION)
    codes = [broker.ask(AddOffsetsToTxnRequest("t", *who, "g"), version).error_code for version in (3, 4)]
    assert codes == [E.POLICY_VIOLATION, E.TRANSACTION_ABORTABLE]
    theirs = broker.producer(who=THEIRS)
    assert broker.add(theirs, ("orders", (0,)), who=THEIRS) == {("orders", 0): E.NONE}


def test_a_longer_time_out_than_the_instance_may_have_is_refused_to_its_tenant_and_not_to_the_service(broker):
    broker.producer()
    broker.world.allowed[MINE] = Allowed(timeout_ms=59_999)
    assert broker.ask(InitProducerIdRequest("t", 60_000), 4).error_code == E.INVALID_TRANSACTION_TIMEOUT
    assert broker.ask(InitProducerIdRequest("t", 59_999), 4).error_code == E.NONE
    assert broker.ask(InitProducerIdRequest(f"{MINE}.t", 60_000), 4, who=None).error_code == E.NONE


# --- AddOffsetsToTxn, FindCoordinator ---------------------------------------------------------------------------------


def test_where_no_group_has_ever_been_the_topic_of_offsets_is_made_first(broker):
    who = broker.producer()
    kept = broker.metadata.topics.pop(OFFSETS_TOPIC)
    ask = AddOffsetsToTxnRequest("t", *who, "g")
    assert broker.ask(ask, 3, run_s=CREATION_WAIT_S + 0.1).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert broker.created == [OFFSETS_TOPIC]

    def creates(name):
        broker.metadata.topics[name] = kept
        return resolved(None)

    broker.creates = creates
    assert broker.ask(ask, 3).error_code == E.NONE


def test_the_coordinator_of_a_transactional_id_is_the_leader_of_its_partition(broker):
    names = ("t", "u", "v", "w")
    leaders = [partition_of(f"{MINE}.{name}", PARTITIONS) % 2 + 1 for name in names]
    for name, leader in zip(names, leaders, strict=True):
        found = broker.ask(FindCoordinatorRequest(name, 1), 3)
        assert (found.error_code, found.node_id, found.host) == (E.NONE, leader, f"{leader}.invalid")
    for version in (4, 5, 6):
        several = broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=names), version).coordinators
        assert [(row.key, row.node_id) for row in several] == list(zip(names, leaders, strict=True))


def test_the_first_who_asks_for_one_has_the_topic_made(broker):
    broker.metadata.topics.pop(TRANSACTIONS_TOPIC)
    found = broker.ask(FindCoordinatorRequest("t", 1), 3, run_s=CREATION_WAIT_S + 0.1)
    assert (found.error_code, broker.created) == (E.COORDINATOR_NOT_AVAILABLE, [TRANSACTIONS_TOPIC])


# --- what operators see -----------------------------------------------------------------------------------------------


def test_a_list_is_filtered_as_kafka_does(broker):
    first, second = broker.producer("a"), broker.producer("b")
    broker.add(first, ("orders", (0,)), name="a")
    broker.world.run(5)
    broker.add(second, ("orders", (0,)), name="b")

    def names(**filters):
        return [row.transactional_id for row in broker.listed(**filters).transaction_states]

    assert sorted(names()) == ["a", "b"]
    assert names(producers=(first[0],)) == ["a"]
    assert names(duration=4_000) == ["a"]
    assert names(duration=60_000) == []
    broker.end(second, "b")
    assert names(states=("Ongoing",)) == ["a"]
    answer = broker.listed(states=("ongoing", "CompleteCommit", "Nothing"))
    assert [row.transactional_id for row in answer.transaction_states] == ["b"]
    assert answer.unknown_state_filters == ("ongoing", "Nothing")
    assert names(states=("Nothing",)) == []


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("", ["orders-1", "orders-2", "other"]),
        ("o.*", ["orders-1", "orders-2", "other"]),
        ("orders-[0-9]", ["orders-1", "orders-2"]),
        ("orders", []),  # of the whole name
        ("other", ["other"]),
        (f"{MINE}.*", []),  # of the name that the tenant knows
    ],
)
def test_a_list_is_filtered_by_a_pattern_of_the_tenants_names(broker, pattern, named):
    for name in ("orders-1", "other", "orders-2"):
        broker.producer(name)
    broker.producer("orders-3", who=THEIRS)
    answer = broker.listed(pattern=pattern)
    assert answer.error_code == E.NONE
    assert sorted(row.transactional_id for row in answer.transaction_states) == named


def test_a_pattern_is_one_filter_among_the_others(broker):
    first, second = broker.producer("a-1"), broker.producer("a-2")
    broker.add(first, ("orders", (0,)), name="a-1")
    assert len(broker.listed(pattern="a-.").transaction_states) == 2
    assert broker.listed(pattern="a-.", states=("Ongoing",)).transaction_states[0].transactional_id == "a-1"
    assert broker.listed(pattern="a-1", producers=(second[0],)).transaction_states == ()


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a" * 1_001, "((a{100}){100}){100}"])
def test_what_is_no_pattern_of_re2_or_too_large_is_told(broker, pattern):
    broker.producer()
    answer = broker.listed(pattern=pattern)
    assert (answer.error_code, answer.transaction_states) == (E.INVALID_REGULAR_EXPRESSION, ())


def test_operators_list_by_the_names_that_there_are_inside(broker):
    broker.producer("a")
    broker.producer("a", who=THEIRS)
    listed = broker.listed(who=None, pattern=f"{MINE}[.].*").transaction_states
    assert [row.transactional_id for row in listed] == [f"{MINE}.a"]


def test_while_it_is_loading_nothing_is_listed(broker):
    broker.producer()
    broker.world.resign()
    broker.world.background.held = True
    broker.world.elect()
    answer = broker.listed()
    assert (answer.error_code, answer.transaction_states) == (E.COORDINATOR_LOAD_IN_PROGRESS, ())


def test_a_description_says_when_it_began_and_how_long_it_may_take(broker):
    who = broker.producer()
    broker.add(who, ("orders", (0,)), ("events", (2,)))
    began = broker.world.loop.clock.now_ms()
    described, missing = broker.described("t", "nobody", "t")
    assert described.transaction_timeout_ms == 60_000
    assert 0 <= began - described.transaction_start_time_ms <= 200
    assert [topic.topic for topic in described.topics] == ["orders", "events"]
    assert missing.error_code == E.TRANSACTIONAL_ID_NOT_FOUND
