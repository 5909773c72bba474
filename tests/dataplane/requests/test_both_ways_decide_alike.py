"""The same requests down the short cut and down the real handlers: the same answers, the same records, the same charges.

Two worlds go through the same steps: one with the short cuts and one without. Each has a broker with everything that
decides about a request: the instance with its whitelists, its throttle rules, its limits and its storage fence.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from dataplane.requests.dispatch import ClientConnection
from dataplane.slices import Slices
from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from dataplane.throttle.debt_queue import DebtQueues
from quota.agent.agent import Agent
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.grant import BLOCKED_STORAGE, Grant, Grants, InstanceGrant
from quota.contracts.instance import Authorizer, Limits
from quota.contracts.namespace import ClusterNames
from quota.contracts.rules import RuleKind, ThrottleRule
from tests.dataplane.fetching.support import FETCH, NAME, Door, request, single, spec_of
from tests.support.memory_files import ImmediateBackground

PRODUCE = APIS[ApiKey.PRODUCE]
RATE = 4_000
FLOWS = ("produce", "consume", "group")


class Socket:
    """Keeps what is sent. Frames that may not begin wait here until they may."""

    max_frame_bytes = 2**31

    def __init__(self):
        self.sent = []
        self.is_closed = False
        self.held = 0
        self._frames = deque()
        self._paused = False
        self.client = None

    def receive(self, frame):
        self._frames.append(bytes(frame))
        self._hand_out()

    def _hand_out(self):
        while self._frames and not self._paused and not self.is_closed:
            frame = self._frames[0]
            if not self.client.begins(int.from_bytes(frame[:2]), len(frame)):
                break
            self._frames.popleft()
            self.client.frame(memoryview(bytearray(frame)))

    def send(self, parts):
        self.sent.append(b"".join(part if isinstance(part, bytes) else part.read() for part in parts))

    def lasting(self, frame):
        return memoryview(bytearray(frame))

    def hold(self, more):
        self.held += more

    def pause_reading(self):
        self._paused = True

    pause_for_limit = pause_reading

    def resume_reading(self):
        self._paused = False
        self._hand_out()

    resume_now = resume_reading

    def close(self):
        self.is_closed = True


class Watched:
    """A short cut that counts whom it has served, or (not `used`) serves nobody."""

    def __init__(self, shapes, *, used):
        self._shapes, self._used = shapes, used
        self.served = 0

    def serve(self, frame):
        served = self._used and self._shapes.serve(frame)
        self.served += served
        return served

    def remember(self, *what):
        self._shapes.remember(*what)


class World:
    """A broker that leads one topic of an instance, and a connection to it."""

    def __init__(self, limits=(None, None), *, short_cuts=True):
        self.cluster = single(2)
        door = Door(self.cluster)
        self.broker = broker = door.broker
        self.loop = loop = broker.replicas.loop
        self.agent = Agent(broker=1, boot="b", now=loop.clock.monotonic())
        broker.debt_queues = DebtQueues(loop)
        broker.gate = self.gate = Gate(self.agent, loop, broker.debt_queues, group_bytes_per_s=10**6)
        broker.doors = SimpleNamespace(loop=loop, clock=loop.clock, files=broker.doors.files)
        broker.slices = Slices(loop, ImmediateBackground())
        self.instance = Instance(replace(spec_of(), limits=Limits(*limits, None, None)))
        self.gate.configure(self.instance)
        self.socket = Socket()
        session = Session(self.instance, "default", self.instance.names, "127.0.0.1", authenticated=True)
        self.client = self.socket.client = ClientConnection(broker, self.socket, session)
        self.produce_path = self.client._produce = Watched(self.client._produce, used=short_cuts)
        self.fetch_path = self.client._fetch = Watched(self.client._fetch, used=short_cuts)

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask(self, frame):
        """What is answered within a moment."""
        before = len(self.socket.sent)
        self.socket.receive(frame)
        self.cluster.run(0.002)
        return b"".join(self.socket.sent[before:])

    def produced(self, **members):
        return (
            decode_response(PRODUCE, 9, self.ask(produce_frame(**members))[4:])[1].responses[0].partition_responses[0]
        )

    def fetched(self, **members):
        return fetch_row(self.ask(fetch_frame(**members)))

    # --- what may change between two of them --------------------------------------------------------------------------

    def change(self, *, is_looked_at=True, **members):
        """A newer spec, as the registry takes it."""
        spec = self.instance.spec
        self.instance.apply(replace(spec, generation=spec.generation + 1, **members))
        self.gate.configure(self.instance)
        if is_looked_at and {"topic_whitelists", "acls"} & members.keys():
            self.client.look_again()

    def deny(self, **members):
        self.change(topic_whitelists={NAME: ("10.0.0.0/8",)}, **members)

    def acls(self, *acls, everyone=False, **members):
        known = self.instance.spec.acls or AclSet()
        self.change(acls=known.changed(acls), authorizer=Authorizer(everyone), **members)

    def allow(self):
        self.change(topic_whitelists={})

    def rule(self, *topics):
        rules = [ThrottleRule(topic, RuleKind.TOPIC, 10**6, 10**6, topics=(topic,)) for topic in topics]
        self.change(rules=self.instance.spec.rules.changed(rules))

    def fence(self, blocked):
        spec = self.instance.spec
        produce, consume = spec.limits.produce_bytes_per_s, spec.limits.consume_bytes_per_s
        grant = InstanceGrant(Grant(produce, "initial", blocked), Grant(consume, "initial"), 2**30)
        now = self.loop.clock.monotonic()
        assert self.agent.apply(Grants(1, 1, 10**9, {spec.id: grant}), now)

    # --- what has come of it ------------------------------------------------------------------------------------------

    def effects(self):
        """Everything that requests leave behind."""
        broker, rules = self.cluster[1], self.instance.rules
        buckets = [getattr(self.instance, f"{flow}_bucket") for flow in FLOWS]
        if rules is not None:
            buckets += [bucket for flow in rules._flows.values() for bucket in flow]
        return {
            "records": [broker.committed_values(index) for index in range(2)],
            "charged": [(bucket.charged_bytes, bucket.refused_bytes) for bucket in buckets],
            "owed": [bucket.debt_bytes(self.loop.clock.monotonic()) for bucket in buckets],
            "in flight": self.client.answers._bytes_in_flight,
            "held": self.socket.held,
            "closed": self.socket.is_closed,
            "sent": b"".join(self.socket.sent),
        }


def produce_frame(version=9, value=b"v", *, acks=-1, index=0, correlation_id=7):
    batch = bytes(build_batch([Record(None, value, (), 1)], now_ms=1))
    data = (TopicProduceData(NAME, (PartitionProduceData(index, batch),)),)
    made = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1_000, topic_data=data)
    return encode_request(PRODUCE, version, correlation_id, "client", made)[4:]


def fetch_frame(version=12, offset=0, *, wait_ms=0, correlation_id=7, index=0, **members):
    row = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=2**20)
    made = request({index: row}, version, max_wait_ms=wait_ms, **members)
    if version < 13:
        made = replace(made, topics=tuple(replace(topic, topic=NAME) for topic in made.topics))
    return encode_request(FETCH, version, correlation_id, "client", made, names=ClusterNames())[4:]


def fetch_row(answer, version=12):
    (topic,) = decode_response(FETCH, version, answer[4:])[1].responses
    (row,) = topic.partitions
    return row


def acl(operation, permission=Permission.ALLOW, host="*", name=NAME):
    return Acl(ResourceType.TOPIC, PatternType.LITERAL, name, "User:ANONYMOUS", host, operation, permission)


READ, WRITE = acl(AclOperation.READ), acl(AclOperation.WRITE)

# --- both ways --------------------------------------------------------------------------------------------------------

CHANGES = {
    "deny": World.deny,
    "allow": World.allow,
    "fence": lambda world: world.fence(BLOCKED_STORAGE),
    "no fence": lambda world: world.fence(None),
    "rule": lambda world: world.rule(NAME),
    "rule elsewhere": lambda world: world.rule("events"),
    "no rules": World.rule,
    "new limits": lambda world: world.change(limits=Limits(10**6, 10**6, None, None)),
    "no rights": World.acls,
    "may read": lambda world: world.acls(READ),
    "may write": lambda world: world.acls(WRITE),
    "may do both": lambda world: world.acls(acl(AclOperation.ALL, host="127.0.0.0/8")),
    "may from elsewhere": lambda world: world.acls(acl(AclOperation.ALL, host="10.0.0.0/8")),
    "may, but not write": lambda world: world.acls(READ, WRITE, acl(AclOperation.WRITE, Permission.DENY)),
    "rights elsewhere": lambda world: world.acls(acl(AclOperation.READ, name="events"), everyone=True),
    "no ACLs": lambda world: world.acls(everyone=True),
    "elect": lambda world: world.cluster.elect(1, (1,)),
}
REQUESTS = st.one_of(
    st.tuples(st.just("produce"), st.sampled_from([b"v", b"v" * 300]), st.sampled_from([-1, 1, 1, 0, 7])),
    st.tuples(st.just("fetch"), st.integers(0, 4), st.sampled_from([0, 500])),
)
STEPS = st.one_of(
    REQUESTS,
    REQUESTS,
    st.sampled_from([(name,) for name in CHANGES]),
    st.tuples(st.just("pass"), st.sampled_from([0.005, 0.2, 0.6])),
)


@given(
    versions=st.tuples(st.integers(5, 11), st.integers(10, 17)),
    limits=st.sampled_from([(None, None), (RATE, RATE), (None, RATE)]),
    steps=st.lists(STEPS, max_size=16),
)
@example(  # a fetch that waits tells its own throttle time, not that of what began since
    versions=(5, 12), limits=(RATE, RATE), steps=[("fetch", 3, 500), ("fetch", 2, 500), ("produce", b"v" * 300, 7)]
)
@example(  # a rule that comes while fetches wait has its say about them
    versions=(5, 10),
    limits=(None, None),
    steps=[("fetch", 0, 500), ("fetch", 2, 500), ("rule",), ("produce", b"v", -1)],
)
@settings(max_examples=100, deadline=None)
def test_answers_and_effects_are_the_same_both_ways(versions, limits, steps):
    quick, slow = World(limits), World(limits, short_cuts=False)
    learned = [("produce", b"v", 1), ("fetch", 0, 0)] * 2
    for number, (what, *of) in enumerate(learned + steps):
        for world in (quick, slow):
            if what == "produce":
                world.ask(produce_frame(versions[0], of[0], acks=of[1], correlation_id=number))
            elif what == "fetch":
                world.ask(fetch_frame(versions[1], of[0], wait_ms=of[1], correlation_id=number))
            elif what == "pass":
                world.cluster.run(of[0])
            else:
                CHANGES[what](world)
                world.cluster.run(0.002)
        assert quick.effects() == slow.effects()
    for world in (quick, slow):
        world.cluster.run(3)
    assert quick.effects() == slow.effects()
    assert quick.produce_path.served >= 1
    assert quick.fetch_path.served >= 1
    assert slow.produce_path.served == slow.fetch_path.served == 0


def test_a_throttled_fetch_says_both_ways_what_is_stable():
    worlds = [World((None, 100), short_cuts=short_cuts) for short_cuts in (True, False)]
    for world in worlds:
        world.produced(value=b"v" * 300)
        world.cluster.produce(1, "v" * 300, producer=(7, 0, 0), transactional=True)
        world.cluster.run(0.01)
        for _ in range(2):
            row = world.fetched()
            assert (row.high_watermark, row.last_stable_offset) == (2, 1)
            world.cluster.run(60)
    assert [world.fetch_path.served for world in worlds] == [1, 0]


# --- a change of access between two requests --------------------------------------------------------------------------

WAYS = pytest.mark.parametrize("short_cuts", [True, False])


def learned(*, short_cuts):
    """Both kinds of request have been sent twice; the second time by the short cut, where there is one."""
    world = World(short_cuts=short_cuts)
    for _ in range(2):
        assert world.produced().error_code == ErrorCode.NONE
        assert world.fetched().error_code == ErrorCode.NONE
    assert (world.produce_path.served, world.fetch_path.served) == ((1, 1) if short_cuts else (0, 0))
    return world


@WAYS
def test_the_next_request_sees_that_the_whitelist_has_changed_and_changed_back(short_cuts):
    world = learned(short_cuts=short_cuts)
    world.deny()
    assert world.produced().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.fetched().error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.produce_path.served == world.fetch_path.served == short_cuts
    world.allow()
    assert world.produced().error_code == ErrorCode.NONE
    assert world.fetched().error_code == ErrorCode.NONE
    assert world.produce_path.served == world.fetch_path.served == 2 * short_cuts


@WAYS
def test_the_next_produce_sees_the_storage_fence_and_no_fetch_does(short_cuts):
    world = learned(short_cuts=short_cuts)
    world.fence(BLOCKED_STORAGE)
    assert world.produced().error_code == ErrorCode.POLICY_VIOLATION
    assert world.fetched().error_code == ErrorCode.NONE
    world.fence(None)
    assert world.produced().error_code == ErrorCode.NONE
    assert world.produce_path.served == 2 * short_cuts


def test_a_grant_that_moves_no_fence_costs_no_permit():
    world = World()
    before = world.instance.permit
    world.fence(None)
    assert world.instance.permit is before


def test_the_next_request_sees_a_rule_for_its_topic_and_none_for_another():
    world = learned(short_cuts=True)
    world.rule("events")
    world.produced(), world.fetched()
    assert world.produce_path.served == world.fetch_path.served == 2
    world.rule(NAME)
    before = world.instance.rules.produce_debt, world.effects()["charged"]
    world.produced(), world.fetched()
    assert world.produce_path.served == world.fetch_path.served == 2
    after = world.effects()["charged"]
    assert after[-2][0] > 0
    assert after[-1][0] > 0
    assert len(after) == len(before[1])


# --- and while a request waits ----------------------------------------------------------------------------------------


@WAYS
def test_a_fetch_that_waits_brings_nothing_of_a_topic_that_is_denied_meanwhile(short_cuts):
    """It is woken by the change; and before that (connections are told one after the other) judged anew when records wake it."""
    for wakes in ("records", "time"):
        world = learned(short_cuts=short_cuts)
        assert world.ask(fetch_frame(offset=2, wait_ms=500)) == b""
        world.deny(is_looked_at=False)
        world.cluster.run(0.01)
        sent = len(world.socket.sent)
        assert world.instance.connections == {}  # it was made by hand: `apply` has closed nobody
        if wakes == "records":
            world.cluster.produce(1, "secret")
        world.cluster.run(0.1 if wakes == "records" else 0.6)
        row = fetch_row(b"".join(world.socket.sent[sent:]))
        assert row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert len(row.records or b"") == 0


@WAYS
@pytest.mark.parametrize("change", [World.deny, World.acls, lambda world: world.acls(WRITE)])
def test_a_fetch_that_waits_is_refused_when_its_right_is_taken_away(short_cuts, change):
    world = learned(short_cuts=short_cuts)
    assert world.ask(fetch_frame(offset=2, wait_ms=60_000)) == b""
    sent = len(world.socket.sent)
    world.acls(READ)
    world.cluster.run(1)
    assert len(world.socket.sent) == sent  # it may go on
    change(world)
    world.cluster.run(0.1)
    row = fetch_row(b"".join(world.socket.sent[sent:]))
    assert row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.client.answers._bytes_in_flight == 0


@WAYS
def test_the_next_request_sees_that_a_right_was_taken_away_and_given_back(short_cuts):
    world = learned(short_cuts=short_cuts)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for acls, wrote, read in [
        ((), refused, refused),
        ((WRITE,), 0, refused),
        ((READ,), refused, 0),
        ((READ, WRITE), 0, 0),
    ]:
        world.acls(*acls)
        for _ in range(2):
            assert (world.produced().error_code, world.fetched().error_code) == (wrote, read)
    assert (world.produce_path.served, world.fetch_path.served) == ((5, 5) if short_cuts else (0, 0))


@WAYS
def test_a_fetch_that_waits_is_answered_where_the_change_did_not_concern_it(short_cuts):
    world = learned(short_cuts=short_cuts)
    assert world.ask(fetch_frame(offset=2, wait_ms=500)) == b""
    world.change(topic_whitelists={"events": ()})
    sent = len(world.socket.sent)
    world.cluster.produce(1, "news")
    world.cluster.run(0.01)
    row = fetch_row(b"".join(world.socket.sent[sent:]))
    assert (row.error_code, len(row.records) > 0) == (ErrorCode.NONE, True)


@WAYS
def test_a_produce_that_was_appended_is_answered_as_it_went(short_cuts):
    world = learned(short_cuts=short_cuts)
    sent = len(world.socket.sent)
    world.socket.receive(produce_frame())  # in this turn; it is written at the end of it
    world.deny()
    assert len(world.socket.sent) == sent
    world.cluster.run(0.01)
    answer = decode_response(PRODUCE, 9, b"".join(world.socket.sent[sent:])[4:])[1]
    row = answer.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 2)


# --- and in a session -------------------------------------------------------------------------------------------------


class Reader:
    """In a session with both partitions, read to their ends."""

    def __init__(self, *, short_cuts):
        self.world = world = World(short_cuts=short_cuts)
        for index in range(2):
            for _ in range(2):
                world.produced(index=index)
        rows = {index: FetchPartition(partition=index, fetch_offset=2, partition_max_bytes=2**20) for index in range(2)}
        self.id, self.epoch = 0, 0
        self.id = self.ask(rows).session_id

    def frame(self, wanted=(), wait_ms=0):
        made = request(wanted, 12, session_id=self.id, session_epoch=self.epoch, max_wait_ms=wait_ms)
        made = replace(made, topics=tuple(replace(topic, topic=NAME) for topic in made.topics))
        self.epoch += 1
        return encode_request(FETCH, 12, 7, "client", made, names=ClusterNames())[4:]

    def ask(self, wanted=(), wait_ms=0):
        return decode_response(FETCH, 12, self.world.ask(self.frame(wanted, wait_ms))[4:])[1]

    def codes(self, wanted=()):
        """{index: error} of what the next answer mentions."""
        return {row.partition_index: row.error_code for topic in self.ask(wanted).responses for row in topic.partitions}


@WAYS
def test_a_reader_in_a_session_is_told_of_partitions_on_which_nothing_happens(short_cuts):
    reader = Reader(short_cuts=short_cuts)
    assert reader.codes() == {}
    reader.world.deny()
    assert reader.codes() == dict.fromkeys(range(2), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    reader.world.allow()
    assert reader.codes() == dict.fromkeys(range(2), ErrorCode.NONE)
    assert reader.codes() == {}


def test_the_short_cut_of_a_session_does_not_hide_it_either():
    reader = Reader(short_cuts=True)
    for _ in range(3):
        assert reader.codes({0: 1}) == {0: ErrorCode.NONE}
    assert reader.world.fetch_path.served == 2
    reader.world.deny()
    assert reader.codes({0: 1}) == dict.fromkeys(range(2), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert reader.world.fetch_path.served == 2


@WAYS
def test_a_change_that_concerns_no_topic_of_a_session_makes_nothing_due(short_cuts):
    reader = Reader(short_cuts=short_cuts)
    reader.world.change(topic_whitelists={"events": ()})
    assert reader.codes() == {}
    (session,) = reader.world.broker.fetch_sessions.pool(reader.world.instance.names.key)
    assert list(session.due) == []


@WAYS
def test_a_fetch_of_a_session_that_waits_brings_nothing_either(short_cuts):
    reader = Reader(short_cuts=short_cuts)
    world = reader.world
    assert world.ask(reader.frame(wait_ms=500)) == b""
    world.deny(is_looked_at=False)
    sent = len(world.socket.sent)
    world.cluster.produce(1, "secret")
    world.cluster.run(0.1)
    row = fetch_row(b"".join(world.socket.sent[sent:]))
    assert (row.error_code, len(row.records or b"")) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    assert reader.codes() == dict.fromkeys(range(2), ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_what_comes_after_a_request_that_a_rule_kept_begins_when_it_comes():
    world = World()
    rule = ThrottleRule("slow", RuleKind.TOPIC, 100, None, topics=(NAME,))
    world.change(rules=world.instance.spec.rules.changed([rule]))
    for _ in range(20):
        if not world.ask(produce_frame()):
            break
    assert world.client.answers.is_parked, "it is kept, and a timer serves it"
    world.cluster.run(60)
    assert not world.client.answers.is_parked
    world.instance.figures.take()
    world.cluster.run(60)
    assert world.ask(produce_frame())
    times = world.instance.figures.take().of("Produce").times("total")
    assert (times.count, times.sum_us < 1_000_000) == (1, True)


def test_records_that_a_rule_kept_are_charged_for_the_end_of_the_turn_that_writes_them(monkeypatch):
    world = World()
    rule = ThrottleRule("slow", RuleKind.TOPIC, 100, None, topics=(NAME,))
    world.change(rules=world.instance.spec.rules.changed([rule]))
    told, loop = [], world.broker.doors.loop
    monkeypatch.setattr(loop, "will_write", lambda account, size: told.append((account, size)))
    for _ in range(20):
        if not world.ask(produce_frame()):
            break
    assert world.client.answers.is_parked
    assert told == []
    world.cluster.run(60)
    assert told == [(world.client.session.account, len(produce_frame()))]
