"""Offsets that are committed within transactions, as the coordinator serves them: pending until the marker, whoever leads."""

import pytest

from dataplane.coordination.effects import Producer
from dataplane.coordination.loading import RECORDS_PER_PAUSE
from dataplane.coordination.placement import partition_of
from dataplane.groups.classic.model import GroupState
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.pending import size_of
from dataplane.groups.shard import Groups
from dataplane.groups.sweeping import RETRY_S
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.support import PARTITIONS, World

KEY, OTHER = ("t", 0), ("t", 1)
ANA, BOB = Producer(7, 0), Producer(8, 3)
INDEX = partition_of("g", PARTITIONS)
DAY_S = 86_400


def begin(w, offset=5, *, key=KEY, group="g", producer=ANA, metadata="", **more):
    return w.coordinator.commit(group, Commit({key: Offset(offset, 3, metadata)}, producer=producer, **more))


def commit(w, offset=5, **more):
    future = begin(w, offset, **more)
    w.run(0.01)
    return next(iter(future.result().values()))


def end(w, producer=ANA, *, committed=True, group="g"):
    index = partition_of(group, PARTITIONS)
    w.log.mark(index, producer.id, committed=committed)
    w.coordinator.transaction_ended(index, producer.id, committed=committed)
    w.run(0.01)


def offset_of(w, key=KEY, group="g"):
    found = w.coordinator.committed(group).get(key)
    return None if found is None else found.offset


def is_unstable(w, key=KEY, group="g"):
    return w.coordinator.unstable(group)(key)


def test_a_commit_is_answered_when_it_is_in_the_log_and_visible_when_the_transaction_is_committed():
    w = World()
    assert commit(w, 42, metadata="note") == ErrorCode.NONE
    assert (offset_of(w), is_unstable(w)) == (None, True)
    end(w)
    found = w.coordinator.committed("g")[KEY]
    assert (found.offset, found.leader_epoch, found.metadata) == (42, 3, "note")
    assert not is_unstable(w)


def test_it_is_in_the_log_as_the_producers():
    w = World()
    commit(w, producer=BOB)
    assert [batch.producer for batch in w.log.batches[INDEX]] == [BOB]


def test_of_an_aborted_transaction_nothing_is_left():
    w = World()
    commit(w)
    end(w, committed=False)
    assert w.group() is None
    assert w.coordinator.committed("g") == {}


def test_an_aborted_transaction_leaves_the_offset_before_it():
    w = World()
    commit(w, 1, producer=None)
    commit(w, 2)
    assert (offset_of(w), is_unstable(w)) == (1, True)
    end(w, committed=False)
    assert (offset_of(w), is_unstable(w)) == (1, False)


def test_a_transaction_that_ends_ends_for_all_its_groups_of_the_partition():
    w = World()
    second = next(f"g{n}" for n in range(100) if partition_of(f"g{n}", PARTITIONS) == INDEX)
    elsewhere = next(f"g{n}" for n in range(100) if partition_of(f"g{n}", PARTITIONS) != INDEX)
    for group in ("g", second, elsewhere):
        commit(w, group=group)
    end(w)
    assert [offset_of(w, group=group) for group in ("g", second, elsewhere)] == [5, 5, None]


def test_a_commit_that_is_on_its_way_and_earlier_in_the_log_does_not_win():
    w = World()
    w.log.slow = True
    ordinary = begin(w, 1, producer=None)
    transactional = begin(w, 2)
    w.log.commit()
    assert (ordinary.done, transactional.done, offset_of(w)) == (True, True, 1)
    end(w)
    assert offset_of(w) == 2


def test_an_ordinary_commit_during_the_transaction_stays():
    w = World()
    commit(w, 1)
    commit(w, 2, producer=None)
    end(w)
    assert offset_of(w) == 2
    w.take_over()
    assert offset_of(w) == 2


def test_an_ordinary_commit_between_two_on_the_log_is_settled_by_its_place_there():
    w = World()
    w.log.slow = True
    begin(w, 1)
    begin(w, 2, producer=None)
    w.log.commit()
    end(w)
    assert offset_of(w) == 2


# --- what is refused --------------------------------------------------------------------------------------------------


def test_who_says_nothing_of_a_member_may_commit_whatever_the_group_is_doing():
    w = World()
    w.alone()
    assert commit(w) == ErrorCode.NONE
    assert w.group().state is GroupState.STABLE


def test_who_says_as_which_member_has_to_be_it():
    w = World()
    member = w.alone()
    assert commit(w, member_id=member, generation=1) == ErrorCode.NONE
    assert commit(w, member_id=member, generation=0) == ErrorCode.ILLEGAL_GENERATION
    assert commit(w, member_id=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert commit(w, member_id=member) == ErrorCode.ILLEGAL_GENERATION
    assert commit(w, member_id="another", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(w, member_id=member, generation=1, instance_id="I") == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_was_replaced_is_fenced():
    w = World()
    member = w.alone(instance_id="I")
    w.join(instance_id="I")
    w.run(0.01)
    assert commit(w, member_id=member, generation=1, instance_id="I") == ErrorCode.FENCED_INSTANCE_ID


def test_members_may_commit_between_join_and_sync():
    w = World()
    member = w.alone()
    w.join(member_id=member)
    w.run(0.01)
    assert w.group().state is GroupState.COMPLETING
    assert commit(w, member_id=member, generation=2) == ErrorCode.NONE


def test_a_member_of_a_group_that_does_not_exist_is_unknown():
    w = World()
    assert commit(w, member_id="m", generation=3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert w.group() is None


def test_a_producers_commit_is_no_sign_of_life_of_a_member():
    w = World()
    member = w.alone(session_timeout_ms=6_000)
    w.run(5)
    assert commit(w, member_id=member, generation=1) == ErrorCode.NONE
    w.run(2)
    assert w.group().state is GroupState.EMPTY


def test_too_much_metadata_is_refused_for_its_partition_only():
    w = World()
    asked = Commit({KEY: Offset(1, metadata="x" * 4097), OTHER: Offset(2, metadata="x" * 4096)}, producer=ANA)
    future = w.coordinator.commit("g", asked)
    w.run(0.01)
    assert future.result() == {KEY: ErrorCode.OFFSET_METADATA_TOO_LARGE, OTHER: ErrorCode.NONE}
    end(w)
    assert list(w.coordinator.committed("g")) == [OTHER]


@pytest.mark.parametrize(
    ("log_says", "producer_hears"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_the_log_does_not_take_is_not_pending(log_says, producer_hears):
    w = World()
    w.log.error = log_says
    assert commit(w) == producer_hears
    assert w.group() is None


def test_what_the_log_has_counts_even_if_the_producer_was_told_that_it_took_too_long():
    w = World()
    w.log.slow = True
    future = begin(w)
    w.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    assert future.result() == {KEY: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    end(w)
    assert offset_of(w) == 5
    w.take_over()
    assert offset_of(w) == 5


# --- whoever leads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends_at_the_coordinator_that_came_meanwhile(committed):
    w = World()
    commit(w, 1, producer=None)
    commit(w, 2)
    w.take_over()
    assert (offset_of(w), is_unstable(w)) == (1, True)
    end(w, committed=committed)
    assert (offset_of(w), is_unstable(w)) == (2 if committed else 1, False)


@pytest.mark.parametrize(("committed", "left"), [(True, 5), (False, None)])
def test_one_that_has_ended_is_loaded_so(committed, left):
    w = World()
    commit(w)
    end(w, committed=committed)
    w.take_over()
    assert (offset_of(w), is_unstable(w)) == (left, False)


def test_a_transaction_behind_an_aborted_one_of_its_producer_is_another():
    w = World()
    commit(w, 1)
    end(w, committed=False)
    commit(w, 2, key=OTHER)
    w.take_over()
    end(w)
    assert (offset_of(w), offset_of(w, OTHER)) == (None, 2)


def test_an_end_at_a_broker_that_does_not_lead_is_harmless():
    w = World()
    commit(w)
    w.resign()
    w.coordinator.transaction_ended(INDEX, ANA.id, committed=True)
    w.coordinator.transaction_ended(99, ANA.id, committed=True)


@pytest.mark.parametrize("pieces", range(5))
def test_a_marker_is_not_lost_while_the_partition_is_loading(pieces):
    """However much of the log is read when it comes: it is read as well, or told when all is loaded."""
    w = World()
    for n in range(3 * RECORDS_PER_PAUSE):
        commit(w, n, key=("t", n), producer=None)
    commit(w, 99)
    w.resign()
    w.background.held = True
    w.elect()
    for _ in range(pieces):
        w.background.release()
        w.run(0.01)
    is_loading = w.coordinator.committed("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert is_loading is (pieces < 4)
    end(w)
    w.background.held = False
    w.background.release()
    w.run(0.01)
    assert (offset_of(w), is_unstable(w)) == (99, False)


def test_a_marker_is_not_lost_between_reading_and_serving(monkeypatch):
    """While the members' sessions begin, of which there may be many."""
    w = World()
    commit(w, 1)
    loaded = Groups.loaded

    def marked_meanwhile(groups):
        yield from loaded(groups)
        if groups.entries:
            assert w.coordinator.committed("g") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            end(w)

    monkeypatch.setattr(Groups, "loaded", marked_meanwhile)
    w.take_over()
    assert (offset_of(w), is_unstable(w)) == (1, False)


# --- instances --------------------------------------------------------------------------------------------------------


def same_names(group="g"):
    """Groups of two instances with the same name, in one partition."""
    first = "aaaaaaaa." + group
    keys = (f"{n:08d}" for n in range(1_000))
    return first, next(f"{k}.{group}" for k in keys if partition_of(f"{k}.{group}", 4) == partition_of(first, 4))


def test_a_producer_id_of_another_instance_is_as_unknown_as_any():
    w = World()
    mine, theirs = same_names()
    assert commit(w, 1, group=mine) == ErrorCode.NONE
    assert commit(w, 2, group=theirs) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    w.take_over()
    assert commit(w, 2, group=theirs) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert commit(w, 2, group=theirs, producer=BOB) == ErrorCode.NONE
    end(w, group=mine)
    assert (offset_of(w, group=mine), offset_of(w, group=theirs)) == (1, None)
    assert is_unstable(w, group=theirs)
    end(w, BOB, group=theirs)
    assert (offset_of(w, group=mine), offset_of(w, group=theirs)) == (1, 2)


# --- the end of offsets -----------------------------------------------------------------------------------------------


def asked(w, future):
    w.run(0.01)
    return future.result()


def test_a_group_may_be_deleted_while_a_transaction_is_open_and_does_not_come_back():
    w = World()
    commit(w, 1, producer=None)
    commit(w, 2)
    commit(w, 3, key=OTHER)
    assert asked(w, w.coordinator.delete_group("g")) == ErrorCode.NONE
    w.take_over()
    assert w.group() is None
    end(w)
    assert w.group() is None
    w.take_over()
    assert w.group() is None


def test_a_group_with_members_may_not():
    w = World()
    w.alone()
    commit(w)
    assert asked(w, w.coordinator.delete_group("g")) == ErrorCode.NON_EMPTY_GROUP
    end(w)
    assert offset_of(w) == 5


def test_an_offset_that_is_deleted_is_not_committed_by_the_end_of_a_transaction():
    w = World()
    commit(w, 1)
    commit(w, 2, key=OTHER)
    deleted = asked(w, w.coordinator.delete_offsets("g", [KEY]))
    assert deleted == (ErrorCode.NONE, {KEY: ErrorCode.NONE})
    assert not is_unstable(w)
    end(w)
    assert (offset_of(w), offset_of(w, OTHER)) == (None, 2)
    w.take_over()
    assert (offset_of(w), offset_of(w, OTHER)) == (None, 2)


def test_a_commit_behind_a_tombstone_that_is_on_its_way_stays():
    w = World()
    commit(w, 1)
    w.log.slow = True
    w.coordinator.delete_offsets("g", [KEY])
    begin(w, 2)
    w.log.commit()
    assert is_unstable(w)
    end(w)
    assert offset_of(w) == 2
    w.take_over()
    assert offset_of(w) == 2


def test_offsets_of_a_deleted_topic_do_not_come_back_with_the_end_of_a_transaction():
    w = World()
    commit(w, 1)
    w.coordinator.partitions_deleted([KEY])
    w.run(2 * RETRY_S)
    assert w.group() is None
    end(w)
    assert w.group() is None
    w.take_over()
    assert w.group() is None


def test_what_is_committed_for_a_topic_of_the_same_name_while_it_is_forgotten_stays():
    w = World()
    commit(w, 1, producer=None)
    w.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    w.coordinator.partitions_deleted([KEY])
    w.log.error = ErrorCode.NONE
    commit(w, 2)
    w.run(2 * RETRY_S)
    end(w)
    assert offset_of(w) == 2


def test_nothing_expires_that_a_transaction_has_committed_again():
    w = World()
    w.coordinator.start()
    commit(w, 1, producer=None)
    commit(w, 2)
    w.run(8 * DAY_S)
    assert (offset_of(w), is_unstable(w)) == (1, True)
    end(w, committed=False)
    w.run(2 * w.settings.offsets_retention_check_interval_ms / 1000)
    assert w.group() is None


def test_a_group_that_has_only_an_open_transaction_is_neither_forgotten_nor_expired():
    w = World()
    w.coordinator.start()
    commit(w, 2)
    w.run(8 * DAY_S)
    assert is_unstable(w)
    end(w)
    assert offset_of(w) == 2


def test_the_next_transaction_of_another_producer_sees_an_empty_group_of_the_same_name():
    w = World()
    commit(w)
    end(w, committed=False)
    assert w.group() is None
    commit(w, 9, producer=BOB)
    end(w)
    assert w.group().state is GroupState.EMPTY
    assert (offset_of(w), is_unstable(w)) == (None, True)
    end(w, BOB)
    assert offset_of(w) == 9


def test_an_instance_may_have_so_much_pending_and_no_other_pays_for_it():
    w = World(pending_bytes_per_instance=2 * size_of("") + 10)
    mine = [f"aaaabbbb.{number}" for number in range(3)]
    assert commit(w, group=mine[0], producer=Producer(1, 0)) == ErrorCode.NONE
    assert commit(w, group=mine[1], producer=Producer(2, 0), metadata="far too long") == ErrorCode.POLICY_VIOLATION
    assert commit(w, group=mine[1], producer=Producer(2, 0)) == ErrorCode.NONE
    assert commit(w, group=mine[2], producer=Producer(3, 0)) == ErrorCode.POLICY_VIOLATION
    assert commit(w, group="bbbbcccc.g", producer=Producer(4, 0)) == ErrorCode.NONE
    assert commit(w, group=mine[2], producer=None) == ErrorCode.NONE, "nobody else's transaction keeps it"
    assert w.coordinator.refusals == {"aaaabbbb": 2}
    w.take_over()
    assert commit(w, group=mine[2], producer=Producer(3, 0)) == ErrorCode.POLICY_VIOLATION
    end(w, Producer(1, 0), group=mine[0])
    assert commit(w, group=mine[2], producer=Producer(3, 0)) == ErrorCode.NONE


def test_a_group_that_is_refused_is_not_there():
    w = World(pending_bytes_per_instance=1)
    assert commit(w, group="aaaabbbb.g") == ErrorCode.POLICY_VIOLATION
    assert w.group("aaaabbbb.g") is None
