"""Committed offsets: who may commit, when they are visible, how they end."""

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.coordination.shard import Shard
from dataplane.groups.classic.events import Join, Sync
from dataplane.groups.classic.model import GroupState
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.offsets import OFFSETS_PER_PAUSE, expired
from dataplane.groups.records import write_offset
from dataplane.groups.removal import TOMBSTONES_PER_BATCH
from dataplane.groups.shard import Forgetting, Groups
from dataplane.groups.sweeping import GROUPS_PER_PAUSE, RETRY_S, look, who_has
from dataplane.protocol.codec import encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.records.steps import Pace, run_through
from tests.dataplane.groups.support import PARTITIONS, World

KEY = ("t", 0)
DAY_S = 86_400


def commit(w, offset=5, *, key=KEY, group="g", metadata="", **more):
    return w.coordinator.commit(group, Commit({key: Offset(offset, 3, metadata)}, **more))


def committed(w, offset=5, **more):
    future = commit(w, offset, **more)
    w.run(0.01)
    return next(iter(future.result().values()))


def offset_of(w, key=KEY, group="g"):
    value = w.coordinator.committed(group).get(key)
    return None if value is None else value.offset


def test_a_simple_consumer_commits_without_a_group():
    w = World()
    assert committed(w, 42, metadata="note") == ErrorCode.NONE
    value = w.coordinator.committed("g")[KEY]
    assert (value.offset, value.leader_epoch, value.metadata) == (42, 3, "note")
    assert w.group().state is GroupState.EMPTY


def test_a_group_that_does_not_exist_has_committed_nothing():
    assert World().coordinator.committed("nobody") == {}


def test_a_commit_is_visible_and_answered_only_when_it_is_committed():
    w = World()
    committed(w, 1)
    w.log.slow = True
    future = commit(w, 2)
    w.run(1)
    assert not future.done
    assert offset_of(w) == 1
    assert w.coordinator.unstable("g")(KEY)
    w.log.commit()
    assert future.result() == {KEY: ErrorCode.NONE}
    assert offset_of(w) == 2
    assert not w.coordinator.unstable("g")(KEY)


def test_commits_become_visible_in_the_order_in_which_they_were_made():
    w = World()
    w.log.slow = True
    first, second = commit(w, 1), commit(w, 2)
    w.log.commit()
    assert first.done
    assert second.done
    assert offset_of(w) == 2


def test_a_commit_that_fails_leaves_the_old_offset():
    w = World()
    committed(w, 1)
    w.log.slow = True
    future = commit(w, 2)
    w.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    assert future.result() == {KEY: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert offset_of(w) == 1


def test_a_first_commit_that_fails_leaves_nothing_behind():
    w = World()
    w.log.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert committed(w) == ErrorCode.NOT_COORDINATOR
    assert w.group() is None


def test_a_move_of_the_coordinator_sends_a_commit_away():
    w = World()
    w.log.slow = True
    future = commit(w)
    w.resign()
    assert future.result() == {KEY: ErrorCode.NOT_COORDINATOR}
    w.log.commit()


def test_only_members_of_this_generation_commit_to_a_group_with_members():
    w = World()
    member = w.alone()
    assert committed(w) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(w, member_id=member, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert committed(w, member_id=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert committed(w, member_id="other", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(w, member_id=member, generation=1, instance_id="I") == ErrorCode.UNKNOWN_MEMBER_ID
    assert offset_of(w) is None
    assert committed(w, member_id=member, generation=1) == ErrorCode.NONE
    assert offset_of(w) == 5


def test_a_generation_of_a_group_that_does_not_exist_is_illegal():
    assert committed(World(), member_id="m", generation=3) == ErrorCode.ILLEGAL_GENERATION


def test_members_may_commit_before_they_join_again_but_not_between_join_and_sync():
    w = World()
    member = w.alone()
    w.join()
    assert committed(w, member_id=member, generation=1) == ErrorCode.NONE
    w.join(member_id=member)
    w.run(0.01)
    assert committed(w, member_id=member, generation=2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life():
    w = World()
    member = w.alone(session_timeout_ms=6_000)
    w.run(5)
    committed(w, member_id=member, generation=1)
    w.run(5)
    assert w.group().state is GroupState.STABLE


def test_too_much_metadata_is_refused_for_its_partition_only():
    w = World()
    asked = Commit({("t", 0): Offset(1, metadata="x" * 4097), ("t", 1): Offset(2, metadata="x" * 4096)})
    future = w.coordinator.commit("g", asked)
    w.run(0.01)
    assert future.result() == {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE, ("t", 1): ErrorCode.NONE}


def test_a_successor_knows_every_committed_offset():
    w = World()
    for n in range(5):
        committed(w, n, key=("t", n % 2), metadata=f"m{n}")
    before = dict(w.coordinator.committed("g"))
    w.take_over()
    assert w.coordinator.committed("g") == before
    assert w.coordinator.committed("g")[("t", 1)].metadata == "m3"


# --- the end ----------------------------------------------------------------------------------------------------------


def delete(w, group="g"):
    future = w.coordinator.delete_group(group)
    w.run(0.01)
    return future.result()


def test_a_deleted_group_leaves_only_tombstones():
    w = World()
    member = w.alone()
    committed(w, member_id=member, generation=1)
    assert delete(w) == ErrorCode.NON_EMPTY_GROUP
    w.leave(member)
    w.run(0.01)
    assert delete(w) == ErrorCode.NONE
    assert w.group() is None
    assert w.log.compacted(partition_of("g", PARTITIONS)) == {}
    w.take_over()
    assert w.group() is None
    assert delete(w) == ErrorCode.GROUP_ID_NOT_FOUND


def test_nobody_joins_or_commits_while_a_group_is_being_deleted():
    w = World()
    committed(w)
    w.log.slow = True
    deleted = w.coordinator.delete_group("g")
    assert w.join().result().error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit(w).result() == {KEY: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not deleted.done
    w.log.commit()
    assert deleted.result() == ErrorCode.NONE
    assert w.group() is None


def test_a_deleted_group_leaves_no_timer_behind():
    w = World()
    committed(w)
    w.join(needs_known_id=True)
    entry = w.coordinator.find("g")
    assert entry.timers._timers != {}
    w.log.slow = True
    w.coordinator.delete_group("g")
    assert entry.timers._timers == {}


def test_a_deletion_that_fails_leaves_the_group_as_it_was():
    w = World()
    committed(w)
    w.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert delete(w) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    w.log.error = ErrorCode.NONE
    assert offset_of(w) == 5
    assert committed(w, 6) == ErrorCode.NONE


def test_a_deletion_covers_commits_that_are_on_their_way():
    w = World()
    committed(w, key=("t", 1))
    w.log.slow = True
    commit(w)
    w.coordinator.delete_group("g")
    w.log.commit()
    w.log.commit()
    assert w.group() is None
    w.log.slow = False
    w.take_over()
    assert w.coordinator.committed("g") == {}


def subscribed(*topics):
    return b"\x00\x01" + encode(ConsumerProtocolSubscription(topics), 1)


def tenants_group(w, *topics):
    """A stable group of instance aaaaaaaa whose member subscribes to topics by the tenant's names."""
    group = "aaaaaaaa.g"
    joined = w.coordinator.join(group, Join("", "consumer", (("range", subscribed(*topics)),), 10_000, 10_000))
    w.run(0.01)
    member = joined.result().member_id
    w.coordinator.sync(group, Sync(1, member))
    w.run(0.01)
    return group, member


def test_offsets_of_a_topic_that_members_read_cannot_be_deleted():
    w = World()
    group, member = tenants_group(w, "read")
    read, left = ("aaaaaaaa.read", 0), ("aaaaaaaa.left", 0)
    for key in (read, left):
        assert committed(w, key=key, group=group, member_id=member, generation=1) == ErrorCode.NONE
    future = w.coordinator.delete_offsets(group, [read, left])
    w.run(0.01)
    assert future.result() == (
        ErrorCode.NONE,
        {read: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, left: ErrorCode.NONE},
    )
    assert list(w.coordinator.committed(group)) == [read]
    assert w.coordinator.delete_offsets("nobody", [read]).result()[0] == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_deleted_topics_are_forgotten():
    w = World()
    committed(w, key=("gone", 0))
    committed(w, key=("kept", 0))
    w.coordinator.partitions_deleted([("gone", 0), ("gone", 1)])
    w.run(0.01)
    assert list(w.coordinator.committed("g")) == [("kept", 0)]
    w.take_over()
    assert list(w.coordinator.committed("g")) == [("kept", 0)]


def test_offsets_of_topics_deleted_while_the_groups_are_loaded_are_forgotten():
    w = World()
    committed(w, key=("gone", 0))
    committed(w, key=("kept", 0))
    w.resign()
    w.background.held = True
    w.epoch += 1
    for index in range(PARTITIONS):
        w.coordinator.on_leadership(OFFSETS_TOPIC, index, w.epoch)
    w.coordinator.partitions_deleted([("gone", 0)])
    w.background.held = False
    w.background.release()
    w.run(0.01)
    assert list(w.coordinator.committed("g")) == [("kept", 0)]
    w.take_over()
    assert list(w.coordinator.committed("g")) == [("kept", 0)]


def test_a_commit_after_the_deletion_is_of_a_new_topic():
    w = World()
    for group in ("a", "b"):
        committed(w, 5, key=("again", 0), group=group)
    w.log.slow = True
    w.coordinator.partitions_deleted([("again", 0)])
    commit(w, 1, key=("again", 0), group="b")
    w.log.slow = False
    w.log.commit()
    w.run(0.1)
    assert w.coordinator.committed("a") == {}
    assert offset_of(w, ("again", 0), "b") == 1
    w.take_over()
    assert offset_of(w, ("again", 0), "b") == 1


def test_what_the_log_does_not_take_is_forgotten_later():
    w = World()
    committed(w, key=("gone", 0))
    w.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    w.coordinator.partitions_deleted([("gone", 0)])
    w.run(10)
    assert list(w.coordinator.committed("g")) == [("gone", 0)]
    w.log.error = ErrorCode.NONE
    w.run(2 * RETRY_S)
    assert w.coordinator.committed("g") == {}


class Compared(tuple):
    """A topic and partition that counts how often it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return tuple.__eq__(self, other)

    __hash__ = tuple.__hash__


@pytest.mark.parametrize(("of_group", "deleted"), [(1_000, 100), (100, 1_000)])
def test_looking_for_the_offsets_of_a_deleted_topic_costs_one_look_up_each(of_group, deleted):
    shard = Shard(0, 0, Groups(lambda: None))
    for n in range(of_group):
        shard.contents.apply(*write_offset("g", "t", n, OffsetCommitValue(offset=1)))
    forgetting = Forgetting([Compared(("t", n)) for n in range(deleted)])
    Compared.times = 0
    assert len(run_through(forgetting.of(shard.contents.entries["g"], Pace()))) == 100
    assert Compared.times <= 2_000


def test_groups_are_looked_at_in_slices():
    shard = Shard(0, 0, Groups(lambda: None))
    for n in range(20 * GROUPS_PER_PAUSE):
        shard.contents.apply(*write_offset(f"g{n}", "t", 0, OffsetCommitValue(offset=1, commit_timestamp=1)))
    for n in range(10 * OFFSETS_PER_PAUSE):
        shard.contents.apply(*write_offset("large", "t", n, OffsetCommitValue(offset=1, commit_timestamp=1)))
    assert len(list(who_has(shard, Forgetting([("t", 5)])))) >= 20
    assert len(list(who_has(shard, Forgetting([("t", n) for n in range(10 * OFFSETS_PER_PAUSE)])))) >= 30
    assert len(list(look(shard, 10, 1_000))) >= 30


# --- retention --------------------------------------------------------------------------------------------------------


def test_offsets_live_for_seven_days_after_their_group_became_empty():
    w = World()
    member = w.alone(session_timeout_ms=1_800_000)
    w.coordinator.start()
    committed(w, member_id=member, generation=1)
    w.leave(member)
    w.run(7 * DAY_S - 700)
    assert offset_of(w) == 5
    w.run(1_400)
    assert w.group() is None
    assert w.log.compacted(partition_of("g", PARTITIONS)) == {}
    w.coordinator.stop()


def test_a_simple_consumers_offset_lives_for_seven_days_after_its_commit():
    w = World()
    w.coordinator.start()
    committed(w, 1)
    w.run(6 * DAY_S)
    committed(w, 2, key=("t", 1))
    w.run(DAY_S + 700)
    assert list(w.coordinator.committed("g")) == [("t", 1)]
    w.run(6 * DAY_S)
    assert w.group() is None
    w.coordinator.stop()


@pytest.mark.parametrize("kept", [0, 1])
def test_of_very_many_offsets_those_that_are_over_go_and_with_the_last_of_them_the_group(kept):
    """More than what is looked at in one go: the group ends when they have gone, in the same sweep."""
    w = World()
    member = w.alone(session_timeout_ms=1_800_000)
    w.coordinator.start()
    for n in range(3 * TOMBSTONES_PER_BATCH):
        committed(w, key=("t", n), member_id=member, generation=1, retention_ms=3_600_000)
    if kept:
        committed(w, key=("kept", 0), member_id=member, generation=1, retention_ms=36_000_000)
    w.leave(member)
    w.run(2 * 3_600)
    assert list(w.coordinator.committed("g")) == [("kept", 0)] * kept
    assert (w.group() is None) is not bool(kept)
    assert len(w.log.compacted(partition_of("g", PARTITIONS))) == 2 * kept  # the offset, and the group
    w.coordinator.stop()


def test_a_commit_may_say_how_long_it_shall_live():
    w = World()
    w.coordinator.start()
    committed(w, retention_ms=3_600_000)
    w.run(3_000)
    assert offset_of(w) == 5
    w.run(1_300)
    assert w.group() is None
    w.coordinator.stop()


def test_a_commit_may_ask_for_longer_than_time_can_say():
    w = World()
    w.coordinator.start()
    committed(w, retention_ms=2**63 - 1)
    w.run(3_000)
    assert offset_of(w) == 5
    w.coordinator.stop()


@pytest.mark.parametrize(
    ("topic", "lives"), [("aaaaaaaa.read", True), ("aaaaaaaa.left", False), ("bbbbbbbb.read", False)]
)
def test_members_keep_the_offsets_of_what_they_read_and_of_nothing_else(topic, lives):
    w = World()
    group, member = tenants_group(w, "read")
    committed(w, key=(topic, 0), group=group, member_id=member, generation=1)
    entry = w.coordinator.find(group)
    later_ms = w.loop.clock.now_ms() + 8 * DAY_S * 1000
    gone = list(run_through(expired(entry.group, entry.offsets, later_ms, w.settings.offsets_retention_ms)))
    assert gone == ([] if lives else [(topic, 0)])


def test_what_has_changed_since_it_was_looked_at_stays():
    w = World()
    index = partition_of("g", PARTITIONS)
    groups = [name for name in (f"g{n}" for n in range(100)) if partition_of(name, PARTITIONS) == index][:3]
    for group in groups:
        committed(w, 1, group=group)
    w.coordinator.start()
    w.run(7 * DAY_S - 700)
    w.log.slow = True  # the tombstones of the first group, so that the others wait
    w.run(1_300)
    w.log.slow = False
    for group in groups:
        commit(w, 2, group=group)
    w.log.commit()
    w.run(1)
    assert [offset_of(w, group=group) for group in groups] == [None, 2, 2]
    w.coordinator.stop()


def test_an_offset_that_is_being_committed_again_does_not_expire():
    w = World()
    committed(w, 1)
    committed(w, 1, key=("t", 1))
    w.log.slow = True
    commit(w, 2)
    entry = w.coordinator.find("g")
    later_ms = w.loop.clock.now_ms() + 8 * DAY_S * 1000
    gone = list(run_through(expired(entry.group, entry.offsets, later_ms, w.settings.offsets_retention_ms)))
    assert gone == [("t", 1)]


def test_nothing_expires_from_a_group_whose_subscriptions_cannot_be_read():
    w = World()
    member = w.alone()  # its metadata is one byte
    committed(w, member_id=member, generation=1)
    entry = w.coordinator.find("g")
    assert run_through(expired(entry.group, entry.offsets, w.loop.clock.now_ms() + 9 * DAY_S * 1000, 1)) == {}
