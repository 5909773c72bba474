"""Members of a group at a real ZooKeeper, reading from a small broker: what they register, claim, read and commit."""

from __future__ import annotations

import json
import queue
import threading

import pytest

from dataplane.clients.connector import Blacklist, ConsumerConfig, ConsumerConnector, Whitelist
from dataplane.clients.errors import (
    ClosedError,
    ConfigurationError,
    ConsumerTimeoutError,
    FailedToSendError,
    NoBrokerError,
    RebalanceError,
)
from dataplane.clients.messages import Message
from dataplane.clients.producer import Producer, ProducerConfig, ProducerData
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.clients.small_broker import SmallBroker
from tests.support.ports import free_port
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, started, stranger

pytestmark = pytest.mark.integration  # a real ZooKeeper


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port(), tickTime=100) as running:
        yield running


class World:
    """A broker with two topics of four partitions, as ZooKeeper has them, and a group's members."""

    def __init__(self, hosts, broker):
        self.hosts, self.broker = hosts, broker
        self.zookeeper = started(stranger(hosts))
        self.members: list[ConsumerConnector] = []
        self.read: queue.Queue = queue.Queue()
        self.threads: list[threading.Thread] = []
        self.write(
            "/brokers/ids/1", {"jmx_port": -1, "host": broker.address[0], "port": broker.address[1], "version": 1}
        )
        for topic in broker.topics:
            self.announce(topic)

    def write(self, path, document):
        data = json.dumps(document).encode()
        if self.zookeeper.exists(path):
            self.zookeeper.set(path, data)
        else:
            self.zookeeper.create(path, data, makepath=True)

    def announce(self, topic, partitions=4):
        for partition in range(partitions):
            self.broker.logs.setdefault((topic, partition), [])
        self.broker.topics[topic] = partitions
        self.write(f"/brokers/topics/{topic}", {"version": 1, "partitions": {str(p): [1] for p in range(partitions)}})

    def send(self, count, topic="t", partitions=4, name="m"):
        """So many messages to each partition."""
        for number in range(count):
            for partition in range(partitions):
                self.broker.logs[topic, partition].append(Message(f"{name}{partition}.{number}".encode()))

    def member(self, **settings):
        defaults = {
            "group_id": "g",
            "zk_connect": self.hosts,
            "autooffset_reset": "smallest",
            "rebalance_backoff_ms": 50,
            "refresh_leader_backoff_ms": 10,
            "fetch_wait_max_ms": 10,
            "zk_session_timeout_ms": 4_000,
        }
        self.members.append(ConsumerConnector(ConsumerConfig(**{**defaults, **settings})))
        return self.members[-1]

    def reader(self, stream, who="a"):
        """A thread that puts all that comes into `read`."""

        def run():
            for message in stream:
                self.read.put((who, message))

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def take(self, count):
        return [self.read.get(timeout=20) for _ in range(count)]

    def nothing_more(self):
        with pytest.raises(queue.Empty):
            self.read.get(timeout=0.1)

    def owners(self, topic="t"):
        at = f"/consumers/g/owners/{topic}"
        return {int(p): self.zookeeper.get(f"{at}/{p}")[0].decode() for p in self.zookeeper.get_children(at)}

    def offsets(self, topic="t"):
        at = f"/consumers/g/offsets/{topic}"
        return {int(p): self.zookeeper.get(f"{at}/{p}")[0] for p in self.zookeeper.get_children(at)}

    def expire(self, member):
        """As when ZooKeeper has not heard of it for too long."""
        client = member._zookeeper._client
        number, password = client._session_id, client._session_passwd
        other = stranger(self.hosts, client_id=(number, password))
        started(other)
        other.stop()
        other.close()

    def close(self):
        for member in self.members:
            member.shutdown()
        for thread in self.threads:
            thread.join(20)
        self.zookeeper.stop()
        self.zookeeper.close()


@pytest.fixture
def world(server, request):
    with SmallBroker({"t": 4, "u": 4}) as broker:
        made = World(server.chroot(request.node.name), broker)
        yield made
        made.close()


def values(taken):
    return sorted(message.message for _, message in taken)


def expected(numbers, partitions=range(4), name="m"):
    return sorted(f"{name}{p}.{n}".encode() for p in partitions for n in numbers)


def test_a_member_registers_owns_reads_and_commits(world):
    world.send(5)
    member = world.member(consumer_id="host:1")
    (stream,) = member.create_message_streams({"t": 1})["t"]
    world.reader(stream)
    taken = world.take(20)
    assert values(taken) == expected(range(5))
    assert {(m.topic, m.partition, m.offset) for _, m in taken} == {("t", p, n) for p in range(4) for n in range(5)}
    data, about = world.zookeeper.get("/consumers/g/ids/host:1")
    assert {**json.loads(data), "timestamp": ""} == {
        "version": 1,
        "subscription": {"t": 1},
        "pattern": "static",
        "timestamp": "",
    }
    assert about.ephemeralOwner
    assert world.owners() == dict.fromkeys(range(4), "host:1-0")
    member.commit_offsets()
    assert world.offsets() == dict.fromkeys(range(4), b"5")
    member.shutdown()
    assert world.owners() == {}
    assert world.zookeeper.get_children("/consumers/g/ids") == []


def test_the_next_one_goes_on_where_the_last_one_was(world):
    world.send(3)
    first = world.member()
    stream = first.create_message_streams({"t": 1})["t"][0]
    taken = [next(stream).message for _ in range(7)]
    first.shutdown()
    world.reader(world.member().create_message_streams({"t": 1})["t"][0])
    assert sorted(taken + [m.message for _, m in world.take(5)]) == expected(range(3))
    world.nothing_more()


def test_a_second_member_takes_its_share_and_gives_it_back_and_every_message_is_read_once(world):
    world.send(20)
    first = world.member(consumer_id="a")
    world.reader(first.create_message_streams({"t": 1})["t"][0], "a")
    taken = world.take(30)  # it is in the midst of them
    second = world.member(consumer_id="b")
    world.reader(second.create_message_streams({"t": 1})["t"][0], "b")
    assert world.owners() == {0: "a-0", 1: "a-0", 2: "b-0", 3: "b-0"}
    taken += world.take(50)
    world.send(5, name="n")
    more = world.take(20)
    assert {(who, m.partition) for who, m in more} == {("a", 0), ("a", 1), ("b", 2), ("b", 3)}
    second.shutdown()
    wait_for(lambda: world.owners() == dict.fromkeys(range(4), "a-0"), 20, "the first one to have all")
    world.send(5, name="o")
    assert values(taken) == expected(range(20))
    assert values(more) == expected(range(5), name="n")
    assert values(world.take(20)) == expected(range(5), name="o")
    world.nothing_more()


def test_streams_of_one_member_share_as_members_do(world):
    streams = world.member(consumer_id="a").create_message_streams({"t": 2, "u": 1})
    assert [len(some) for some in streams.values()] == [2, 1]
    assert world.owners() == {0: "a-0", 1: "a-0", 2: "a-1", 3: "a-1"}
    assert world.owners("u") == dict.fromkeys(range(4), "a-0")
    world.send(1)
    world.send(1, "u", name="u")
    for name, stream in (("first", streams["t"][0]), ("second", streams["t"][1]), ("other", streams["u"][0])):
        world.reader(stream, name)
    found = {(who, m.topic, m.partition) for who, m in world.take(8)}
    assert found == {("first", "t", 0), ("first", "t", 1), ("second", "t", 2), ("second", "t", 3)} | {
        ("other", "u", p) for p in range(4)
    }


def test_a_partition_is_waited_for_as_long_as_somebody_else_has_it(world):
    path = "/consumers/g/owners/t/2"
    world.zookeeper.create(path, b"other-0", makepath=True)
    with pytest.raises(RebalanceError):
        world.member(rebalance_max_retries=1).create_message_streams({"t": 1})
    assert world.owners() == {2: "other-0"}
    assert world.zookeeper.get_children("/consumers/g/ids") == []
    threading.Timer(0.1, lambda: world.zookeeper.delete(path)).start()
    member = world.member(consumer_id="a", rebalance_backoff_ms=20_000)  # it is woken: it does not wait so long
    member.create_message_streams({"t": 1})
    assert set(world.owners().values()) == {"a-0"}


def test_a_filter_reads_topics_and_partitions_that_come_later(world):
    member = world.member(consumer_id="a")
    (stream,) = member.create_message_streams_by_filter(Whitelist("t.*"))
    world.reader(stream)
    world.announce("t2", 1)
    world.announce("v", 1)
    wait_for(lambda: world.zookeeper.exists("/consumers/g/owners/t2/0"), 20, "the new topic to be claimed")
    world.announce("t2", 3)
    wait_for(lambda: set(world.owners("t2")) == {0, 1, 2}, 20, "the new partitions to be claimed")
    world.send(1, "t2", 3)
    world.send(1, "v", 1)
    world.send(1, "t", 4)
    assert {(m.topic, m.partition) for _, m in world.take(7)} == {("t", p) for p in range(4)} | {
        ("t2", p) for p in range(3)
    }
    world.nothing_more()


def test_a_blacklist_reads_all_others(world):
    world.member(consumer_id="a").create_message_streams_by_filter(Blacklist("u"), 2)
    assert world.owners() == {0: "a-0", 1: "a-0", 2: "a-1", 3: "a-1"}
    assert not world.zookeeper.exists("/consumers/g/owners/u")


def test_a_session_that_expires_is_followed_by_another(world):
    member = world.member(consumer_id="a")
    world.reader(member.create_message_streams({"t": 1})["t"][0])
    world.send(2)
    before = world.take(8)
    member.commit_offsets()
    session = world.zookeeper.get("/consumers/g/ids/a")[1].ephemeralOwner
    world.expire(member)
    wait_for(
        lambda: world.zookeeper.get("/consumers/g/ids/a")[1].ephemeralOwner != session and len(world.owners()) == 4,
        30,
        "it to be a member again",
    )
    world.send(2, name="n")
    assert values(before) == expected(range(2))
    assert values(world.take(8)) == expected(range(2), name="n")
    world.nothing_more()


def test_the_clock_commits_what_the_program_has_come_back_from(world):
    """The message that it is in the midst of does not count, for it may be killed there."""
    world.send(3, partitions=1)
    member = world.member(autocommit_interval_ms=20)
    (stream,) = member.create_message_streams({"t": 1})["t"]
    assert [next(stream).offset for _ in range(2)] == [0, 1]
    wait_for(lambda: world.offsets()[0] == b"1", 20, "a commit by the clock")
    member.commit_offsets()
    assert world.offsets()[0] == b"2"


def test_without_autocommit_nothing_is_committed_but_by_hand(world):
    world.send(1)
    member = world.member(autocommit_enable=False, autocommit_interval_ms=1)
    (stream,) = member.create_message_streams({"t": 1})["t"]
    for _ in range(4):
        next(stream)
    member.shutdown()
    assert not world.zookeeper.exists("/consumers/g/offsets/t")


def test_largest_is_the_end_and_is_remembered_though_nothing_came(world):
    world.send(3)
    member = world.member(autooffset_reset="largest")
    member.create_message_streams({"t": 1})
    wait_for(lambda: all(one.consumed is not None for one in member._held.values()), 20, "all to have begun")
    member.shutdown()
    assert world.offsets() == dict.fromkeys(range(4), b"3")
    world.send(1, name="n")
    world.reader(world.member(autooffset_reset="largest").create_message_streams({"t": 1})["t"][0])
    assert values(world.take(4)) == expected(range(1), name="n")


def test_a_stream_says_that_nothing_came_and_can_be_asked_again(world):
    (stream,) = world.member(consumer_timeout_ms=50).create_message_streams({"t": 1})["t"]
    with pytest.raises(ConsumerTimeoutError):
        next(stream)
    world.send(1, partitions=1)
    found = None
    while found is None:
        try:
            found = next(stream)
        except ConsumerTimeoutError:
            continue
    assert found.message == b"m0.0"


def test_a_stream_that_nobody_reads_holds_up_no_other(world):
    world.send(5)
    first, second = world.member(fetch_size=10).create_message_streams({"t": 2})["t"]
    world.reader(second)
    assert values(world.take(10)) == expected(range(5), (2, 3))
    world.reader(first)
    assert values(world.take(10)) == expected(range(5), (0, 1))


def test_reading_goes_on_after_errors_of_the_broker_and_lost_connections(world):
    world.broker.refusals[ApiKey.FETCH] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]
    world.broker.hang_ups += [ApiKey.FETCH, ApiKey.LIST_OFFSETS]
    world.send(2)
    world.reader(world.member().create_message_streams({"t": 1})["t"][0])
    assert values(world.take(8)) == expected(range(2))
    world.broker.hang_ups.append(ApiKey.FETCH)
    world.send(2, name="n")
    assert values(world.take(8)) == expected(range(2), name="n")


def test_an_offset_that_is_not_there_any_more_is_followed_by_the_first_that_is(world):
    world.send(5)
    world.broker.first_offset = 3
    for partition in range(4):
        world.zookeeper.create(f"/consumers/g/offsets/t/{partition}", b"1", makepath=True)
    world.reader(world.member().create_message_streams({"t": 1})["t"][0])
    assert values(world.take(8)) == expected((3, 4))


def test_decoders_see_bytes_and_streams_give_what_they_made(world):
    world.broker.logs["t", 0].append(Message(b"7", b"k"))
    streams = world.member().create_message_streams({"t": 1}, key_decoder=bytes.decode, decoder=int)
    message = next(streams["t"][0])
    assert (message.key, message.message) == ("k", 7)


def test_streams_are_made_once_and_end_at_shutdown(world):
    member = world.member()
    for wrong in ({}, {"t": 0}):
        with pytest.raises(ConfigurationError):
            member.create_message_streams(wrong)
    (stream,) = member.create_message_streams({"t": 1})["t"]
    with pytest.raises(ConfigurationError):
        member.create_message_streams({"t": 1})
    member.shutdown()
    member.shutdown()
    assert list(stream) == []
    with pytest.raises(ClosedError):
        member.create_message_streams({"t": 1})


def test_a_producer_finds_brokers_and_topics_by_zookeeper(world):
    with Producer(ProducerConfig(zk_connect=world.hosts, message_send_max_retries=0)) as producer:
        assert producer.send(ProducerData("t", b"v", partition=3))[0].offset == 0
    world.zookeeper.delete("/brokers/ids/1")
    config = ProducerConfig(zk_connect=world.hosts, message_send_max_retries=0)
    with Producer(config) as producer, pytest.raises(FailedToSendError, match="ZooKeeper knows no broker"):
        producer.send(ProducerData("t", b"v"))


def test_no_zookeeper_is_said_within_the_time():
    config = ConsumerConfig(group_id="g", zk_connect=f"127.0.0.1:{free_port()}", zk_connection_timeout_ms=200)
    with pytest.raises(NoBrokerError):
        ConsumerConnector(config)
