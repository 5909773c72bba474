"""A live group goes from the classic protocol to the consumer protocol and back (KIP-848), at its coordinator over a log."""

from dataclasses import replace

import pytest

from dataplane.groups.classic.events import Heartbeat, Join, Leave, Sync
from dataplane.groups.classic.model import GroupState
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.consumer import conversion
from dataplane.groups.consumer.events import RejoinExpired, SyncExpired
from dataplane.groups.settings import ConsumerRules
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups.classic_clients import ClassicClient, assignment, places_in, subscription
from tests.dataplane.groups.consumer.test_coordinator import KEY, G, T, World

SIZES = {"t": 4}
METHODS = {Join: "join", Sync: "sync", Heartbeat: "heartbeat", Leave: "leave"}


class Both(World):
    """With members of either protocol."""

    def asks(self, request):
        future = getattr(self.coordinator, METHODS[type(request)])(G, request)
        self.run(0.01)
        return future

    def lets_act(self, *clients, times=1):
        """Each asks what it would ask next, in turn; all hear what there is to hear."""
        for _ in range(times):
            futures = [(client, self.asks(client.request())) for client in clients]
            self.run(0.2)
            for client, future in futures:
                client.hears(future.result())


@pytest.fixture
def world():
    return Both()


def one(world, **more):
    """A stable group of one dynamic member, which has everything."""
    client = ClassicClient(("t",), SIZES, **more)
    world.lets_act(client, times=4)
    assert client.next == "heartbeat"
    assert client.owns == {("t", n) for n in range(4)}
    return client


def test_a_member_of_the_consumer_protocol_joins_a_live_group_and_they_share(world):
    ann = one(world)
    joined = world.beats("xan", 0)
    assert (joined.error, joined.epoch, joined.assignment) == (ErrorCode.NONE, 2, {})
    assert world.coordinator.find(G).group.is_blank()
    world.lets_act(ann)
    assert ann.next == "join"  # it was told to
    world.lets_act(ann, times=2)
    assert ann.generation == 2
    assert len(ann.owns) == 2
    world.beats("xan", 2)
    assert len(world.has("xan")) == 2
    assert {("t", p) for p in world.has("xan")} | ann.owns == {("t", n) for n in range(4)}


def test_nothing_is_another_members_before_the_classic_one_has_joined_again(world):
    one(world)
    world.beats("xan", 0)
    world.beats("xan", 2)
    assert world.has("xan") == ()


def test_a_cooperative_member_keeps_what_stays_its_own(world):
    ann = one(world, cooperative=True)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)  # heartbeat, join, sync: it is told to give two up
    assert ann.next == "join"
    assert len(ann.owns) == 2
    world.beats("xan", 2)
    assert world.has("xan") == ()
    kept = set(ann.owns)
    world.lets_act(ann, times=2)
    assert ann.owns == kept
    world.beats("xan", 2)
    assert len(world.has("xan")) == 2


def test_what_a_cooperative_member_has_not_given_up_yet_is_nobody_elses(world):
    ann = one(world, cooperative=True)
    ben = ClassicClient(("t",), SIZES, cooperative=True)
    world.lets_act(ben)
    waiting = world.asks(ben.request())
    world.lets_act(ann)
    world.lets_act(ann)
    world.run(0.1)
    ben.hears(waiting.result())
    told = world.asks(ann.request())  # the leader assigns; it has not heard yet that it shall have less
    assert world.coordinator.find(G).group.state is GroupState.STABLE
    assert len(places_in(told.result().assignment)) == 2
    world.beats("xan", 0)
    for _ in range(3):
        world.beats("xan", world.consumer().members["xan"].epoch)
    assert not {("t", p) for p in world.has("xan")} & ann.owns
    ann.hears(told.result())
    for _ in range(4):
        world.lets_act(ann, ben)
        world.beats("xan", world.consumer().members["xan"].epoch)
    read = [*ann.owns, *ben.owns, *(("t", p) for p in world.has("xan"))]
    assert sorted(read) == [("t", n) for n in range(4)]


def settles(world, *clients):
    """Each asks as soon as it has been answered, until they have met."""
    asked = {}
    for _ in range(16):
        asked |= {client: world.asks(client.request()) for client in clients if client not in asked}
        world.run(0.2)
        for client in [client for client, future in asked.items() if future.done]:
            client.hears(asked.pop(client).result())


def test_a_group_that_has_settled_has_nothing_to_give_up(world):
    ann = one(world, cooperative=True)
    ben = ClassicClient(("t",), SIZES, cooperative=True)
    settles(world, ann, ben)
    assert world.coordinator.find(G).group.state is GroupState.STABLE
    assert len(ann.owns) == len(ben.owns) == 2
    world.beats("xan", 0)
    assert [dict(member.revoking) for member in world.consumer().members.values()] == [{}, {}, {}]


def test_a_successor_has_the_group_of_both(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    before = world.consumer()
    world.take_over()
    assert world.consumer().members == before.members
    world.lets_act(ann)
    assert ann.next == "heartbeat"
    assert world.beats("xan", 2).error == ErrorCode.NONE


@pytest.mark.parametrize(("generation", "error"), [(1, ErrorCode.NONE), (0, ErrorCode.ILLEGAL_GENERATION)])
def test_a_classic_member_commits_with_its_generation_until_it_joins_again(world, generation, error):
    ann = one(world)
    world.beats("xan", 0)
    assert world.commits(ann.member_id, generation) == error
    world.lets_act(ann, times=3)
    assert world.commits(ann.member_id, 1) == ErrorCode.ILLEGAL_GENERATION
    assert world.commits(ann.member_id, 2) == ErrorCode.NONE


def test_when_the_last_of_the_consumer_protocol_leaves_the_group_is_classic_again(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    world.commits(ann.member_id, 2)
    assert world.beats("xan", -1).error == ErrorCode.NONE
    entry = world.coordinator.find(G)
    assert entry.consumer is None
    assert (entry.group.state, entry.group.generation) == (GroupState.PREPARING, 2)
    world.lets_act(ann, times=3)
    assert (ann.generation, ann.next) == (3, "heartbeat")
    assert ann.owns == {("t", n) for n in range(4)}
    assert world.coordinator.committed(G)[T, 0].offset == 7


def test_a_session_that_ends_hands_the_group_over_as_well(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    for _ in range(6):
        world.run(8)
        world.lets_act(ann)
    world.lets_act(ann, times=3)
    assert world.coordinator.find(G).consumer is None
    assert ann.owns == {("t", n) for n in range(4)}


def test_a_successor_of_a_group_just_handed_over_lets_its_members_join(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    world.beats("xan", -1)
    world.take_over()
    entry = world.coordinator.find(G)
    assert entry.consumer is None
    assert entry.group.state is GroupState.PREPARING
    world.lets_act(ann, times=3)
    assert ann.owns == {("t", n) for n in range(4)}


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_where_it_is_switched_off_a_live_group_takes_no_member_of_the_other_protocol(policy):
    world = Both(consumer=ConsumerRules(upgrades=False, downgrades=policy == "downgrade"))
    ann = one(world)
    refused = world.beats("xan", 0)
    assert refused.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert "do not change" in refused.message
    world.lets_act(ann)
    assert ann.next == "heartbeat"


def test_without_the_way_back_the_consumer_protocol_stays():
    world = Both(consumer=ConsumerRules(downgrades=False))
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    world.beats("xan", -1)
    world.lets_act(ann, times=3)
    assert list(world.consumer().members) == [ann.member_id]
    assert ann.owns == {("t", n) for n in range(4)}


def test_a_classic_member_joins_a_group_of_the_consumer_protocol(world):
    world.beats("xan", 0)
    ann = ClassicClient(("t",), SIZES)
    world.lets_act(ann, times=3)
    assert ann.owns == set()
    xan = world.beats("xan", 1)
    assert len(xan.assignment[world.topics.rows[T].topic_id]) == 2
    world.beats("xan", 1, owned=xan.assignment)
    world.lets_act(ann, times=3)
    assert len(ann.owns) == 2


@pytest.mark.parametrize("error", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE])
def test_what_was_not_appended_leaves_nothing_in_doubt_and_the_classic_group_goes_on(world, error):
    ann = one(world)
    world.log.error = error
    assert world.beats("xan", 0).error != ErrorCode.NONE
    assert world.coordinator.find(G).consumer is None
    assert world.asks(ann.request()).result().error == ErrorCode.NONE


def test_what_was_not_appended_adds_nothing_to_what_is_in_doubt(world):
    world.beats("xan", 0)
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.beats("yve", 0)
    assert world.consumer().doubtful == ()
    world.log.error = ErrorCode.REQUEST_TIMED_OUT
    world.beats("yve", 0)
    in_doubt = world.consumer().doubtful
    assert in_doubt
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    world.beats("zoe", 0)
    assert world.consumer().doubtful == in_doubt
    world.log.error = ErrorCode.NONE
    world.run(1.5)
    assert world.consumer().doubtful == ()


def test_a_group_that_does_not_fit_into_one_batch_stays_classic():
    world = Both(consumer=ConsumerRules(max_batch_bytes=400))
    ann = one(world)
    refused = world.beats("xan", 0)
    assert refused.error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "too large" in refused.message
    assert world.coordinator.find(G).consumer is None
    world.lets_act(ann)
    assert ann.next == "heartbeat"


def test_a_group_of_too_many_members_stays_as_it_is_either_way():
    world = Both(consumer=ConsumerRules(max_changing=2))
    clients = of_both(world, 2)
    late = ClassicClient(("t",), SIZES, instance_id="late")
    world.lets_act(*clients, late, times=6)
    assert world.beats("xan", -1).error == ErrorCode.NONE
    assert len(world.consumer().members) == 3, "of classic members, and one too many to go back"
    world.asks(late.leave())
    assert world.coordinator.find(G).consumer is None
    world = Both(consumer=ConsumerRules(max_changing=0))
    one(world)
    refused = world.beats("xan", 0)
    assert refused.error == ErrorCode.GROUP_ID_NOT_FOUND
    assert "more than 0 members" in refused.message


def of_both(world, size):
    """A group of so many classic members and one of the consumer protocol."""
    world.beats("xan", 0)
    clients = [ClassicClient(("t",), SIZES, instance_id=f"i{n}") for n in range(size)]
    for _ in range(6):
        world.lets_act(*clients)
        world.beats("xan", world.consumer().members["xan"].epoch)
    return clients


def limited(world, limit):
    """From now on a batch may have so many bytes."""
    rules = replace(world.settings.consumer, max_batch_bytes=limit)
    world.coordinator._runtime._machine._settings = replace(world.settings, consumer=rules)


def test_a_group_that_does_not_fit_into_one_batch_stays_one_of_consumers(world):
    clients = of_both(world, 3)
    limited(world, 1_100)
    assert world.beats("xan", -1).error == ErrorCode.NONE
    assert len(world.consumer().members) == 3
    world.lets_act(*clients, times=6)
    assert {client.next for client in clients} == {"heartbeat"}
    assert set().union(*(client.owns for client in clients)) == {("t", n) for n in range(4)}
    world.asks(clients.pop().leave())
    world.asks(clients.pop().leave())  # now it fits
    assert world.coordinator.find(G).consumer is None


def overwritten(world, limit):
    """What was just asked is in doubt, and overwritten in batches of so many bytes: each in turn, with all before it."""
    index = world.coordinator.partition_of(G)
    world.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    world.log.slow = False
    limited(world, limit)
    batches = world.log.batches[index]
    known = len(batches)
    world.run(3)
    entry = world.coordinator.find(G)
    assert entry.consumer is None or entry.consumer.doubtful == ()
    assert len(batches) > known + 1
    for end in range(known + 1, len(batches) + 1):
        assert sum(len(key) + len(value or b"") for key, value in batches[end - 1].records) < limit
        yield {index: batches[:end]}


def successor_of(batches):
    """Who loads such a log."""
    successor = Both()
    successor.log.batches = batches
    successor.take_over()
    return successor.coordinator.find(G)


def test_a_failed_downgrade_is_overwritten_in_batches_that_fit(world):
    of_both(world, 4)
    world.log.slow = True
    world.beats("xan", -1)
    for batches in overwritten(world, 1_000):
        loaded = successor_of(batches)
        assert loaded.group.is_blank()
        assert loaded.consumer.epoch
    assert loaded.consumer.members == world.consumer().members


def test_a_failed_upgrade_is_overwritten_in_batches_that_fit(world):
    clients = [ClassicClient(("t",), SIZES, instance_id=f"i{n}") for n in range(4)]
    settles(world, *clients)
    world.log.slow = True
    world.beats("xan", 0)
    for batches in overwritten(world, 1_500):
        loaded = successor_of(batches)
        assert loaded is None or loaded.consumer is None or (loaded.group.is_blank() and loaded.consumer.epoch)
    assert loaded.consumer is None
    assert list(loaded.group.members) == [client.member_id for client in clients]


def test_requests_that_wait_for_batches_that_overwrite_are_answered_or_refused(world):
    of_both(world, 4)
    world.log.slow = True
    world.beats("xan", -1)
    world.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    limited(world, 1_000)
    world.log.slow = False
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beats("yve", 0).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.error = ErrorCode.NONE
    joins = world.beats("yve", 0)
    world.run(1)
    assert getattr(joins, "result", lambda: joins)().error == ErrorCode.NONE


def test_the_log_fails_and_the_classic_group_goes_on(world):
    ann = one(world)
    world.log.error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert world.beats("xan", 0).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    waits = world.asks(ann.request())
    assert not waits.done  # until it is certain what the log has
    world.log.error = ErrorCode.NONE
    world.run(1.5)
    assert waits.result().error == ErrorCode.NONE
    assert world.coordinator.find(G).consumer is None
    assert world.coordinator.find(G).group.state is GroupState.STABLE
    world.take_over()
    assert list(world.coordinator.find(G).group.members) == [ann.member_id]
    assert world.coordinator.find(G).consumer is None


def test_what_may_be_in_the_log_all_the_same_is_overwritten(world):
    ann = one(world)
    world.log.slow = True
    asked = world.beats("xan", 0)
    world.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    assert asked.result().error != ErrorCode.NONE
    world.log.slow = False
    world.run(1.5)
    world.take_over()
    entry = world.coordinator.find(G)
    assert entry.consumer is None
    assert list(entry.group.members) == [ann.member_id]
    assert places_in(entry.group.assignment(ann.member_id)) == ann.owns


def fails_to_upgrade(world):
    """A member of the consumer protocol joins, the log says neither yes nor no; it is overwritten, and a successor loads."""
    world.log.slow = True
    world.beats("xan", 0)
    world.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    world.log.slow = False
    world.run(1.5)
    world.take_over()


def test_a_rebalance_that_a_failed_change_met_begins_anew_with_the_successor(world):
    ann = one(world)
    ben = ClassicClient(("t",), SIZES)
    world.lets_act(ben)
    waiting = world.asks(ben.request())
    assert world.coordinator.find(G).group.state is GroupState.PREPARING
    fails_to_upgrade(world)
    assert waiting.result().error == ErrorCode.NOT_COORDINATOR
    entry = world.coordinator.find(G)
    assert entry.consumer is None
    assert (entry.group.state, entry.group.leader) == (GroupState.PREPARING, None)
    settles(world, ann, ben)
    assert ann.owns | ben.owns == {("t", n) for n in range(4)}
    assert not ann.owns & ben.owns


def test_of_a_group_that_never_agreed_a_failed_change_leaves_nothing():
    world = Both(group_initial_rebalance_delay_ms=30_000)
    ann = ClassicClient(("t",), SIZES)
    world.lets_act(ann)
    world.asks(ann.request())
    assert world.coordinator.find(G).group.members
    fails_to_upgrade(world)
    assert world.coordinator.find(G) is None


def test_who_waits_in_a_rebalance_joins_the_new_group(world):
    ann = one(world)
    ben = ClassicClient(("t",), SIZES)
    world.lets_act(ben)
    waiting = world.asks(ben.request())
    assert not waiting.done
    world.beats("xan", 0)
    world.run(0.1)
    ben.hears(waiting.result())
    assert ben.next == "sync"
    world.lets_act(ben)
    world.lets_act(ann, times=3)
    assert {ann.member_id, ben.member_id, "xan"} == set(world.consumer().members)


def test_an_assignment_on_its_way_to_the_log_is_waited_for(world):
    ann = ClassicClient(("t",), SIZES)
    world.lets_act(ann, times=2)
    world.log.slow = True
    synced = world.asks(ann.request())
    asked = world.beats("xan", 0)
    world.log.slow = False
    world.log.commit()
    world.run(0.1)
    ann.hears(synced.result())
    assert ann.owns == {("t", n) for n in range(4)}
    assert asked.result().assignment == {}


def test_a_member_that_does_not_join_again_in_its_time_is_removed(world):
    ann = one(world)
    world.beats("xan", 0)
    for _ in range(13):
        world.asks(Heartbeat(1, ann.member_id))
        world.run(5)
        world.beats("xan", 2)
    assert list(world.consumer().members) == ["xan"]
    assert world.has("xan") == (0, 1, 2, 3)


def test_a_member_that_joins_and_never_asks_for_its_assignment_is_removed(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=2)
    assert ann.next == "sync"
    for _ in range(13):
        world.asks(Heartbeat(2, ann.member_id))
        world.run(5)
        world.beats("xan", world.consumer().members["xan"].epoch)
    assert list(world.consumer().members) == ["xan"]


def test_a_session_of_a_classic_member_is_its_own(world):
    one(world)
    world.beats("xan", 0)
    world.run(11)
    assert list(world.consumer().members) == ["xan"]


def test_a_member_that_changes_its_protocol_under_its_id_is_not_waited_for_in_the_old_one(world):
    ann = one(world)
    world.beats("xan", 0)
    world.lets_act(ann, times=2)  # it has joined, and does not ask for its assignment
    world.run(0.1)
    timers = world.coordinator.find(G).timers
    assert timers.is_running(f"sync:{ann.member_id}")
    assert world.beats(ann.member_id, 0).error == ErrorCode.NONE
    assert not timers.is_running(f"sync:{ann.member_id}")
    for _ in range(14):
        for name in ("xan", ann.member_id):
            world.beats(name, world.consumer().members[name].epoch)
        world.run(5)
    assert set(world.consumer().members) == {"xan", ann.member_id}


@pytest.mark.parametrize("expired", [RejoinExpired, SyncExpired])
def test_time_to_answer_in_the_classic_protocol_ends_nobody_who_speaks_the_other(world, expired):
    world.beats("xan", 0)
    entry = world.coordinator.find(G)
    shard = world.coordinator._shard_of(G)
    world.coordinator._runtime.dispatch(shard, entry, expired("xan"))
    world.run(0.1)
    assert list(world.consumer().members) == ["xan"]


def test_the_timers_of_an_instance_ids_holder_end_with_it(world):
    world.beats("xan", 0, instance_id="i", rebalance_timeout_ms=5_000)
    world.beats("yve", 0)
    world.beats("xan", 1)  # has to give up two
    timers = world.coordinator.find(G).timers
    assert timers.is_running("revocation:xan")
    back = ClassicClient(("t",), SIZES, instance_id="i")
    world.lets_act(back)
    assert "xan" not in world.consumer().members
    assert not timers.is_running("revocation:xan")
    assert not timers.is_running("session:xan")


def test_a_static_member_changes_its_protocol(world):
    ann = one(world, instance_id="i")
    joined = world.beats("xan", 0, instance_id="i")
    assert joined.error == ErrorCode.NONE
    assert world.has("xan") == (0, 1, 2, 3)
    world.lets_act(ann)
    assert ann.owns == set()  # fenced
    back = ClassicClient(("t",), SIZES, instance_id="i")
    world.lets_act(back, times=4)
    assert world.coordinator.find(G).consumer is None
    assert back.owns == {("t", n) for n in range(4)}
    assert world.beats("xan", 2).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_assigned_a_partition_twice_leaves_it_to_one(world):
    ann, ben = (Join("", "consumer", (("range", subscription(("t",))),), 10_000, 60_000, name) for name in "ab")
    leader = world.asks(ann).result().member_id
    second = world.asks(ben)
    world.asks(replace(ann, member_id=leader))
    world.run(0.1)
    ids = leader, second.result().member_id
    world.asks(Sync(2, leader, "a", assignments=dict.fromkeys(ids, assignment({("t", 0)}))))
    assert world.beats("xan", 0).error == ErrorCode.NONE
    held = [place for member in world.consumer().members.values() for place in member.holds()]
    assert len(held) == len(set(held))
    assert [place for place in held if place[1] == 0] == [(world.topics.rows[T].topic_id, 0)]


@pytest.mark.parametrize(
    ("protocol_type", "metadata"),
    [("connect", subscription(("t",))), ("consumer", b"\x00"), ("consumer", b"\x00\x01x")],
)
def test_a_group_that_is_not_understood_stays_as_it_is(world, protocol_type, metadata):
    joined = world.asks(Join("", protocol_type, (("range", metadata),), 10_000, 60_000))
    world.asks(Sync(1, joined.result().member_id, assignments={}))
    assert world.beats("xan", 0).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(joined.result().member_id, 1, G) == ErrorCode.NONE


def led(world, name, given):
    """A stable group of one member with one strategy, which is its own leader; the member's id."""
    joined = world.asks(Join("", "consumer", ((name, subscription(("t",))),), 10_000, 60_000)).result()
    world.asks(Sync(1, joined.member_id, assignments={joined.member_id: given}))
    return joined.member_id


@pytest.mark.parametrize(
    ("name", "user_data", "error"),
    [
        ("stream", b"tasks", ErrorCode.GROUP_ID_NOT_FOUND),
        ("stream", None, ErrorCode.GROUP_ID_NOT_FOUND),
        ("own", b"x", ErrorCode.GROUP_ID_NOT_FOUND),
        ("own", b"", ErrorCode.NONE),
    ],
)
def test_members_that_need_the_user_data_of_their_assignments_keep_their_leader(world, name, user_data, error):
    member_id = led(world, name, assignment({("t", 0)}, user_data))
    assert world.beats("xan", 0).error == error
    told = ErrorCode.NONE if error else ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(member_id, 1, G) == told


@pytest.fixture
def conversions(monkeypatch):
    """Groups that were looked at, as often as they were."""
    seen, real = [], conversion.taken_over

    def taken_over(group, find_topic):
        seen.append(group)
        return real(group, find_topic)

    monkeypatch.setattr(conversion, "taken_over", taken_over)
    return seen


def test_who_joins_while_the_group_changes_its_protocol_waits_for_it(world, conversions):
    one(world)
    world.log.slow = True
    joins = [world.beats(name, 0) for name in ("xan", "yve", "zoe")]
    assert [join.done for join in joins] == [False] * 3
    world.log.slow = False
    world.log.commit()
    world.run(0.5)
    assert [join.result().error for join in joins] == [ErrorCode.NONE] * 3
    assert len(world.consumer().members) == 4
    assert len(conversions) == 1


def test_who_joins_while_the_change_fails_waits_until_it_is_certain(world, conversions):
    ann = one(world)
    world.log.slow = True
    world.beats("xan", 0)
    joins = world.beats("yve", 0)
    world.log.commit(ErrorCode.REQUEST_TIMED_OUT)
    assert not joins.done
    world.log.slow = False
    world.run(1.5)
    assert joins.result().error == ErrorCode.NONE
    assert set(world.consumer().members) == {ann.member_id, "yve"}
    assert len(conversions) == 2


@pytest.mark.parametrize("limit", [None, 400])
def test_a_refusal_is_remembered_as_long_as_the_group_is_as_it_was(limit, conversions):
    world = Both(consumer=ConsumerRules(**({} if limit is None else {"max_batch_bytes": limit})))
    strategy = "own" if limit is None else "range"
    member_id = led(world, strategy, assignment({("t", 0)}, b"x" if limit is None else None))
    first = world.beats("xan", 0)
    assert first.error != ErrorCode.NONE
    assert first.message
    world.heartbeat(member_id, 1, G)
    assert [world.beats(name, 0) for name in ("xan", "yve")] == [first, first]
    assert len(conversions) == 1
    world.asks(Join(member_id, "consumer", ((strategy, subscription(("u",))),), 10_000, 60_000))
    world.beats("xan", 0)
    assert len(conversions) == 2


def test_topics_of_another_instance_cannot_be_named(world):
    world.topics.put("bbbbbbbb.t", 4)
    ann = ClassicClient(("bbbbbbbb.t", "t"), SIZES)
    world.beats("xan", 0)
    world.lets_act(ann, times=3)
    assert world.consumer().subscribed() == [f"{KEY}.bbbbbbbb.t", T]


@pytest.mark.parametrize(
    ("name", "metadata", "error"),
    [
        ("roundrobin", subscription(("t",)), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("range", b"x", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("range", subscription(tuple(f"t{n}" for n in range(2_001))), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("range", subscription(("t",)), ErrorCode.NONE),
    ],
)
def test_who_joins_speaks_with_the_other_classic_members(world, name, metadata, error):
    one(world)
    world.beats("xan", 0)
    assert world.asks(Join("", "consumer", ((name, metadata),), 10_000, 60_000)).result().error == error


def test_what_classic_members_offer_is_counted_and_not_looked_for(world):
    """However many there are: a join goes through the kinds of offers."""
    world.beats("xan", 0)
    offers = {n: (("range", subscription(("t",))), (f"own-{n % 2}", b"")) for n in range(6)}
    joined = {n: world.asks(Join("", "consumer", offers[n], 10_000, 60_000)).result().member_id for n in offers}
    assert world.consumer().offers == {("range", "own-0"): 3, ("range", "own-1"): 3}
    world.take_over()
    assert world.consumer().offers == {("range", "own-0"): 3, ("range", "own-1"): 3}
    for n in (1, 2, 3, 4, 5):
        world.asks(Leave(((joined[n], None),)))
    assert world.consumer().offers == {("range", "own-0"): 1}
    alone = Join(joined[0], "consumer", (("other", subscription(("t",))),), 10_000, 60_000)
    assert world.asks(alone).result().error == ErrorCode.NONE  # what it offered itself does not bind it
    assert world.consumer().offers == {("other",): 1}
    world.beats(joined[0], 0)  # goes over
    assert world.consumer().offers == {}


def test_kafka_streams_do_not_join_a_group_of_the_consumer_protocol(world):
    world.beats("xan", 0)
    join = Join("", "consumer", (("stream", subscription(("t",))),), 10_000, 60_000)
    assert world.asks(join).result().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_request_for_a_member_of_the_consumer_protocol_is_refused(world):
    world.beats("xan", 0)
    join = Join("xan", "consumer", (("range", subscription(("t",))),), 10_000, 60_000)
    assert world.asks(join).result().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.asks(Sync(1, "xan")).result().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.asks(Leave((("xan", None),))).result().members == (("xan", None, ErrorCode.UNKNOWN_MEMBER_ID),)


def test_a_heartbeat_of_the_consumer_protocol_for_a_classic_member_is_refused(world):
    ann = one(world)
    world.beats("xan", 0)
    assert world.beats(ann.member_id, 1).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beats(ann.member_id, -1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_that_were_committed_before_stay(world):
    ann = one(world)
    world.coordinator.commit(G, Commit({(T, 1): Offset(5)}, 1, ann.member_id))
    world.run(0.1)
    world.beats("xan", 0)
    world.take_over()
    assert world.coordinator.committed(G)[T, 1].offset == 5
