"""The coordinator on a broker: elections, sessions in time, and who is told to look elsewhere."""

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.loading import RECORDS_PER_PAUSE
from dataplane.coordination.placement import partition_of
from dataplane.coordination.runtime import LOAD_RETRY_S, Runtime
from dataplane.groups.classic.events import Join, Sync
from dataplane.groups.classic.model import GroupState, durable_value
from dataplane.groups.records import write_offset
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.records.header import CorruptBatchError
from tests.dataplane.groups.support import PARTITIONS, World


def test_two_consumers_share_a_group():
    w = World()
    a, b = w.join(), w.join()
    w.run(0.01)
    leader, follower = a.result(), b.result()
    assert (leader.error, leader.generation, follower.generation) == (ErrorCode.NONE, 1, 1)
    waiting = w.sync(follower.member_id)
    assigned = {leader.member_id: b"0", follower.member_id: b"1"}
    w.coordinator.sync("g", Sync(1, leader.member_id, assignments=assigned))
    w.run(0.01)
    assert waiting.result().assignment == b"1"


def test_the_id_of_a_member_begins_with_its_clients_name_and_is_unique():
    w = World()
    a, b = w.join(client_id="reader"), w.join(client_id="reader")
    w.run(0.01)
    ids = [a.result().member_id, b.result().member_id]
    assert all(member_id.startswith("reader-") and len(member_id) == 7 + 36 for member_id in ids)
    assert ids[0] != ids[1]


def test_no_answer_before_the_assignment_is_committed():
    w = World()
    joined = w.join()
    w.run(0.01)
    w.log.slow = True
    synced = w.sync(joined.result().member_id)
    w.run(1)
    assert not synced.done
    w.log.commit()
    assert synced.result().error == ErrorCode.NONE


def test_a_member_that_is_not_heard_of_for_its_session_timeout_is_gone():
    w = World()
    member = w.alone(session_timeout_ms=6_000)
    w.run(5.9)
    assert w.heartbeat(member) == ErrorCode.NONE
    w.run(5.9)
    assert w.group().state is GroupState.STABLE
    w.run(0.2)
    assert w.group().state is GroupState.EMPTY
    assert w.heartbeat(member) == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_with_a_parked_join_outlive_their_session_timeout():
    w = World()
    member = w.alone(session_timeout_ms=6_000)
    w.join(session_timeout_ms=6_000)  # a second member: the first has to join again, and stays away a while
    w.run(5)
    parked = w.join(member_id=member, session_timeout_ms=6_000)
    w.run(0.01)
    assert parked.result().generation == 2


def test_the_rebalance_timeout_ends_the_wait_for_a_member_that_only_heartbeats():
    w = World()
    member = w.alone(rebalance_timeout_ms=20_000)
    newcomer = w.join(rebalance_timeout_ms=15_000)
    for _ in range(19):
        w.run(1)
        assert w.heartbeat(member) == ErrorCode.REBALANCE_IN_PROGRESS
        assert not newcomer.done
    w.run(1.1)
    assert newcomer.result().generation == 2
    assert w.heartbeat(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_session_timeouts_have_bounds(timeout_ms):
    w = World()
    assert w.join(session_timeout_ms=timeout_ms).result().error == ErrorCode.INVALID_SESSION_TIMEOUT
    assert w.group() is None


def test_a_group_that_nobody_joined_is_unknown_to_members():
    w = World()
    assert w.join(member_id="x").result().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert w.sync("x").result().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert w.heartbeat("x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert w.leave("x").result().members == (("x", None, ErrorCode.UNKNOWN_MEMBER_ID),)


def test_an_id_that_is_never_used_leaves_nothing_behind():
    w = World()
    assert w.join(needs_known_id=True).result().error == ErrorCode.MEMBER_ID_REQUIRED
    assert w.group() is not None
    w.run(10.1)
    assert w.group() is None


def test_a_refused_join_leaves_nothing_behind():
    w = World()
    refused = w.coordinator.join("g", Join("", "consumer", (), 10_000, 10_000))
    assert refused.result().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert w.group() is None


# --- elections --------------------------------------------------------------------------------------------------------


def test_a_broker_that_does_not_lead_the_partition_is_not_the_coordinator():
    w = World()
    w.resign()
    assert w.join().result().error == ErrorCode.NOT_COORDINATOR
    assert w.sync("x").result().error == ErrorCode.NOT_COORDINATOR
    assert w.heartbeat("x") == ErrorCode.NOT_COORDINATOR
    assert w.leave("x").result().error == ErrorCode.NOT_COORDINATOR
    assert w.coordinator.delete_group("g").result() == ErrorCode.NOT_COORDINATOR
    assert w.coordinator.committed("g") == ErrorCode.NOT_COORDINATOR


def test_while_loading_members_are_asked_to_wait():
    w = World()
    w.resign()
    for index in range(PARTITIONS):
        w.coordinator.on_leadership(OFFSETS_TOPIC, index, 5)
    assert w.join().result().error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert w.sync("x").result().error == ErrorCode.REBALANCE_IN_PROGRESS
    assert w.heartbeat("x") == ErrorCode.NONE
    assert w.coordinator.groups() == ([], ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    w.run(0.01)
    assert w.heartbeat("x") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_move_of_the_coordinator_sends_parked_requests_away():
    w = World()
    member = w.alone()
    joining = w.join()
    assert not joining.done
    w.resign()
    assert joining.result().error == ErrorCode.NOT_COORDINATOR
    assert w.heartbeat(member) == ErrorCode.NOT_COORDINATOR
    w.run(1_000)  # no timer of the old life rings


def test_a_move_while_the_assignment_is_on_its_way_says_not_coordinator_once():
    w = World()
    joined = w.join()
    w.run(0.01)
    w.log.slow = True
    synced = w.sync(joined.result().member_id)
    w.resign()
    assert synced.result().error == ErrorCode.NOT_COORDINATOR
    w.log.commit()


def test_a_successor_knows_stable_groups_and_their_members_go_on():
    w = World()
    member = w.alone()
    before = w.group()
    w.take_over()
    assert w.group() is not before
    assert durable_value(w.group()) == durable_value(before)
    assert w.heartbeat(member) == ErrorCode.NONE
    assert w.sync(member).result().assignment == b"all"


def test_a_loaded_member_that_never_speaks_again_is_gone_after_its_session_timeout():
    w = World()
    w.alone(session_timeout_ms=6_000)
    w.take_over()
    w.run(5.9)
    assert w.group().state is GroupState.STABLE
    w.run(0.2)
    assert w.group().state is GroupState.EMPTY


def test_the_same_leader_in_the_next_epoch_keeps_parked_requests():
    w = World()
    w.alone()
    joining = w.join()
    w.elect()
    assert not joining.done


def test_a_leader_again_after_somebody_else_loads_again():
    w = World()
    w.alone()
    joining = w.join()
    w.epoch += 1
    w.elect()
    assert joining.result().error == ErrorCode.NOT_COORDINATOR
    assert w.group().state is GroupState.STABLE


def test_while_a_long_log_is_read_heartbeats_are_answered():
    w = World()
    index = partition_of("g", PARTITIONS)
    count = 3 * RECORDS_PER_PAUSE + 1
    w.log.put(index, [write_offset("g", "t", n, OffsetCommitValue(offset=n)) for n in range(count)])
    w.resign()
    w.background.held = True
    w.coordinator.on_leadership(OFFSETS_TOPIC, index, 9)
    w.run(1)
    assert w.coordinator.committed("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert w.heartbeat("x") == ErrorCode.NONE
    w.background.held = False
    w.background.release()
    w.run(1)
    assert len(w.coordinator.committed("g")) == count


def test_a_move_in_the_middle_of_loading_leaves_nothing_of_it():
    w = World()
    index = partition_of("g", PARTITIONS)
    w.log.put(index, [write_offset("g", "t", n, OffsetCommitValue(offset=n)) for n in range(100)])
    w.resign()
    w.background.held = True
    w.coordinator.on_leadership(OFFSETS_TOPIC, index, 9)
    w.run(1)
    w.resign()
    w.background.held = False
    w.background.release()
    w.run(1)
    assert w.coordinator.committed("g") == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("error", [OSError("the disk"), CorruptBatchError("cannot be read behind position 7")])
def test_a_partition_that_cannot_be_loaded_is_not_available_and_tried_again(error, caplog):
    w = World()
    committed_before = write_offset("g", "t", 0, OffsetCommitValue(offset=5))
    index = partition_of("g", PARTITIONS)
    w.log.put(index, [committed_before])
    w.resign()
    w.log.read_error = error
    w.coordinator.on_leadership(OFFSETS_TOPIC, index, 9)
    w.run(0.01)
    assert w.coordinator.has_failed(index)
    assert w.coordinator.committed("g") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert w.join().result().error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert w.heartbeat("x") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert w.sync("x").result().error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "cannot be loaded" in caplog.text
    w.log.read_error = None
    w.run(LOAD_RETRY_S)
    assert not w.coordinator.has_failed(index)
    assert w.coordinator.committed("g")[("t", 0)].offset == 5


def test_who_is_not_the_coordinator_any_more_does_not_try_again():
    w = World()
    w.resign()
    w.log.read_error = OSError("the disk")
    w.coordinator.on_leadership(OFFSETS_TOPIC, 0, 9)
    w.run(0.01)
    w.resign()
    assert not w.coordinator.has_failed(0)
    w.log.read_error = None
    w.run(3 * LOAD_RETRY_S)
    assert w.coordinator.groups() == ([], ErrorCode.NONE)


def test_a_record_that_cannot_be_read_does_not_take_the_others_with_it(caplog):
    w = World()
    index = partition_of("g", PARTITIONS)
    good = write_offset("g", "t", 0, OffsetCommitValue(offset=5))
    w.log.put(index, [(b"\x00\x01\x00\x09x", b""), (b"", b""), (b"\x00\x02\x00\x01g", b"\x00\x63"), good])
    w.resign()
    w.coordinator.on_leadership(OFFSETS_TOPIC, index, 9)
    w.run(0.01)
    assert w.coordinator.committed("g")[("t", 0)].offset == 5
    assert len(caplog.records) == 3


@pytest.mark.parametrize(
    ("log_says", "members_hear"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_members_hear_when_the_log_refuses_an_assignment(log_says, members_hear):
    w = World()
    joined = w.join()
    w.run(0.01)
    w.log.error = log_says
    assert w.sync(joined.result().member_id).result().error == members_hear
    assert w.group().state is GroupState.PREPARING


@pytest.mark.parametrize(
    ("name", "hash_code"),
    [("", 0), ("hello", 99162322), ("Aa", 2112), ("BB", 2112), ("😀", 0xD83D * 31 + 0xDE00)],
)
def test_the_partition_of_a_group_is_its_java_hash_code(name, hash_code):
    assert partition_of(name, 50) == hash_code % 50


def test_a_negative_hash_code_counts_without_its_sign_and_the_smallest_as_zero():
    assert partition_of("polygenelubricants", 50) == 0  # Integer.MIN_VALUE has no positive counterpart
    assert partition_of("my-group", 50) == 1906497762 % 50  # its hash code is -1906497762


def test_an_instance_has_so_many_groups_and_no_more_until_one_goes():
    world = World(groups_per_instance=2)
    names = [n for n in (f"aaaaaaaa.g{i}" for i in range(40)) if partition_of(n, PARTITIONS) == 0][:3]
    world.alone(names[0])
    member = world.alone(names[1])
    joined = world.join(names[2])
    world.run(0.1)
    assert joined.result().error == ErrorCode.GROUP_MAX_SIZE_REACHED
    other = next(n for n in (f"bbbbbbbb.g{i}" for i in range(40)) if partition_of(n, PARTITIONS) == 0)
    world.alone(other)
    world.leave(member, group=names[1])
    world.run(0.1)
    deleted = world.coordinator.delete_group(names[1])
    world.run(0.1)
    assert deleted.result() == ErrorCode.NONE
    world.alone(names[2])


def test_ids_that_were_given_and_not_used_count_as_members():
    world = World(group_max_size=3)
    answers = [world.join(needs_known_id=True).result().error for _ in range(5)]
    assert answers == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2


def test_a_bug_in_one_groups_event_does_not_stop_the_others(monkeypatch):
    world = World()
    world.alone("g")
    handled = []

    def handle(self, shard, entry, event):
        handled.append(event)
        if event == "bad":
            self.dispatch(shard, entry, "other")  # what waits behind it
            raise ValueError("a bug")

    monkeypatch.setattr(Runtime, "_handle", handle)
    with pytest.raises(ValueError, match="a bug"):
        world.coordinator._runtime.dispatch(None, None, "bad")
    world.run(0.1)
    assert handled == ["bad", "other"]


def test_a_large_group_of_one_instance_is_answered_over_many_turns_and_does_not_hold_another_instances_up():
    w = World(group_initial_rebalance_delay_ms=3_000)
    large = [w.join("aaaabbbb.large") for _ in range(1_000)]
    small = w.join("ccccdddd.small")
    answered = {}
    for name, future in (("first", large[0]), ("small", small), ("last", large[-1])):
        future.then(lambda _, name=name: answered.setdefault(name, w.loop.turns))
    w.run(10)
    assert answered["last"] - answered["first"] > 20
    assert abs(answered["small"] - answered["first"]) < 5
    assert all(future.result().error == ErrorCode.NONE for future in (*large, small))
    assert w.group("aaaabbbb.large").state is GroupState.COMPLETING
