"""Agents and the report server over loopback: secret, answers, failover, and what a stranger may do."""

import asyncio
import json

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink
from quota.contracts.identity import Keys, credential
from quota.master.election import Role
from quota.master.server import ReportServer
from quota.master.service import Service
from quota.wire import MAX_HELLO_BYTES, Hello, frame
from tests.quota.loopdoor import AsyncioDoor
from tests.quota.samples import INSTANCE, report, spec

SECRET = "correct horse"


class Master:
    """A report server with a role that the test decides."""

    def __init__(self, *, epoch=1, limit=30_000, lease_ms=600):
        self.role = Role.ACTIVE
        self.log = []
        self.epoch = epoch
        self.service = Service(period_ms=200, lease_ms=lease_ms, now=asyncio.get_running_loop().time)
        self.service.set_specs({INSTANCE: spec(produce=limit, consume=limit)})
        self.server = ReportServer(self.service, lambda: self.role, keys=Keys(SECRET), log=self.log.append)

    async def __aenter__(self):
        self.port = await self.server.start("127.0.0.1", 0)
        self.service.won(self.epoch)
        return self

    async def __aexit__(self, *exc):
        self.server.stop()
        await asyncio.sleep(0)


class Broker:
    """An agent with its link."""

    def __init__(self, broker, *, secret=None):
        secret = secret or credential(SECRET, f"broker-{broker}")
        door = AsyncioDoor()
        self.log = []
        self.agent = Agent(broker=broker, boot="b", now=door.now(), period_ms=200)
        self.agent.configure(INSTANCE, 30_000, 30_000, door.now())
        self.facts = {INSTANCE: InstanceFacts(leaders=2, all_leaders=6, storage_bytes=10, connections=1)}
        self.link = MasterLink(
            door, self.agent, broker=broker, secret=secret, facts=self.facts.items, log=self.log.append
        )
        self.link.start()

    def rate(self):
        return self.agent.rate(INSTANCE, "produce")


async def until(condition, timeout_s=10.0):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def test_traffic_moves_to_the_broker_that_carries_it_and_back_to_initial_shares_when_the_master_is_gone():
    async def scenario():
        async with Master() as master:
            brokers = [Broker(number) for number in (1, 2, 3)]
            for broker in brokers:
                broker.link.set_master("127.0.0.1", master.port, 1)
            busy = True

            async def traffic():
                while busy:
                    loop = asyncio.get_running_loop()
                    brokers[0].agent.bucket(INSTANCE, "produce").charge(3000, loop.time())
                    await asyncio.sleep(0.05)

            task = asyncio.create_task(traffic())
            await until(lambda: [broker.rate() for broker in brokers] == [30_000, 3_000, 3_000])
            busy = False
            await task
            for broker in brokers:
                broker.link.set_master(None)
            await until(lambda: [broker.rate() for broker in brokers] == [10_000, 10_000, 10_000])
            for broker in brokers:
                broker.link.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("said", ["battery staple", SECRET, credential(SECRET, "broker-2")])
def test_what_is_not_the_brokers_own_credential_closes_the_connection_and_grants_nothing(said):
    async def scenario():
        async with Master() as master:
            broker = Broker(1, secret=said)
            broker.link.set_master("127.0.0.1", master.port, 1)
            await until(lambda: len(broker.log) >= 2)
            broker.link.stop()
            assert master.service.reports_total == 0
            assert any("the credential of broker 1 is wrong" in line for line in master.log)
            assert not any(said in line or SECRET in line for line in master.log + broker.log)

    asyncio.run(scenario())


def test_a_standby_closes_and_the_link_tries_again_until_it_is_active():
    async def scenario():
        async with Master() as master:
            master.role = Role.STANDBY
            broker = Broker(1)
            broker.link.set_master("127.0.0.1", master.port, 1)
            await until(lambda: broker.log)
            assert master.service.reports_total == 0
            master.role = Role.ACTIVE
            await until(lambda: master.service.reports_total > 0)
            broker.link.stop()

    asyncio.run(scenario())


def test_a_master_that_is_suspended_keeps_the_connection_and_grants_nothing():
    async def scenario():
        async with Master() as master:
            broker = Broker(1)
            broker.link.set_master("127.0.0.1", master.port, 1)
            await until(lambda: master.service.reports_total > 0)
            master.role = Role.SUSPENDED
            before = master.service.reports_total
            master.service.set_specs({INSTANCE: spec(produce=30_000, storage=1)})
            await until(lambda: master.service.reports_total > before + 2)
            assert broker.agent.blocked(INSTANCE) is None
            assert broker.link.connected
            master.role = Role.ACTIVE
            await until(lambda: broker.agent.blocked(INSTANCE) == "storage")
            broker.link.stop()

    asyncio.run(scenario())


def test_grants_of_a_deposed_master_are_not_obeyed():
    async def scenario():
        async with Master(epoch=4, lease_ms=0) as master:
            broker = Broker(1)
            broker.link.set_master("127.0.0.1", master.port, 5)
            await until(lambda: any("replaced" in line for line in broker.log))
            assert broker.agent.epoch == 5
            assert broker.rate() == 10_000
            broker.link.stop()

    asyncio.run(scenario())


def test_a_new_master_takes_over_and_learns_from_what_brokers_hold():
    async def scenario():
        async with Master(epoch=1, lease_ms=0) as first, Master(epoch=2, lease_ms=60_000) as second:
            first.service._lease_ms = 60_000
            first.service.won(1)
            first.service.ledger._learning_until = 0.0
            broker = Broker(1)
            broker.link.set_master("127.0.0.1", first.port, 1)
            await until(lambda: first.service.reports_total > 1 and broker.rate() == 30_000)
            broker.link.set_master("127.0.0.1", second.port, 2)
            await until(lambda: broker.agent.epoch == 2 and second.service.reports_total > 1)
            assert broker.rate() == 30_000
            assert second.service.ledger.allocation(INSTANCE, "produce", 0.0).branch == "learning"
            broker.link.stop()

    asyncio.run(scenario())


async def stranger(port, data):
    """What a connection that sends this is answered; the server must close it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(3):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()


HELLO = frame(Hello(credential(SECRET, "broker-1"), 1).to_json())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        (MAX_HELLO_BYTES + 1).to_bytes(4, "big"),
        frame(b"[]"),
        frame(report(1).to_json()),
        frame(Hello("", 1).to_json()),
        frame(Hello("ключ", 1).to_json()),
        HELLO + HELLO,
        HELLO + frame(report(2).to_json()),
        HELLO + frame(json.dumps({"type": "report", "version": 2}).encode()),
        HELLO + frame(report(1).to_json().replace(b"[0,0,0,2,", b'[0,0,0,"2",')),
        HELLO + (2**31).to_bytes(4, "big"),
    ],
)
def test_whoever_does_not_follow_the_protocol_is_cut_off_without_an_answer(data):
    async def scenario():
        async with Master() as master:
            assert await stranger(master.port, data) == b""
            assert master.service.reports_total == 0
            assert not master.server.connections

    asyncio.run(scenario())


def test_hello_and_report_in_one_piece_are_answered():
    async def scenario():
        async with Master() as master:
            reader, writer = await asyncio.open_connection("127.0.0.1", master.port)
            writer.write(HELLO + frame(report(1).to_json()))
            size = int.from_bytes(await reader.readexactly(4), "big")
            grants = json.loads(await reader.readexactly(size))
            assert (grants["type"], grants["epoch"], grants["sequence"]) == ("grants", 1, 1)
            writer.transport.abort()

    asyncio.run(scenario())


def test_a_silent_connection_is_closed(monkeypatch):
    monkeypatch.setattr("quota.master.server.HELLO_WITHIN_S", 0.05)

    async def scenario():
        async with Master() as master:
            assert await stranger(master.port, b"") == b""
            assert any("quiet" in line for line in master.log)

    asyncio.run(scenario())
