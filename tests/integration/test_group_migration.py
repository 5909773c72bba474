"""A running group goes over to `group.protocol=consumer` member by member, and back: librdkafka beside kafka-python."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import ConsumerGroupType

from tests.integration.clients import TIMEOUT_S, Sender, admin, create_topic
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from tests.support.specs import Tenant

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
PARTITIONS = 6

BEGIN = """
import json, signal, sys
bootstrap, protocol = sys.argv[1:]
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
def tell(**news):
    print(json.dumps(news), flush=True)
"""
LIBRDKAFKA = (
    BEGIN
    + """
import time
from confluent_kafka import Consumer, KafkaError, KafkaException
def commit(message):
    # A commit by hand is sent once. One of the epoch before is for us to send again: the partition is still ours, for
    # rebalances happen within poll.
    for _ in range(50):
        try:
            return reader.commit(message, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.STALE_MEMBER_EPOCH:
                raise
            tell(again=message.value().decode())
            time.sleep(0.05)
    return reader.commit(message, asynchronous=False)
config = {"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False,
          "log_level": 0, "group.protocol": protocol}
if protocol == "classic":
    config.update({"partition.assignment.strategy": "range", "session.timeout.ms": 10000, "heartbeat.interval.ms": 500})
reader = Consumer(config)
reader.subscribe(["orders"], on_assign=lambda c, p: None, on_revoke=lambda c, p: None)  # rebalances happen within poll
before = None
while not stopped:
    message = reader.poll(0.1)
    if message is not None and message.error() is None:
        try:
            commit(message)
        except KafkaException as error:
            tell(refused=message.value().decode(), why=str(error))
        else:
            tell(value=message.value().decode())
    now = sorted(p.partition for p in reader.assignment())
    if now != before:
        before = now
        tell(has=now)
reader.close()
"""
)
KAFKA_PYTHON = (
    BEGIN
    + """
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
reader = KafkaConsumer("orders", bootstrap_servers=bootstrap, group_id="billing", auto_offset_reset="earliest",
                       enable_auto_commit=False, partition_assignment_strategy=[RangePartitionAssignor],
                       session_timeout_ms=10000, heartbeat_interval_ms=500)
before = None
while not stopped:
    for messages in reader.poll(timeout_ms=100, max_records=1).values():
        for message in messages:
            try:
                reader.commit()
            except KafkaError as error:
                tell(refused=message.value.decode(), why=repr(error))
            else:
                tell(value=message.value.decode())
    now = sorted(p.partition for p in reader.assignment())
    if now != before:
        before = now
        tell(has=now)
reader.close()
"""
)


class Member:
    """A consumer in a process of its own. `read` is what it has committed."""

    def __init__(self, tenant: Tenant, program: str, protocol: str = "classic") -> None:
        command = [sys.executable, "-c", program, tenant.bootstrap, protocol]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.has: list[int] = []
        self.read: list[str] = []
        self.refused: list[dict[str, Any]] = []
        self.sent_again = 0  # commits of the epoch before
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            news = json.loads(line)
            if "has" in news:
                self.has = news["has"]
            elif "again" in news:
                self.sent_again += 1
            elif "refused" in news:
                self.refused.append(news)
            else:
                self.read.append(news["value"])

    def stop(self) -> None:
        """It leaves in order."""
        self.process.terminate()
        assert self.process.wait(TIMEOUT_S) == 0, self.process.stderr and self.process.stderr.read()
        self._thread.join(10)
        self.has = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._thread.join(10)


class Flow:
    """Sends a value every few milliseconds, until it is told to end."""

    def __init__(self, tenant: Tenant) -> None:
        self.sent: list[str] = []
        self._sender = Sender(tenant)
        self._end = Event()
        self._thread = Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        while not self._end.wait(0.02):
            value = f"value-{len(self.sent)}"
            self._sender.send("orders", value.encode(), value.encode())
            self.sent.append(value)
        self._sender.flush()

    def end(self) -> None:
        """All are acknowledged."""
        self._end.set()
        self._thread.join(TIMEOUT_S)
        assert not self._sender.refused


def share(*members: Member) -> bool:
    """Whether every partition is one's, and each member has its part."""
    held = sorted(partition for member in members for partition in member.has)
    return held == list(range(PARTITIONS)) and all(member.has for member in members)


def kind(tenant: Tenant) -> ConsumerGroupType:
    client = admin(tenant)  # kept: an AdminClient that is collected takes its requests along
    listed = client.list_consumer_groups().result(TIMEOUT_S)
    return next(group.type for group in listed.valid if group.group_id == "billing")


def test_every_record_is_committed_once_through_the_change_and_back(tenant: Tenant) -> None:
    create_topic(tenant, "orders", PARTITIONS)
    with ExitStack() as stack:
        flow = Flow(tenant)
        stack.callback(flow.end)
        members: list[Member] = []

        def begin(program: str, protocol: str = "classic") -> Member:
            members.append(stack.enter_context(Member(tenant, program, protocol)))
            return members[-1]

        one, two = begin(LIBRDKAFKA), begin(KAFKA_PYTHON)
        wait_for(lambda: share(one, two), 60, "two members of the classic protocol to share the partitions")
        assert kind(tenant) is ConsumerGroupType.CLASSIC
        three = begin(LIBRDKAFKA, "consumer")
        wait_for(lambda: share(one, two, three), 60, "one of the consumer protocol to have its part beside them")
        assert kind(tenant) is ConsumerGroupType.CONSUMER
        two.stop()
        four = begin(LIBRDKAFKA, "consumer")
        wait_for(lambda: share(one, three, four), 60, "a second one in the place of a classic one")
        one.stop()
        wait_for(lambda: share(three, four), 60, "the consumer protocol alone")
        five = begin(KAFKA_PYTHON)
        wait_for(lambda: share(three, four, five), 60, "one of the classic protocol again")
        three.stop()
        four.stop()
        wait_for(lambda: share(five), 60, "the classic protocol alone")
        assert kind(tenant) is ConsumerGroupType.CLASSIC
        flow.end()
        read = read_to_the_end(members, len(flow.sent))
        assert len(read) == len(set(read)), "none twice"
        # A commit whose answer did not come in time may have been made all the same.
        refused = [(number, news) for number, member in enumerate(members, 1) for news in member.refused]
        in_doubt = {news["refused"] for _, news in refused if "time" in news["why"].lower()}
        assert set(flow.sent) - set(read) <= in_doubt, refused


def read_to_the_end(members: list[Member], count: int) -> list[str]:
    """What all have read, when that is so much, or when nothing has been added for half a minute: the machine may be slow."""
    read: list[str] = []
    quiet_since = time.monotonic()
    while len(read) < count and time.monotonic() - quiet_since < 30:
        time.sleep(0.2)
        now = [value for member in members for value in member.read]
        if len(now) > len(read):
            read, quiet_since = now, time.monotonic()
    return read
