"""Groups of the consumer protocol at their coordinator: on virtual time, over a log, beside groups of the classic protocol."""

import pytest

from dataplane.coordination.effects import Producer
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.consumer.events import Heartbeat
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future
from tests.dataplane.groups import support

KEY = "aaaaaaaa"
G, T = f"{KEY}.g", f"{KEY}.t"


class World(support.World):
    """With a topic of four partitions, `T`."""

    def __init__(self, **changes):
        super().__init__(**changes)
        self.topics.put(T, 4)
        self.hidden = set()

    def beats(self, member, epoch, group=G, **more):
        if epoch == 0:
            more = {"topics": (T,), "rebalance_timeout_ms": 60_000, "owned": {}, **more}
        ask = Heartbeat(member, epoch, **more)
        future = self.coordinator.consumers.heartbeat(group, ask, lambda topic: topic not in self.hidden, KEY)
        self.run(0.01)
        return future.result() if future.done else future

    def consumer(self, group=G):
        return self.coordinator.find(group).consumer

    def has(self, member, name=T):
        return self.consumer().members[member].assigned.get(self.topics.rows[name].topic_id, ())

    def commits(self, member, epoch, **more):
        ask = Commit({(T, 0): Offset(7)}, epoch, member, **more)
        future = self.coordinator.commit(G, ask)
        self.run(0.01)
        return future.result()[T, 0]


def test_a_member_joins_and_a_successor_has_the_group():
    world = World()
    assert world.beats("ana", 0).epoch == 1
    before = world.consumer()
    world.take_over()
    assert world.consumer().members == before.members
    assert world.beats("ana", 1).error == ErrorCode.NONE
    world.run(46)
    assert world.beats("ana", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_time_to_give_up_goes_on_with_the_successor():
    world = World()
    world.beats("ana", 0, rebalance_timeout_ms=5_000)
    world.beats("bob", 0)
    world.beats("ana", 1)
    world.take_over()
    world.run(6)
    assert list(world.consumer().members) == ["bob"]


def test_what_waits_for_the_log_hears_of_a_new_coordinator():
    world = World()
    world.log.slow = True
    waiting = world.beats("ana", 0)
    assert isinstance(waiting, Future)
    world.resign()
    assert waiting.result().error == ErrorCode.NOT_COORDINATOR


def test_a_refused_join_leaves_no_group():
    world = World()
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beats("ana", 0).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.error = ErrorCode.NONE
    world.run(2)
    assert world.coordinator.find(G) is None


def test_a_group_that_nobody_joined_is_not_found():
    assert World().beats("ana", 1).error == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_instance_has_so_many_groups_and_no_more():
    world = World(groups_per_instance=1)
    groups = [f"{KEY}.{n}" for n in range(40)]
    errors = {world.beats("ana", 0, group).error for group in groups}
    assert errors == {ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED}


# --- regular expressions ----------------------------------------------------------------------------------------------


def test_a_regular_expression_is_matched_with_the_instances_own_names():
    world = World()
    world.topics.put(f"{KEY}.tea", 1)
    world.topics.put("bbbbbbbb.t", 1)
    world.beats("ana", 0, topics=None, pattern="t")
    assert world.consumer().subscribed() == [T]
    world.beats("ana", 1, pattern="te?a?")
    assert world.consumer().subscribed() == [T, f"{KEY}.tea"]


def test_topics_that_come_later_are_matched_by_the_next_heartbeat():
    world = World()
    world.beats("ana", 0, topics=None, pattern="t.*")
    world.topics.put(f"{KEY}.t2", 2)
    world.beats("ana", 1)
    assert world.has("ana", f"{KEY}.t2") == (0, 1)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_heartbeat_of_which_nothing_came_is_not_the_one_that_looked(is_refused):
    world = World()
    world.beats("ana", 0, topics=None, pattern="t.*")
    world.topics.put(f"{KEY}.t2", 2)
    if is_refused:
        assert world.beats("ana", 9, pattern="t.*").error == ErrorCode.FENCED_MEMBER_EPOCH
    else:
        world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.beats("ana", 1).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.log.error = ErrorCode.NONE
    world.beats("ana", 1)
    assert world.has("ana", f"{KEY}.t2") == (0, 1)


def test_what_a_member_may_not_see_it_does_not_match():
    world = World()
    world.hidden.add(T)
    world.beats("ana", 0, topics=None, pattern=".*")
    assert world.consumer().subscribed() == []


@pytest.mark.parametrize("pattern", ["(", "a" * 1_001, "(?P<n>a)(?P=n)", "((a{100}){100}){100}"])
def test_what_is_no_regular_expression_is_refused(pattern):
    world = World()
    assert world.beats("ana", 0, topics=None, pattern=pattern).error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.coordinator.find(G) is None


# --- the two protocols ------------------------------------------------------------------------------------------------


def test_a_live_classic_group_takes_no_member_of_the_other_protocol():
    world = World()
    world.alone(G)
    assert world.beats("ana", 0).error == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_classic_group_becomes_one_of_the_other_protocol_and_keeps_its_offsets():
    world = World()
    member = world.alone(G)
    world.coordinator.commit(G, Commit({(T, 1): Offset(5)}, 1, member))
    world.leave(member, group=G)
    world.run(0.1)
    assert world.beats("ana", 0).epoch == 1
    world.take_over()
    entry = world.coordinator.find(G)
    assert entry.group.is_blank()
    assert list(entry.consumer.members) == ["ana"]
    assert world.coordinator.committed(G)[T, 1].offset == 5


def test_a_live_group_takes_no_classic_member():
    world = World()
    world.beats("ana", 0)
    joined = world.join(G)
    assert joined.result().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.heartbeat("ana", 1, G) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_becomes_classic_again():
    world = World()
    world.beats("ana", 0)
    world.commits("ana", 1, knows_epochs=True)
    world.beats("ana", -1)
    world.alone(G)
    assert world.coordinator.find(G).consumer is None
    assert world.coordinator.committed(G)[T, 0].offset == 7
    world.take_over()
    entry = world.coordinator.find(G)
    assert entry.consumer is None
    assert len(entry.group.members) == 1


# --- offsets and removal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "epoch", "knows", "error"),
    [
        ("ana", 1, True, ErrorCode.NONE),
        ("ana", 0, True, ErrorCode.STALE_MEMBER_EPOCH),
        ("ana", 1, False, ErrorCode.UNSUPPORTED_VERSION),
        ("bob", 1, True, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, True, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit(member, epoch, knows, error):
    world = World()
    world.beats("ana", 0)
    assert world.commits(member, epoch, knows_epochs=knows) == error


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("", -1, ErrorCode.NONE),  # it says nothing of a member: its own epoch fences it
        ("ana", 1, ErrorCode.NONE),
        ("ana", 0, ErrorCode.ILLEGAL_GENERATION),  # as Kafka: producers know of no stale epoch
        ("bob", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit_in_a_transaction(member, epoch, error):
    world = World()
    world.beats("ana", 0)
    assert world.commits(member, epoch, producer=Producer(7, 0)) == error


def test_anybody_may_commit_while_there_are_no_members():
    world = World()
    world.beats("ana", 0)
    world.beats("ana", -1)
    assert world.commits("", -1) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("knows", "error"), [(True, ErrorCode.GROUP_ID_NOT_FOUND), (False, ErrorCode.ILLEGAL_GENERATION)]
)
def test_a_commit_to_no_group(knows, error):
    assert World().commits("ana", 1, knows_epochs=knows) == error


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("ana", 1, ErrorCode.NONE),
        ("ana", 2, ErrorCode.STALE_MEMBER_EPOCH),
        ("bob", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_ask_for_offsets(member, epoch, error):
    world = World()
    world.beats("ana", 0)
    assert world.coordinator.fetch_problem(G, member, epoch) == error


def test_a_group_with_members_is_not_deleted_and_an_empty_one_is_with_everything():
    world = World()
    world.beats("ana", 0, topics=None, pattern="t")
    world.commits("ana", 1, knows_epochs=True)
    assert world.coordinator.delete_group(G).result() == ErrorCode.NON_EMPTY_GROUP
    world.beats("ana", -1)
    deleted = world.coordinator.delete_group(G)
    world.run(0.01)
    assert deleted.result() == ErrorCode.NONE
    world.take_over()
    assert world.coordinator.find(G) is None


def test_a_group_is_not_deleted_while_the_log_may_know_of_a_member():
    world = World()
    world.beats("ana", 0)
    world.beats("ana", -1)
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    world.beats("bob", 0)
    world.log.error = ErrorCode.NONE
    assert world.coordinator.delete_group(G).result() == ErrorCode.NON_EMPTY_GROUP
    world.run(2)
    deleted = world.coordinator.delete_group(G)
    world.run(0.1)
    assert deleted.result() == ErrorCode.NONE


def test_while_a_group_is_being_deleted_nobody_joins():
    world = World()
    world.beats("ana", 0)
    world.beats("ana", -1)
    world.log.slow = True
    deleted = world.coordinator.delete_group(G)
    assert world.beats("ana", 0).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.delete_group(G).result() == ErrorCode.GROUP_ID_NOT_FOUND
    world.log.commit(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert deleted.result() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.slow = False
    assert world.beats("ana", 0).error == ErrorCode.NONE


def test_offsets_of_topics_that_are_read_are_not_deleted():
    world = World()
    world.beats("ana", 0)
    deleted = world.coordinator.delete_offsets(G, [(T, 0), (f"{KEY}.u", 0)])
    world.run(0.01)
    error, answers = deleted.result()
    assert error == ErrorCode.NONE
    assert answers == {(T, 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, (f"{KEY}.u", 0): ErrorCode.NONE}


def test_offsets_of_a_living_group_stay_and_an_empty_group_ends_with_its_last():
    world = World(offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000)
    world.coordinator.start()
    world.beats("ana", 0)
    world.commits("ana", 1, knows_epochs=True)
    for _ in range(6):
        world.run(20)
        world.beats("ana", 1)
    assert world.coordinator.committed(G)
    world.beats("ana", -1)
    world.run(20)
    assert world.coordinator.find(G) is None
