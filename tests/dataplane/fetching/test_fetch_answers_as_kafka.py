"""What a fetch is told, case by case, as Apache Kafka 3.9 tells it."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.config import Settings
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import FetchPartition
from dataplane.storage.log import removing
from tests.dataplane.fetching.support import NAME, Door, Instance, request, rows, single
from tests.dataplane.replication.cluster import SETTINGS, TOPIC, TOPIC_ID, ReplicatedCluster

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
FOREIGN = UUID(int=99)


def sized(batches, *, partitions=1, value="x" * 1000):
    """One broker with `batches` batches of about a kilobyte in each partition."""
    cluster = single(partitions)
    for index in range(partitions):
        for _ in range(batches):
            cluster.produce(1, value, index=index)
            cluster.run(0.01)
    return cluster


def wanted(index=0, offset=0, max_bytes=2**20, **members):
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **members)


def sizes(response):
    return {index: len(data.records) for index, data in rows(response).items()}


# --- limits -----------------------------------------------------------------------------------------------------------


def test_the_first_batch_comes_whole_however_small_the_limits():
    door = Door(sized(3, partitions=2))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    assert batch > 1000
    assert sizes(door.fetch({0: wanted(0, 0, 1), 1: wanted(1, 0, 1)})) == {0: batch, 1: 0}
    assert sizes(door.fetch({0: 0, 1: 0}, max_bytes=0)) == {0: batch, 1: 0}


def test_the_first_partition_that_has_something_counts_as_the_first():
    door = Door(sized(3, partitions=2))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    assert sizes(door.fetch({0: wanted(0, 3, 1), 1: wanted(1, 0, 1)})) == {0: 0, 1: batch}


def test_each_partition_has_its_limit_and_all_of_them_theirs():
    door = Door(sized(4, partitions=3))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    two = 2 * batch + 10
    assert sizes(door.fetch({i: wanted(i, 0, two) for i in range(3)})) == dict.fromkeys(range(3), 2 * batch)
    assert sizes(door.fetch({i: wanted(i, 0, two) for i in range(3)}, max_bytes=3 * batch + 10)) == {
        0: 2 * batch,
        1: batch,
        2: 0,
    }


def test_a_limited_instance_gets_what_it_may_read():
    door = Door(sized(4))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    door.broker.gate.allowed = 2 * batch
    assert sizes(door.fetch({0: 0})) == {0: 2 * batch}


def test_min_bytes_above_max_bytes_is_max_bytes():
    door = Door(sized(4))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    sent = door.send(request({0: 0}, max_bytes=batch, min_bytes=10**6), 12)
    assert sent.done


def test_a_fetch_from_the_middle_of_a_batch_gets_all_of_the_batch():
    cluster = single()
    cluster.produce(1, "a", "b", "c")
    cluster.run(0.01)
    data = rows(Door(cluster).fetch({0: 1}))[0]
    assert bytes(data.records[:8]) == bytes(8)  # its base offset is 0


def test_read_committed_is_told_of_no_aborted_transactions_and_others_of_none_at_all():
    door = Door(sized(1))
    committed, uncommitted = (rows(door.fetch({0: 0}, isolation_level=level))[0] for level in (1, 0))
    assert (committed.aborted_transactions, uncommitted.aborted_transactions) == ((), None)
    assert committed.last_stable_offset == committed.high_watermark == 1


def test_a_partition_that_is_named_twice_is_answered_once_as_said_last():
    door = Door(sized(3))
    twice = request({0: 1})
    topic = twice.topics[0]
    from dataclasses import replace

    twice = replace(twice, topics=(replace(topic, partitions=(wanted(0, 0), wanted(0, 2))),))
    answer = door.send(twice, 12).result()
    assert [data.records[7] for data in answer.responses[0].partitions] == [2]


# --- waiting ----------------------------------------------------------------------------------------------------------


def test_a_waiting_session_is_woken_by_any_of_its_partitions_and_says_nothing_of_the_others():
    cluster = single(50)
    door = Door(cluster)
    session = door.fetch(dict.fromkeys(range(50), 0), session_epoch=0).session_id
    sent = door.send(request(session_id=session, session_epoch=1, max_wait_ms=5_000), 12)
    cluster.run(0.1)
    assert not sent.done
    cluster.produce(1, "x", index=33)
    cluster.run(0.1)
    assert list(rows(sent.result())) == [33]


def test_min_bytes_count_over_all_partitions_of_a_session():
    cluster = single(3)
    door = Door(cluster)
    session = door.fetch(dict.fromkeys(range(3), 0), session_epoch=0).session_id
    sent = door.send(request(session_id=session, session_epoch=1, min_bytes=2_500, max_wait_ms=5_000), 12)
    for index in range(3):
        assert not sent.done
        cluster.produce(1, "x" * 1000, index=index)
        cluster.run(0.1)
    assert list(rows(sent.result())) == [0, 1, 2]


def test_a_client_that_goes_leaves_nothing_behind_on_the_loop():
    cluster = single()
    door = Door(cluster)
    session = door.fetch({0: 0}, session_epoch=0).session_id
    sent = door.send(request(session_id=session, session_epoch=1, max_wait_ms=5_000), 12)
    door.give_up()
    cluster.produce(1, "x")
    cluster.run(6)
    assert not sent.done
    assert list(rows(door.fetch(session_id=session, session_epoch=2))) == [0]


def test_a_second_request_of_a_session_ends_the_first_that_waits():
    door = Door(single())
    session = door.fetch({0: 0}, session_epoch=0).session_id
    first = door.send(request(session_id=session, session_epoch=1, max_wait_ms=5_000), 12)
    second = door.fetch(session_id=session, session_epoch=2)
    assert first.result().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert (second.error_code, second.session_id) == (0, session)


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_partitions_take_turns_where_an_answer_has_room_for_one():
    door = Door(sized(4, partitions=3))
    batch = sizes(door.fetch({0: wanted(0, 0, 1)}))[0]
    session = door.fetch({i: wanted(i, 0, batch) for i in range(3)}, session_epoch=0, max_bytes=batch).session_id
    served = []
    for epoch in range(1, 7):
        got = sizes(door.fetch(session_id=session, session_epoch=epoch, max_bytes=batch))
        served += [index for index, size in got.items() if size]
    assert served == [1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("epoch", [1, 5])
def test_a_session_that_was_never_given_is_not_found(epoch):
    answer = Door(single()).fetch(session_id=12, session_epoch=epoch)
    assert (answer.error_code, answer.session_id, answer.responses) == (70, 0, ())


def test_a_session_is_found_neither_by_another_principal_nor_by_another_instance():
    door = Door(single())
    session = door.fetch({0: 0}, session_epoch=0).session_id
    assert door.as_other("User:two").fetch(session_id=session, session_epoch=1).error_code == 70
    assert door.as_other("User:one", Instance("ccccdddd")).fetch(session_id=session, session_epoch=1).error_code == 70
    assert door.fetch(session_id=session, session_epoch=1).error_code == 0


def test_a_session_keeps_to_names_or_to_ids():
    door = Door(single())
    by_name = door.fetch({0: 0}, 12, session_epoch=0).session_id
    by_id = door.fetch({0: 0}, 13, session_epoch=0).session_id
    assert door.fetch(version=13, session_id=by_name, session_epoch=1).error_code == 106
    assert door.fetch(version=12, session_id=by_id, session_epoch=1).error_code == 106
    assert door.fetch(version=7, session_id=by_name, session_epoch=1).error_code == 0
    assert door.fetch(version=17, session_id=by_id, session_epoch=1).error_code == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_that_it_names(epoch):
    door = Door(single())
    session = door.fetch({0: 0}, session_epoch=0).session_id
    again = door.fetch({0: 0}, session_id=session, session_epoch=epoch)
    assert (again.session_id > 0) == (epoch == 0)
    assert door.fetch(session_id=session, session_epoch=1).error_code == 70


def test_a_tenant_that_fills_its_places_takes_none_of_another_tenant():
    settings = Settings(max_incremental_fetch_session_cache_slots=3)
    door = Door(single(), settings=settings)
    other = door.as_other("User:two", Instance("ccccdddd"))
    own = door.fetch({0: 0}, session_epoch=0).session_id
    ids = [other.fetch({0: 0}, 13, session_epoch=0).session_id for _ in range(10)]
    assert [bool(session) for session in ids] == [True] * 3 + [False] * 7
    assert door.fetch(session_id=own, session_epoch=1).error_code == 0


# --- who may read what ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [13, 17])
def test_the_id_of_anothers_topic_is_as_unknown_as_one_that_was_never_given(version):
    door = Door(single())
    stranger = door.as_other("User:one", Instance("ccccdddd"))
    theirs, never = (rows(stranger.fetch({0: 0}, version, topic_id=i))[0] for i in (TOPIC_ID, FOREIGN))
    assert theirs == never
    assert theirs.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert rows(door.fetch({0: 0}, version))[0].error_code == 0


def test_an_id_that_belongs_to_a_later_topic_of_the_name_is_inconsistent():
    door = Door(single())
    door.metadata.ids[FOREIGN] = TOPIC
    assert rows(door.fetch({0: 0}, 13, topic_id=FOREIGN))[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_topics_whitelist_holds_in_a_session_too():
    cluster = single()
    door = Door(cluster)
    session = door.fetch({0: 0}, session_epoch=0).session_id
    door.instance.deny(NAME)
    cluster.produce(1, "x")
    cluster.run(0.1)
    data = rows(door.fetch(session_id=session, session_epoch=1))[0]
    assert (data.error_code, len(data.records)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    door.instance.deny()
    assert len(rows(door.fetch(session_id=session, session_epoch=2))[0].records) > 0


# --- epochs -----------------------------------------------------------------------------------------------------------


def test_beliefs_in_another_leader_epoch_are_refused():
    cluster = single()
    cluster.elect(1, (1,))
    door = Door(cluster)
    codes = [rows(door.fetch({0: wanted(current_leader_epoch=epoch)}))[0].error_code for epoch in (-1, 0, 1, 2)]
    assert codes == [0, ErrorCode.FENCED_LEADER_EPOCH, 0, ErrorCode.UNKNOWN_LEADER_EPOCH]


def test_a_session_that_waits_hears_of_a_new_epoch():
    cluster = single()
    door = Door(cluster)
    session = door.fetch({0: wanted(current_leader_epoch=0)}, session_epoch=0).session_id
    sent = door.send(request(session_id=session, session_epoch=1, max_wait_ms=5_000), 12)
    cluster.elect(1, (1,))
    cluster.run(0.1)
    assert rows(sent.result())[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_consumer_whose_log_was_another_is_told_where_they_part():
    cluster = sized(2)
    cluster.elect(1, (1,))
    cluster.produce(1, "x")
    cluster.run(0.1)
    door = Door(cluster)
    parted = rows(door.fetch({0: wanted(offset=3, last_fetched_epoch=0)}))[0]
    assert (parted.error_code, parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (0, 0, 2)
    assert len(parted.records) == 0
    same = rows(door.fetch({0: wanted(offset=2, last_fetched_epoch=0)}))[0]
    assert (same.diverging_epoch.epoch, len(same.records) > 0) == (-1, True)


def test_outside_of_the_log_is_out_of_range():
    cluster = sized(3)
    partition = cluster[1].partition()
    removing.set_start_offset(partition.log, 2)
    door = Door(cluster)
    for offset in (1, 4):
        data = rows(door.fetch({0: offset}))[0]
        assert (data.error_code, data.high_watermark, data.log_start_offset) == (1, -1, -1)


# --- leaders and followers --------------------------------------------------------------------------------------------


@pytest.fixture
def pair():
    """Broker 1 leads, 2 follows, in racks a and b; 3 knows of nothing."""
    cluster = ReplicatedCluster(size=3, settings=SETTINGS)
    cluster.create((1, 2))
    cluster.run(0.5)
    return cluster


def racked(pair, broker_id, selector=RACK_AWARE, **members):
    settings = Settings(replica_selector_class=selector)
    return Door(pair, broker_id, settings=settings, racks={1: "a", 2: "b", 3: "c"}, **members)


def test_who_is_not_the_leader_says_who_is(pair):
    instance = Instance()
    door = racked(pair, 2, instance=instance)
    answer = door.fetch({0: wanted(current_leader_epoch=0)}, 10)
    assert rows(answer)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    pair.elect(1, (1, 2))
    pair.run(0.1)
    for version, known in ((15, False), (16, True)):
        answer = door.fetch({0: wanted(current_leader_epoch=0)}, version)
        data = rows(answer)[0]
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
        assert leader == ((1, 1) if known else (-1, -1))
        nodes = [(n.node_id, n.host, n.port, n.rack) for n in answer.node_endpoints]
        assert nodes == ([(1, "default.example", 9001, "a")] if known else [])
    instance.unreachable.add(1)
    assert door.fetch({0: wanted(current_leader_epoch=0)}, 16).node_endpoints == ()


def test_a_consumer_is_sent_to_the_replica_in_its_rack(pair):
    pair.produce(1, "x")
    pair.run(1)
    door = racked(pair, 1)
    for rack, version, replica in (("b", 11, 2), ("b", 17, 2), ("a", 11, -1), ("c", 11, -1), ("", 11, -1)):
        data = rows(door.fetch({0: 0}, version, rack_id=rack))[0]
        assert (data.preferred_read_replica, len(data.records) > 0) == (replica, replica == -1), rack
    assert rows(racked(pair, 1, selector="").fetch({0: 0}, rack_id="b"))[0].preferred_read_replica == -1


def test_a_replica_that_is_not_in_sync_or_cannot_be_reached_is_nobodys_choice(pair):
    instance = Instance()
    door = racked(pair, 1, instance=instance)
    instance.unreachable.add(2)
    assert rows(door.fetch({0: 0}, rack_id="b"))[0].preferred_read_replica == -1
    instance.unreachable.clear()
    assert rows(door.fetch({0: 0}, rack_id="b"))[0].preferred_read_replica == 2
    pair.network.cut("b1", "b2")
    pair.produce(1, "x", acks=1)
    pair.run(5)
    assert pair[1].partition().state.isr == (1,)
    assert rows(door.fetch({0: 0}, rack_id="b"))[0].preferred_read_replica == -1


def test_a_follower_serves_what_it_knows_to_be_committed_and_wakes_who_waits(pair):
    door = racked(pair, 2)
    assert rows(door.fetch({0: 0}, 10))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    sent = door.send(request({0: 0}, 11, max_wait_ms=5_000), 11)
    assert not sent.done
    pair.produce(1, "x")
    pair.run(1)
    data = rows(sent.result())[0]
    assert (data.high_watermark, len(data.records) > 0) == (1, True)


def test_between_its_high_watermark_and_its_end_a_follower_says_nothing_and_behind_it_out_of_range(pair):
    pair.produce(1, "x")
    pair.run(1)
    partition = pair[2].partition()
    partition.state.high_watermark = 0
    door = racked(pair, 2)
    data = rows(door.fetch({0: 1}))[0]
    assert (data.error_code, data.high_watermark, len(data.records)) == (0, 0, 0)
    assert rows(door.fetch({0: 2}))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
