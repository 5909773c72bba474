"""The producer: what is acknowledged, what is tried again, what order stays, and what the queue does when it is full."""

from __future__ import annotations

import threading

import pytest

from dataplane.clients.errors import BrokerError, ClosedError, FailedToSendError, NoBrokerError, QueueFullError
from dataplane.clients.producer import CallbackHandler, Producer, ProducerConfig, ProducerData, Sent
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.clients.small_broker import SmallBroker

LONG = 600_000  # ms: never, within a test


@pytest.fixture
def broker():
    with SmallBroker({"t": 3}) as made:
        yield made


@pytest.fixture
def producer(broker):
    """Makes producers that are closed at the end."""
    made = []

    def make(**settings):
        settings = {"broker_list": "{}:{}".format(*broker.address), "retry_backoff_ms": 1, **settings}
        made.append(Producer(ProducerConfig(**settings)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def values(broker, partition, topic="t"):
    return [message.value for message in broker.logs[topic, partition]]


# --- where messages go ------------------------------------------------------------------------------------------------


def test_a_key_an_explicit_partition_and_turns(broker, producer):
    sends = producer(partitioner_class="murmur2").send
    assert sends([ProducerData("t", b"a", key=b"21"), ProducerData("t", b"b", partition=2)])[1] == Sent("t", 2, 0)
    assert [one.partition for one in sends([ProducerData("t", b"c") for _ in range(4)])] == [0, 1, 2, 0]
    assert sum(len(log) for log in broker.logs.values()) == 6


def test_without_a_key_only_partitions_with_a_leader_take_turns(broker, producer):
    broker.without_leader = {("t", 1)}
    sent = producer().send([ProducerData("t", b"c") for _ in range(4)])
    assert [one.partition for one in sent] == [0, 2, 0, 2]


def test_a_partitioner_of_ones_own(broker, producer):
    class Last:
        def partition(self, key, num_partitions):
            return num_partitions - 1

    assert producer(partitioner_class=Last).send(ProducerData("t", b"v", key="k"))[0].partition == 2


def test_an_encoder_of_ones_own_sees_what_was_sent(broker, producer):
    class Doubled:
        def to_message(self, data):
            return None if data is None else (2 * data).encode()

    producer(serializer_class=Doubled).send(ProducerData("t", "ab", key="k", partition=0))
    assert [(one.key, one.value) for one in broker.logs["t", 0]] == [(b"kk", b"abab")]


def test_a_partition_that_is_not_there_fails_alone(broker, producer):
    with pytest.raises(FailedToSendError) as failed:
        producer(message_send_max_retries=0).send(
            [ProducerData("t", b"a", partition=9), ProducerData("t", b"b", partition=0)]
        )
    assert [data.partition for data, _ in failed.value.failures] == [9]
    assert values(broker, 0) == [b"b"]


# --- what is tried again ----------------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again_after_a_look_at_who_leads(broker, producer):
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
    sends = producer().send
    assert sends(ProducerData("t", b"v", partition=1)) == (Sent("t", 1, 0),)
    assert broker.count(ApiKey.PRODUCE) == 3
    assert broker.count(ApiKey.METADATA) == 3


def test_a_lost_answer_is_tried_again_on_a_new_connection(broker, producer):
    broker.hang_ups.append(ApiKey.PRODUCE)
    assert producer().send(ProducerData("t", b"v", partition=1)) == (Sent("t", 1, 0),)


def test_tries_end_and_say_what_is_not_acknowledged(broker, producer):
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    with pytest.raises(FailedToSendError) as failed:
        producer(message_send_max_retries=2).send([ProducerData("t", b"v", partition=1)])
    ((data, error),) = failed.value.failures
    assert data.data == b"v"
    assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.count(ApiKey.PRODUCE) == 3


def test_what_will_not_pass_is_not_tried_again(broker, producer):
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(FailedToSendError):
        producer().send(ProducerData("t", b"v", partition=1))
    assert broker.count(ApiKey.PRODUCE) == 1


def test_nothing_overtakes_what_failed(broker, producer):
    """Three batches of one partition; the first fails once."""
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    events = [ProducerData("t", b"%d" % number, partition=0) for number in range(9)]
    producer(max_message_size=300).send(events)
    assert values(broker, 0) == [b"%d" % number for number in range(9)]
    assert broker.count(ApiKey.PRODUCE) == 4


def test_nothing_overtakes_while_a_topic_comes_into_being(broker, producer):
    broker.hidden["t"] = 2
    producer().send([ProducerData("t", b"%d" % number, partition=0) for number in range(9)])
    assert values(broker, 0) == [b"%d" % number for number in range(9)]
    assert broker.count(ApiKey.METADATA) < 9


def test_a_batch_that_is_too_large_is_halved_and_one_message_that_is_alone_refused(broker, producer):
    broker.largest_batch = 250
    events = [ProducerData("t", b"%d" % number * 50, partition=0) for number in range(8)]
    events.insert(4, ProducerData("t", b"x" * 500, partition=0))
    with pytest.raises(FailedToSendError) as failed:
        producer().send(events)
    assert [data.data[:1] for data, _ in failed.value.failures] == [b"x"]
    assert values(broker, 0) == [b"%d" % number * 50 for number in range(8)]


def test_with_acks_0_nobody_is_asked(broker, producer):
    client = producer(request_required_acks=0)
    assert client.send(ProducerData("t", b"v", partition=1)) == (Sent("t", 1, -1),)
    client.close()
    broker.__exit__()
    assert values(broker, 1) == [b"v"]


def test_a_topic_that_nobody_knows(broker, producer):
    with pytest.raises(FailedToSendError) as failed:
        producer(message_send_max_retries=1).send(ProducerData("nothing", b"v"))
    assert failed.value.failures[0][1].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_broker_at_all():
    with SmallBroker({}) as gone:
        pass
    config = ProducerConfig(broker_list="{}:{}".format(*gone.address), message_send_max_retries=1, retry_backoff_ms=1)
    with Producer(config) as producer, pytest.raises(FailedToSendError) as failed:
        producer.send(ProducerData("t", b"v"))
    assert isinstance(failed.value.failures[0][1], NoBrokerError)


# --- the queue --------------------------------------------------------------------------------------------------------


class Seen(CallbackHandler):
    """Remembers its calls, and can hold up the sending thread."""

    def __init__(self):
        self.calls: list[tuple[str, object]] = []
        self.batches: list[list[bytes]] = []
        self.errors: list[object] = []
        self.may_send = threading.Event()
        self.may_send.set()
        self.waits = threading.Event()
        self.batch_came = threading.Event()

    def after_enqueue(self, data, added):
        self.calls.append(("queued" if added else "refused", data.data))

    def before_sending_data(self, events):
        self.waits.set()
        assert self.may_send.wait(20)
        return events

    def after_sending_data(self, events, error):
        self.batches.append([event.data for event in events])
        self.errors.append(error)
        self.batch_came.set()

    def last_batch_before_close(self):
        return (ProducerData("t", b"last", partition=0),)

    def close(self):
        self.calls.append(("closed", None))


def test_a_batch_leaves_when_it_is_full(broker, producer):
    seen = Seen()
    client = producer(producer_type="async", batch_size=3, queue_time=LONG, callback_handler=seen)
    assert client.send([ProducerData("t", b"%d" % n, partition=0) for n in range(3)]) == ()
    assert seen.batch_came.wait(20)
    assert seen.batches == [[b"0", b"1", b"2"]]


def test_a_batch_leaves_when_its_time_is_over(broker, producer):
    seen = Seen()
    client = producer(producer_type="async", batch_size=1000, queue_time=1, callback_handler=seen)
    client.send(ProducerData("t", b"v", partition=0))
    assert seen.batch_came.wait(20)


def test_close_sends_what_is_queued_then_the_callbacks_last_batch(broker, producer):
    seen = Seen()
    client = producer(producer_type="async", batch_size=4, queue_time=LONG, callback_handler=seen)
    client.send([ProducerData("t", b"%d" % n, partition=0) for n in range(10)])
    client.close()
    assert values(broker, 0) == [b"%d" % n for n in range(10)] + [b"last"]
    assert [len(batch) for batch in seen.batches] == [4, 4, 2, 1]
    assert seen.calls[-1] == ("closed", None)
    with pytest.raises(ClosedError):
        client.send(ProducerData("t", b"v"))


def test_a_full_queue_refuses_at_once_where_nobody_wants_to_wait(broker, producer):
    seen = Seen()
    seen.may_send.clear()
    client = producer(
        producer_type="async",
        batch_size=1,
        queue_size=2,
        queue_enqueue_timeout_ms=0,
        queue_time=LONG,
        callback_handler=seen,
    )
    client.send(ProducerData("t", b"in hand", partition=0))
    assert seen.waits.wait(20)  # the thread has it, and waits
    client.send([ProducerData("t", b"%d" % n, partition=0) for n in range(2)])
    with pytest.raises(QueueFullError):
        client.send([ProducerData("t", b"too many", partition=0)])
    assert ("refused", b"too many") in seen.calls
    seen.may_send.set()
    client.close()
    assert values(broker, 0) == [b"in hand", b"0", b"1", b"last"]


def test_a_full_queue_makes_the_caller_wait_for_room(broker, producer):
    seen = Seen()
    seen.may_send.clear()
    client = producer(producer_type="async", batch_size=1, queue_size=1, queue_time=LONG, callback_handler=seen)
    caller = threading.Thread(target=lambda: client.send([ProducerData("t", b"%d" % n, partition=0) for n in range(5)]))
    caller.start()
    assert seen.waits.wait(20)
    caller.join(0.05)
    assert caller.is_alive()
    seen.may_send.set()
    caller.join(20)
    client.close()
    assert values(broker, 0) == [b"0", b"1", b"2", b"3", b"4", b"last"]


def test_what_is_given_up_is_told_to_the_callback_and_the_next_batch_goes_on(broker, producer):
    seen = Seen()
    broker.refusals[ApiKey.PRODUCE] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    client = producer(producer_type="async", batch_size=1, queue_time=LONG, callback_handler=seen)
    client.send([ProducerData("t", b"%d" % n, partition=0) for n in range(2)])
    client.close()
    assert values(broker, 0) == [b"1", b"last"]
    assert isinstance(seen.errors[0], FailedToSendError)
    assert isinstance(seen.errors[0].failures[0][1], BrokerError)
    assert seen.errors[1:] == [None, None]


def test_an_event_handler_stands_before_what_is_sent(broker, producer):
    class OnlyEven:
        def handle(self, events, sender):
            return sender.send([event for event in events if int(event.data) % 2 == 0])

    producer(event_handler=OnlyEven).send([ProducerData("t", b"%d" % n, partition=0) for n in range(5)])
    assert values(broker, 0) == [b"0", b"2", b"4"]
