"""Members come and go: targets, what is given up and taken, time, and the log in between."""

from dataplane.groups.consumer.model import GroupState, Matched
from dataplane.groups.consumer.state import CLEAR_UP_TIMER
from dataplane.groups.settings import ConsumerRules
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.consumer.machine import Machine, durable


def test_the_first_member_gets_everything_at_once():
    machine = Machine()
    joined = machine.join("ana")
    assert (joined.error, joined.epoch) == (ErrorCode.NONE, 1)
    assert machine.has("ana") == (0, 1, 2, 3)
    assert machine.group.state() is GroupState.STABLE


def test_a_partition_changes_hands_only_when_its_owner_says_so():
    machine = Machine()
    machine.join("ana")
    assert machine.join("bob").assignment == {}
    told = machine.beat("ana", 1)
    assert machine.has("ana") == (0, 1)
    assert told.epoch == 1  # until she has given up
    assert machine.beat("bob", 2).assignment is None
    assert machine.group.state() is GroupState.RECONCILING
    assert machine.beat("ana", 1, owned=told.assignment).epoch == 2
    machine.beat("bob", 2)
    assert machine.has("bob") == (2, 3)
    assert machine.group.state() is GroupState.STABLE


def test_who_waits_writes_nothing():
    machine = Machine()
    machine.join("ana")
    machine.join("bob")
    written = len(machine.log)
    assert machine.beat("bob", 2).assignment is None
    assert len(machine.log) == written


def test_what_a_member_leaves_others_get():
    machine = Machine()
    machine.join("ana")
    machine.join("bob")
    assert machine.beat("ana", -1).epoch == -1
    machine.beat("bob", 2)
    assert machine.has("bob") == (0, 1, 2, 3)


def test_the_last_one_leaves_an_empty_group():
    machine = Machine()
    machine.join("ana")
    machine.beat("ana", -1)
    assert machine.group.state() is GroupState.EMPTY
    assert not machine.timers
    assert not machine.group.is_blank()


def test_a_session_ends():
    machine = Machine()
    machine.join("ana")
    assert machine.timers["session:ana"].delay_ms == 45_000
    machine.ring("session:ana")
    assert machine.beat("ana", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_in_time_is_given_up():
    machine = Machine()
    machine.join("ana")
    machine.join("bob")
    machine.beat("ana", 1)
    assert machine.timers["revocation:ana"].delay_ms == 60_000
    machine.ring("revocation:ana")
    assert list(machine.group.members) == ["bob"]
    machine.beat("bob", 2)
    assert machine.has("bob") == (0, 1, 2, 3)


def test_who_gives_up_in_time_is_not_asked_again():
    machine = Machine()
    machine.join("ana")
    machine.join("bob")
    told = machine.beat("ana", 1)
    machine.beat("ana", 1, owned=told.assignment)
    assert "revocation:ana" not in machine.timers


def test_most_members_choose_the_assignor():
    machine = Machine(t=3, u=3)
    machine.join("ana", "t", "u", assignor="range")
    machine.join("bob", "t", "u", assignor="range")
    told = machine.beat("ana", 1)
    machine.beat("ana", 1, owned=told.assignment)
    machine.beat("bob", 2)
    assert (machine.has("ana", "t"), machine.has("ana", "u")) == ((0, 1), (0, 1))


# --- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_that_grows_is_a_new_epoch_with_the_next_heartbeat():
    machine = Machine()
    machine.join("ana")
    machine.topics.put("t", 6)
    assert machine.beat("ana", 1).epoch == 2
    assert machine.has("ana") == (0, 1, 2, 3, 4, 5)


def test_a_topic_that_comes_later_is_assigned_then():
    machine = Machine(u=1)
    assert machine.join("ana", "t").assignment == {}
    machine.topics.put("t", 2)
    machine.beat("ana", 1)
    assert machine.has("ana") == (0, 1)


def test_a_deleted_topic_is_taken_from_who_has_it():
    machine = Machine(t=1, u=1)
    machine.join("ana", "t", "u")
    machine.topics.drop("u")
    told = machine.beat("ana", 1)
    assert list(told.assignment) == [machine.topics.rows["t"].topic_id]
    assert machine.beat("ana", 1, owned=told.assignment).epoch == 2


def test_a_topic_made_again_is_another():
    machine = Machine()
    before = machine.join("ana").assignment
    machine.topics.drop("t")
    machine.topics.put("t", 4)
    told = machine.beat("ana", 1)
    machine.beat("ana", 1, owned=told.assignment)
    assert set(before) != set(machine.group.members["ana"].assigned)
    assert machine.has("ana") == (0, 1, 2, 3)


def test_another_topic_changes_nothing():
    machine = Machine()
    machine.join("ana")
    machine.topics.put("u", 1)
    assert machine.beat("ana", 1).epoch == 1
    assert len(machine.replayed().topics) == 1


def test_a_member_subscribes_to_something_else():
    machine = Machine(t=1, u=1)
    machine.join("ana", "t")
    told = machine.beat("ana", 1, topics=("u",))
    assert told.assignment == {}
    machine.beat("ana", 1, owned={})
    assert machine.has("ana", "u") == (0,)


def test_a_regular_expression_ends_with_its_last_member():
    machine = Machine(t=1, u=1)
    machine.join("ana", topics=(), pattern="t|u", matched=Matched(("t", "u")))
    machine.join("bob", topics=(), pattern="t|u")
    assert machine.group.subscribed() == ["t", "u"]
    machine.beat("ana", -1)
    assert "t|u" in machine.group.matched
    machine.beat("bob", 2, pattern="", topics=("t",))
    assert not machine.group.matched
    assert machine.group.subscribed() == ["t"]


def test_what_a_regular_expression_matches_changes():
    machine = Machine(t1=1)
    machine.join("ana", topics=(), pattern="t.", matched=Matched(("t1",)))
    machine.topics.put("t2", 1)
    assert machine.beat("ana", 1, matched=Matched(("t1", "t2"))).epoch == 2
    assert machine.has("ana", "t2") == (0,)


# --- the log ----------------------------------------------------------------------------------------------------------


def test_nothing_is_true_before_it_is_committed():
    machine = Machine()
    machine.log_is_slow = True
    token = machine.ask("ana", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    assert token not in machine.replies
    assert not machine.group.members
    machine.commit()
    assert machine.replies[token].epoch == 1


def test_those_who_wait_are_taken_together():
    machine = Machine()
    machine.join("first")
    machine.log_is_slow = True
    tokens = [machine.ask(f"m{n}", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={}) for n in range(4)]
    machine.commit()
    assert machine.group.epoch == 2  # of the one that did not wait
    machine.commit()
    assert machine.group.epoch == 3  # of all the others
    assert {machine.replies[token].epoch for token in tokens[1:]} == {3}


def test_a_heartbeat_that_changes_nothing_does_not_wait():
    machine = Machine()
    machine.join("ana")
    machine.log_is_slow = True
    machine.ask("bob", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    assert machine.beat("ana", 1).error == ErrorCode.NONE


def test_what_the_log_does_not_take_has_not_happened():
    machine = Machine()
    machine.join("ana")
    machine.log_is_slow = True
    token = machine.ask("bob", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    machine.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert machine.replies[token].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(machine.group.members) == ["ana"]


def test_what_the_log_took_after_all_is_overwritten():
    machine = Machine()
    machine.join("ana")
    machine.log_is_slow = True
    machine.ask("bob", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    machine.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE, is_in_the_log=True)
    assert "bob" in machine.replayed().members
    machine.log_is_slow = False
    machine.ring(CLEAR_UP_TIMER)
    assert machine.replayed() == durable(machine.group)
    assert list(machine.group.members) == ["ana"]


def test_a_session_that_ends_while_the_log_is_slow_ends_a_little_later():
    machine = Machine(ConsumerRules(session_timeout_ms=10))
    machine.join("ana")
    machine.join("bob")
    machine.log_is_slow = True
    machine.ask("carl", 0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    machine.ring("session:bob")
    assert machine.timers["session:bob"].delay_ms == 50
    machine.commit()
    machine.ring("session:bob")
    machine.commit(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert "bob" in machine.group.members
    machine.ring("session:bob")
    machine.commit()
    assert "bob" not in machine.group.members
