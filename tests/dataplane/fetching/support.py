"""Fetches as the handler gets them, on brokers that have nothing but `Replicas` (`tests.dataplane.replication.cluster`)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace

from dataplane.cluster.paths import BrokerAddress
from dataplane.config import Settings
from dataplane.handlers.context import RequestContext
from dataplane.handlers.records.fetch import handle_fetch
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from dataplane.replication.serving.session_cache import FetchSessions
from dataplane.tasks import Future
from dataplane.tenancy.instance import Instance as ServedInstance
from dataplane.tenancy.session import Session
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from tests.dataplane.replication.cluster import TOPIC, TOPIC_ID, ReplicatedCluster

FETCH = APIS[ApiKey.FETCH]
KEY = TOPIC.split(".")[0]
NAME = TOPIC.split(".")[1]


def spec_of(key=KEY):
    """Everybody may connect, and nothing is limited."""
    return InstanceSpec(f"ins-{key}", 1, InstanceState.RUNNING, Limits(None, None, None, None), ("0.0.0.0/0",), (), {})


class Instance(ServedInstance):
    """An instance without limits."""

    def __init__(self, key=KEY):
        super().__init__(spec_of(key))
        self.unreachable = set()
        self.consume_bucket = Bucket()

    def deny(self, *topics):
        """These, by the tenant's names, from here on, and no others."""
        self.apply(replace(self.spec, topic_whitelists=dict.fromkeys(topics, ())))

    def advertised(self, route, broker_id):
        return None if broker_id in self.unreachable else (f"{route}.example", 9000 + broker_id)


class Bucket:
    """Charges nothing, and says always the same."""

    line = None

    def __init__(self, delay_s=0.0):
        self.delay_s = delay_s

    def charge(self, _size, _now):
        return self.delay_s


class DebtQueues:
    """Nobody has to wait for others."""

    def began(self, _bucket, _sender, _size, delay_s, _now):
        return delay_s


class Gate:
    """Nothing is limited, unless `allowed` says so."""

    allowed = None

    def fetch_bytes(self, _instance, _window_s):
        return self.allowed

    def charge_consume(self, _instance, _sender, _size, told_s=0.0):
        return told_s


class Metadata:
    """What the broker knows of the cluster: as little as the test says."""

    def __init__(self, cluster, racks=None):
        racks = racks or {}
        self.brokers = {n: BrokerAddress(n, f"b{n}", 9092, racks.get(n)) for n in cluster.brokers}
        self.ids = {}

    def topic_of_id(self, topic_id):
        return self.ids.get(topic_id)

    def partition(self, _topic, _index):
        return None


class Door:
    """One client's way to broker `broker_id`. `fetch` gives the answer, or None while it waits (`answers` has it then)."""

    def __init__(
        self, cluster: ReplicatedCluster, broker_id=1, *, settings=None, racks=None, instance=None, principal="User:one"
    ):
        self.cluster = cluster
        self.instance = instance or Instance()
        self.metadata = Metadata(cluster, racks)
        settings = settings or Settings()
        clock = cluster.network.clock
        self.broker = SimpleNamespace(
            doors=SimpleNamespace(files=cluster[broker_id].files, clock=clock),
            replicas=cluster[broker_id].replicas,
            metadata=self.metadata,
            config=SimpleNamespace(settings=settings, rack=(racks or {}).get(broker_id)),
            gate=Gate(),
            debt_queues=DebtQueues(),
            fetch_sessions=FetchSessions(clock, Random(5), settings),
        )
        self.session = Session(
            self.instance, "default", self.instance.names, "127.0.0.1", authenticated=True, principal=principal
        )
        self.answers: list[FetchResponse] = []
        self.waiting: list[Future] = []

    def as_other(self, principal, instance=None) -> Door:
        """Another client of the same broker."""
        other = Door.__new__(Door)
        other.__dict__.update(self.__dict__)
        other.instance = instance or self.instance
        other.session = Session(
            other.instance, "default", other.instance.names, "127.0.0.1", authenticated=True, principal=principal
        )
        other.answers, other.waiting = [], []
        return other

    def send(self, request: FetchRequest, version: int) -> Future:
        """The answer, decoded, when it is there."""
        ctx = RequestContext(self.broker, self.session, ApiKey.FETCH, version, 7, "test", 100)
        reply = handle_fetch(ctx, request)
        done: Future = Future()

        def answered(future):
            reply = future.result()
            frame = b"".join(part if isinstance(part, bytes) else part.read() for part in reply.parts)
            done.resolve(decode_response(FETCH, version, frame[4:], self.session.names)[1])

        if isinstance(reply, Future):
            reply.then(answered)
            self.give_up = reply.give_up
        else:
            done.resolve(reply)
        return done

    def fetch(self, wanted=(), version=12, **members) -> FetchResponse:
        """A fetch that does not wait. `wanted`: {index: offset or FetchPartition}, of the one topic."""
        members.setdefault("max_wait_ms", 0)
        future = self.send(request(wanted, version, **members), version)
        assert future.done
        return future.result()


def request(wanted=(), version=12, *, forget=(), topic_id=TOPIC_ID, **members) -> FetchRequest:
    """A request for partitions of the one topic."""
    rows = tuple(row(index, what) for index, what in dict(wanted).items())
    named = {"topic_id": topic_id} if version >= 13 else {"topic": TOPIC}
    members.setdefault("session_epoch", -1)
    members.setdefault("min_bytes", 1)
    members.setdefault("max_wait_ms", 500)
    return FetchRequest(
        topics=(FetchTopic(partitions=rows, **named),) if rows else (),
        forgotten_topics_data=(ForgottenTopic(partitions=tuple(forget), **named),) if forget else (),
        **members,
    )


def row(index, what) -> FetchPartition:
    if isinstance(what, FetchPartition):
        return what
    return FetchPartition(partition=index, fetch_offset=what, partition_max_bytes=2**20)


def rows(response: FetchResponse) -> dict:
    """{index: row} of an answer, in its order."""
    return {data.partition_index: data for topic in response.responses for data in topic.partitions}


def single(partitions=1) -> ReplicatedCluster:
    """One broker that leads everything."""
    cluster = ReplicatedCluster(size=1)
    for index in range(partitions):
        cluster.create((1,), index=index)
    return cluster
