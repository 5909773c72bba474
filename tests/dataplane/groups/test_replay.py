"""What a successor loads from the log is what was served, whatever happened before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.groups.classic.events import (
    JoinExpired,
    PendingExpired,
    SessionExpired,
    SyncExpired,
)
from dataplane.groups.classic.model import (
    Group,
    GroupState,
    durable_value,
)
from dataplane.groups.classic.state import apply
from dataplane.groups.records import (
    GroupRecord,
    OffsetRecord,
    read_record,
    write_group,
    write_offset,
)
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import OffsetCommitValue
from tests.dataplane.groups.machine import Machine

NAMES = ["a", "b", "c", "d"]
PROTOCOLS = [(("range", b"1"),), (("range", b"2"), ("sticky", b"3")), (("sticky", b"4"), ("range", b"5"))]
STEPS = st.one_of(
    st.tuples(st.just("new"), st.sampled_from(NAMES), st.sampled_from(PROTOCOLS), st.booleans()),
    st.tuples(st.just("static"), st.sampled_from(["A", "B"]), st.sampled_from(PROTOCOLS), st.booleans()),
    st.tuples(st.just("again"), st.integers(0, 5), st.sampled_from(PROTOCOLS), st.booleans()),
    st.tuples(st.sampled_from(["sync", "heartbeat", "leave", "session", "pending"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["join time", "sync time", "commit", "fail", "all join", "all sync", "all of it"])),
)


class Walk(Machine):
    """A machine that is driven by steps; ids are never used twice."""

    def __init__(self):
        super().__init__()
        self.log_is_slow = True
        self.asked = []
        self.serial = 0

    def step(self, kind, *args):
        self.now_ms += 1
        self.serial += 1
        members = list(self.group.members.values())
        someone = members[args[0] % len(members)] if members and args and isinstance(args[0], int) else None
        if kind == "new":
            self.asked.append(self.join(new_id=f"{args[0]}{self.serial}", protocols=args[1], needs_known_id=args[2]))
        elif kind == "static":
            self.asked.append(self.join(new_id=f"s{self.serial}", instance_id=args[0], protocols=args[1]))
        elif kind == "pending" and self.group.pending:
            self.do(PendingExpired(list(self.group.pending)[args[0] % len(self.group.pending)]))
        elif kind == "join time":
            self.do(JoinExpired())
        elif kind == "sync time":
            self.do(SyncExpired(self.group.generation))
        elif kind == "commit":
            self.commit()
        elif kind == "fail":
            self.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif kind == "all join":
            self.all_join()
        elif kind == "all sync":
            self.all_sync()
        elif kind == "all of it":
            self.all_join()
            self.do(JoinExpired())
            self.all_sync()
            self.commit()
        elif someone is not None:
            self.as_member(kind, someone, *args[1:])

    def all_join(self):
        for member in list(self.group.members.values()):
            self.again(member, member.protocols)

    def all_sync(self):
        for member in list(self.group.members.values()):
            self.sync_as(member)

    def as_member(self, kind, member, *args):
        if kind == "again":
            self.again(member, args[0])
        elif kind == "sync":
            self.sync_as(member)
        elif kind == "heartbeat":
            self.heartbeat(member.member_id, instance_id=member.instance_id)
        elif kind == "leave":
            self.leave((member.member_id, member.instance_id))
        elif kind == "session":
            self.do(SessionExpired(member.member_id))

    def again(self, member, protocols):
        self.asked.append(self.join(member.member_id, instance_id=member.instance_id, protocols=protocols))

    def sync_as(self, member):
        names = {name: f"{name}@{self.serial}".encode() for name in self.group.members}
        self.asked.append(self.sync(member.member_id, instance_id=member.instance_id, assignments=names))


def replay(values):
    group = Group("g")
    for value in values:
        record = read_record(*write_group("g", value))
        assert isinstance(record, GroupRecord)
        group = apply(group, record.value)
    return group


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_a_settled_group_is_loaded_as_it_was_served(steps):
    walk = Walk()
    failed = False
    for step in steps:
        failed = failed or (step[0] == "fail" and bool(walk.stores))
        walk.step(*step)
        if walk.group.state in (GroupState.STABLE, GroupState.EMPTY) and not walk.stores and not failed:
            loaded = replay(walk.stored)
            assert loaded.state is walk.group.state
            assert durable_value(loaded) == durable_value(walk.group) or walk.group.is_blank()


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_no_request_is_forgotten(steps):
    """Every join and sync is answered, or is parked with a member, or waits for the log."""
    walk = Walk()
    for step in steps:
        walk.step(*step)
        parked = [*walk.group.joining.values(), *walk.group.syncing.values()]
        stored = [getattr(store.then, "token", None) for store in walk.stores]
        for token in walk.asked:
            assert token in walk.replies or token in parked or token in stored


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_a_group_is_always_consistent(steps):
    walk = Walk()
    generation = 0
    for step in steps:
        walk.step(*step)
        group = walk.group
        assert group.generation >= generation
        generation = group.generation
        assert all(key == member.member_id for key, member in group.members.items())
        instances = [m.instance_id for m in group.members.values() if m.instance_id is not None]
        assert len(instances) == len(set(instances))
        if group.state in (GroupState.COMPLETING, GroupState.STABLE):
            assert group.leader in group.members
            assert all(group.protocol in dict(m.protocols) for m in group.members.values())
        if group.state is GroupState.STABLE:
            assert not group.syncing
        assert not group.joining or group.state is GroupState.PREPARING
        assert group.members.keys() >= {*group.joining, *group.syncing, *group.synced}
        if group.state is GroupState.EMPTY:
            assert group.members == {}
        if group.state is GroupState.PREPARING:
            assert "join" in walk.timers or step[0] == "join time"


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_an_offset_is_written_as_kafka_writes_it():
    key, value = write_offset(
        "g", "t", 3, OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9)
    )
    assert key.hex() == "000100016700017400000003"
    assert value.hex() == "000300000000000000070000000200016d0000000000000009"


def test_an_offset_with_a_time_of_its_own_is_written_in_the_version_that_has_one():
    _, value = write_offset("g", "t", 3, OffsetCommitValue(offset=7, commit_timestamp=9, expire_timestamp=11))
    assert value.hex() == "0001000000000000000700000000000000000009000000000000000b"


def test_a_group_has_a_key_of_version_2_and_a_value_of_version_3():
    key, value = write_group("g", durable_value(Machine().stable("a").group))
    assert key.hex() == "0002000167"
    assert value[:2].hex() == "0003"


def test_removal_is_a_record_without_a_value():
    assert read_record(*write_offset("g", "t", 3, None)) == OffsetRecord("g", "t", 3, None)
    assert read_record(*write_group("g", None)) == GroupRecord("g", None)


def test_keys_of_other_protocols_are_left_alone():
    assert read_record(b"\x00\x11rest", b"value") is None
