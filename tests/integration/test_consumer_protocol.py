"""librdkafka with `group.protocol=consumer` (KIP-848) against a tenant's port: three members, of which one is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from threading import Thread
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import ConsumerGroupType

from tests.integration.clients import TIMEOUT_S, admin, create_topic, produce
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from tests.support.specs import Tenant

pytestmark = pytest.mark.integration

MEMBER = """
import json, sys
from confluent_kafka import Consumer
config, topics = json.loads(sys.argv[1]), json.loads(sys.argv[2])
reader = Consumer(config)
def tell(**news):
    print(json.dumps(news), flush=True)
reader.subscribe(topics)
before = None
while True:
    for message in reader.consume(100, 0.1):
        assert message.error() is None, message.error()
        tell(topic=message.topic(), value=message.value().decode())
        reader.commit(message, asynchronous=False)
    now = sorted([p.topic, p.partition] for p in reader.assignment())
    if now != before:
        before = now
        tell(has=now)
"""


class Member:
    """A consumer in a process of its own, which can be killed."""

    def __init__(self, tenant: Tenant, name: str, topics: list[str], **more: Any) -> None:
        config = {
            "bootstrap.servers": tenant.bootstrap,
            "group.id": "billing",
            "group.protocol": "consumer",
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **more,
        }
        command = [sys.executable, "-c", MEMBER, json.dumps(config), json.dumps(topics)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.has: list[list[Any]] = []
        self.read: list[str] = []
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            news = json.loads(line)
            if "has" in news:
                self.has = news["has"]
            else:
                self.read.append(news["value"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._thread.join(10)


def share(members: list[Member], partitions: int) -> bool:
    """Whether every partition is one's, and each has as many as the others."""
    held = [tuple(place) for member in members for place in member.has]
    sizes = [len(member.has) for member in members]
    return len(held) == len(set(held)) == partitions and max(sizes) - min(sizes) <= 1


def test_three_members_share_the_partitions_and_one_that_is_killed_is_replaced(tenant: Tenant) -> None:
    create_topic(tenant, "orders", 6)
    with ExitStack() as stack:
        members = [stack.enter_context(Member(tenant, name, ["orders"])) for name in ("one", "two", "three")]
        wait_for(lambda: share(members, 6), 40, "three members to share six partitions")
        sent = [f"value-{n}" for n in range(60)]
        produce(tenant, "orders", [value.encode() for value in sent])
        wait_for(lambda: sum(len(member.read) for member in members) >= 60, 30, "all to be read")
        assert sorted(value for member in members for value in member.read) == sorted(sent)
        client = admin(tenant)  # kept: an AdminClient that is collected takes its requests along
        listed = client.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(TIMEOUT_S)
        assert [group.group_id for group in listed.valid] == ["billing"]
        described = client.describe_consumer_groups(["billing"])["billing"].result(TIMEOUT_S)
        assert sorted(member.client_id for member in described.members) == ["one", "three", "two"]
        assert sorted(len(member.assignment.topic_partitions) for member in described.members) == [2, 2, 2]
        members[0].process.kill()
        wait_for(lambda: share(members[1:], 6), 40, "two members to share what the third had")
        more = [f"more-{n}" for n in range(60)]
        produce(tenant, "orders", [value.encode() for value in more])
        rest = members[1:]
        wait_for(lambda: sum(v.startswith("more") for m in rest for v in m.read) >= 60, 30, "all to be read")
        assert sorted(value for member in rest for value in member.read if value.startswith("more")) == sorted(more)


def test_a_regular_expression_is_matched_by_the_broker(tenant: Tenant) -> None:
    create_topic(tenant, "orders.a", 1)
    create_topic(tenant, "other", 1)
    with Member(tenant, "one", ["^orders[.].*"]) as member:
        wait_for(lambda: member.has == [["orders.a", 0]], 40, "the topic that matches")
        create_topic(tenant, "orders.b", 1)
        wait_for(lambda: member.has == [["orders.a", 0], ["orders.b", 0]], 40, "the one that came later")
