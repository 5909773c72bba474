"""What a request has to pass, by its kind: what is produced is charged to one bucket, what is consumed to another, …"""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.config import Settings
from dataplane.protocol.api import ApiKey
from dataplane.requests.answers import Answers
from dataplane.requests.turnstile import Turnstile
from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from dataplane.tenancy.session import Session
from dataplane.throttle.debt_queue import DebtQueues
from quota.agent.agent import Agent
from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.rows import REQUEST
from quota.core.bucket import TokenBucket
from tests.dataplane.throttle.test_lines import TurnedLoop

PRODUCE, CONSUME, GROUPS = 1_000, 500, 100  # bytes a second
REQUESTS_PER_S, LOOP_MS_PER_S = 10, 100
INTRODUCTIONS = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
LIMITS = Limits(PRODUCE, CONSUME, None, None, requests_per_s=REQUESTS_PER_S, loop_ms_per_s=LOOP_MS_PER_S)


class Connection:
    """Notes when it is not read from."""

    def __init__(self):
        self.is_paused = False

    def pause_for_limit(self):
        self.is_paused = True

    pause_reading = pause_for_limit

    def resume_now(self):
        self.is_paused = False

    resume_reading = resume_now

    def lasting(self, frame):
        return memoryview(bytearray(frame))

    def hold(self, _more):
        """Nothing is kept here."""


class World:
    """An instance on one broker, and connections to it."""

    def __init__(self, limits=LIMITS):
        self.loop = TurnedLoop()
        self.loop.charge_to = lambda account, bucket: self.charged_to.update({account: bucket})
        self.loop.forget_account = lambda account: self.charged_to.pop(account)  # noqa: PLW0108 - it is made below
        self.loop.worked_for = lambda account, seconds: self.worked_for.append((account, round(seconds, 6)))
        self.charged_to, self.worked_for = {}, []
        self.lines = DebtQueues(self.loop)
        self.gate = Gate(Agent(broker=1, boot="b", now=0.0), self.loop, self.lines, group_bytes_per_s=GROUPS)
        spec = InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, limits, ("0.0.0.0/0",), ())
        self.instance = Instance(spec)
        self.gate.configure(self.instance)
        for name, rate in (("produce", PRODUCE), ("consume", CONSUME)):
            self.bucket(name).set_rate(rate, 0.0)
        self.broker = SimpleNamespace(
            doors=SimpleNamespace(clock=self.loop, loop=self.loop),
            debt_queues=self.lines,
            gate=self.gate,
            config=SimpleNamespace(settings=Settings()),
        )

    def bucket(self, name) -> TokenBucket:
        return getattr(self.instance, f"{name}_bucket")

    def client(self, client_id="a", *, internal=False):
        session = Session(
            None if internal else self.instance, "default", self.instance.names, "127.0.0.1", authenticated=True
        )
        connection = Connection()
        made = Turnstile(self.broker, connection, session, Answers(self.loop, connection, session))
        made.sender = (client_id, "127.0.0.1")
        return made

    def charged(self):
        names = ("produce", "consume", "group", "request", "loop")
        buckets = {name: self.bucket(name) for name in names}
        return {name: bucket.charged_bytes for name, bucket in buckets.items() if bucket and bucket.charged_bytes}


@pytest.fixture
def world():
    return World()


def is_read(client):
    return not client._connection.is_paused


def test_a_produce_request_is_charged_what_it_announces_when_it_begins(world):
    assert world.client().begins(ApiKey.PRODUCE, 5_000)
    assert world.charged() == {"produce": 5_004, "request": REQUEST}


def test_a_fetch_is_charged_what_it_brings(world):
    client = world.client()
    assert client.begins(ApiKey.FETCH, 100)
    assert world.charged() == {"request": REQUEST}
    told_s = client.consumed(world.instance, 5_000)
    assert world.charged() == {"request": REQUEST, "consume": 5_000}
    assert told_s == pytest.approx(5_000 / CONSUME, rel=0.05)  # but for what was saved up


def test_others_are_charged_as_requests_only_and_introductions_not_at_all(world):
    client = world.client()
    for key in (ApiKey.METADATA, *INTRODUCTIONS):
        assert client.begins(key, 100)
    assert world.charged() == {"request": REQUEST}


def test_the_internal_listener_is_never_charged(world):
    client = world.client(internal=True)
    assert all(client.begins(key, 10**8) for key in ApiKey)
    assert world.charged() == {}


def test_its_sender_is_told_how_long_its_own_limit_takes_to_pay(world):
    client = world.client()
    client.begins(ApiKey.PRODUCE, 5_000)
    assert client.told_s == pytest.approx(5_000 / PRODUCE, rel=0.05)


def test_what_an_answer_may_hold_is_the_consumers_limit(world):
    assert world.gate.fetch_bytes(world.instance, 2.0) == 2 * CONSUME


@pytest.mark.parametrize(
    ("bucket", "waiting", "passing"),
    [
        ("produce", [ApiKey.PRODUCE], [ApiKey.FETCH, ApiKey.OFFSET_COMMIT, ApiKey.HEARTBEAT, ApiKey.METADATA]),
        ("consume", [ApiKey.FETCH], [ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.HEARTBEAT, ApiKey.METADATA]),
        (
            "group",
            [ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT, ApiKey.JOIN_GROUP],
            [ApiKey.PRODUCE, ApiKey.HEARTBEAT],
        ),
        (
            "request",
            [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_COMMIT],
            [ApiKey.HEARTBEAT, *INTRODUCTIONS],
        ),
        (
            "loop",
            [ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS, ApiKey.JOIN_GROUP],
            [ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, *INTRODUCTIONS],
        ),
    ],
)
def test_a_debt_holds_up_what_is_charged_to_it_and_nothing_else(bucket, waiting, passing):
    for key in waiting:
        world = World()
        world.bucket(bucket).charge(10**6, 0.0)
        client = world.client()
        assert not client.begins(key, 100), key.name
        assert not is_read(client)
    for key in passing:
        world = World()
        world.bucket(bucket).charge(10**6, 0.0)
        client = world.client()
        assert client.begins(key, 100), key.name
        assert is_read(client)


def test_what_may_not_begin_is_not_charged_and_read_again_when_its_time_has_come(world):
    world.bucket("produce").charge(PRODUCE + PRODUCE // 10, 0.0)  # a second's worth, and what was saved up
    client = world.client()
    assert not client.begins(ApiKey.PRODUCE, 5_000)
    assert "request" not in world.charged()
    world.loop.run_until(0.9)
    assert not is_read(client)
    world.loop.run_until(1.1)
    assert is_read(client)
    assert client.begins(ApiKey.PRODUCE, 5_000), "it is let in, though the bucket may owe again"
    assert world.charged()["request"] == REQUEST


def test_an_open_connection_is_no_credit(world):
    """A thousand that have been silent do not all pass because none of them was told to wait."""
    clients = [world.client(f"c{number}") for number in range(1_000)]
    begun = sum(client.begins(ApiKey.PRODUCE, 10_000) for client in clients)
    assert begun == 1


def test_at_a_limit_of_nothing_nothing_passes_on_any_connection():
    world = World(Limits(0, 0, None, None))
    for name in ("produce", "consume"):
        world.bucket(name).set_rate(0, 0.0)
    for _ in range(3):
        assert not world.client().begins(ApiKey.PRODUCE, 100)
        assert not world.client().begins(ApiKey.FETCH, 100)
    world.loop.run_until(120)
    assert world.bucket("produce").charged_bytes == world.bucket("consume").charged_bytes == 0


def test_a_member_waits_no_longer_than_half_of_the_shortest_session(world):
    patience_s = Settings().group_min_session_timeout_ms / 1000 / 2
    client = world.client()
    client.begins(ApiKey.HEARTBEAT, 50)
    world.bucket("loop").charge(10**9, 0.0)
    assert not client.begins(ApiKey.METADATA, 100)
    world.loop.run_until(patience_s - 0.1)
    assert not is_read(client)
    world.loop.run_until(patience_s + 0.1)
    assert is_read(client)
    assert client.begins(ApiKey.METADATA, 100)


def test_members_that_lose_their_patience_together_are_let_in_in_their_accounts_time(monkeypatch):
    """Each reads as much as one turn of it reads: a thousand of them took 27 ms together."""
    world, patience_s = World(replace(LIMITS, requests_per_s=None)), Settings().group_min_session_timeout_ms / 1000 / 2
    clients = [world.client() for _ in range(10)]
    for client in clients:
        client.begins(ApiKey.JOIN_GROUP, 0)
    world.bucket("loop").charge(10**9, 0.0)
    assert not any(client.begins(ApiKey.METADATA, 100) for client in clients)
    due = []
    monkeypatch.setattr(world.loop, "when_due", lambda account, callback: due.append((account, callback)))
    world.loop.run_until(patience_s + 0.1)
    assert not any(is_read(client) for client in clients)
    assert {account for account, _ in due} == {clients[0]._session.account}
    for _, callback in due:
        callback()
    assert all(is_read(client) for client in clients)


@pytest.mark.parametrize("rate", [0, PRODUCE])
def test_a_member_is_no_way_around_the_limit_of_what_is_produced(rate):
    """A JoinGroup costs nothing, and a thousand connections can say it: each would produce twice in a session's time."""
    world = World(Limits(rate, 0, None, None))
    world.bucket("produce").set_rate(rate, 0.0)
    clients = [world.client() for _ in range(10)]
    for client in clients:
        client.begins(ApiKey.JOIN_GROUP, 0)
    world.bucket("produce").charge(40 * PRODUCE, 0.0)
    assert not any(client.begins(ApiKey.PRODUCE, 10_000) for client in clients)
    world.loop.run_until(35)
    assert not any(is_read(client) for client in clients)


def test_a_members_fetch_that_cannot_wait_is_let_in_and_brings_nothing(world):
    client, patience_s = world.client(), Settings().group_min_session_timeout_ms / 1000 / 2
    client.begins(ApiKey.HEARTBEAT, 50)
    world.bucket("consume").charge(100 * CONSUME, 0.0)
    assert not client.begins(ApiKey.FETCH, 100)
    world.loop.run_until(patience_s + 0.1)
    assert client.begins(ApiKey.FETCH, 100)
    assert client.reads_nothing
    client.begins(ApiKey.HEARTBEAT, 50)
    assert not client.reads_nothing


def test_a_members_fetch_whose_turn_has_come_reads(world):
    client = world.client()
    client.begins(ApiKey.HEARTBEAT, 50)
    world.bucket("consume").charge(CONSUME, 0.0)
    assert not client.begins(ApiKey.FETCH, 100)
    world.loop.run_until(2.5)
    assert is_read(client)
    assert client.begins(ApiKey.FETCH, 100)
    assert not client.reads_nothing


def test_a_connection_that_ends_while_it_waits_is_passed_over(world):
    world.bucket("produce").charge(PRODUCE, 0.0)
    gone, other = world.client(), world.client()
    assert not gone.begins(ApiKey.PRODUCE, 100)
    assert not other.begins(ApiKey.PRODUCE, 100)
    gone.give_up()
    world.loop.run_until(2)
    assert is_read(other)


def test_what_requests_cost_the_loop_is_charged_by_the_loop(world):
    assert world.charged_to == {world.instance.names.key: world.bucket("loop")}
    world.gate.remove(world.instance)
    assert world.charged_to == {}


def test_what_is_served_out_of_a_line_costs_its_account_loop_time(world):
    """A timer serves it: else broker time would be free for just those who wait for it."""
    client = world.client()
    world.bucket("loop").charge(10**6, 0.0)
    assert not client.begins(ApiKey.METADATA, 100)

    def resume_now():
        world.loop.now += 0.005

    client._connection.resume_now = resume_now
    world.loop.run_until(60)
    assert world.worked_for == [(world.instance.names.key, 0.005)]


@pytest.mark.parametrize("limit", ["requests_per_s", "loop_ms_per_s"])
def test_who_waits_for_a_limit_that_is_taken_away_is_let_go(limit):
    world = World(replace(LIMITS, **{limit: 0}))
    client = world.client()
    assert not client.begins(ApiKey.METADATA, 100)
    world.loop.run_until(5)
    assert not is_read(client)
    world.instance.spec = replace(world.instance.spec, limits=replace(LIMITS, **{limit: None}))
    world.gate.configure(world.instance)
    world.loop.run_until(7)
    assert is_read(client)
    assert client.begins(ApiKey.METADATA, 100)


# --- what came pipelined ----------------------------------------------------------------------------------------------

ROOMY = Limits(1_000_000, CONSUME, None, None, loop_ms_per_s=LOOP_MS_PER_S)


@pytest.fixture
def roomy():
    made = World(ROOMY)
    made.bucket("produce").set_rate(1_000_000, 0.0)
    made.loop.run_until(1.0)  # a slice is saved up: 100,000 bytes
    return made


def test_what_stands_behind_a_produce_request_is_charged_in_one_sum(roomy):
    client = roomy.client()
    assert all(client.begins(ApiKey.PRODUCE, 96, behind) for behind in (200, 100, 0))
    assert roomy.charged() == {"produce": 100}, "the two that were cleared are not charged yet"
    client.settle()
    assert roomy.charged() == {"produce": 300}


def test_what_was_cleared_and_did_not_come_is_not_charged(roomy):
    client = roomy.client()
    client.begins(ApiKey.PRODUCE, 96, 5_000)
    client.begins(ApiKey.PRODUCE, 96, 4_900)
    client.settle()
    client.settle()
    assert roomy.charged() == {"produce": 200}


def test_another_kind_of_request_ends_what_was_cleared(roomy):
    client = roomy.client()
    client.begins(ApiKey.PRODUCE, 96, 1_000)
    client.begins(ApiKey.PRODUCE, 96, 900)
    client.begins(ApiKey.METADATA, 96, 800)
    assert roomy.charged() == {"produce": 200}
    client.begins(ApiKey.PRODUCE, 96)
    assert roomy.charged() == {"produce": 300}


def test_nothing_is_cleared_beyond_what_is_saved_up(roomy):
    client = roomy.client()
    client.begins(ApiKey.PRODUCE, 96, 200_000)
    client.begins(ApiKey.PRODUCE, 96, 199_900)
    assert roomy.charged() == {"produce": 200}


def test_a_fetch_that_makes_a_debt_ends_what_was_cleared(roomy):
    client = roomy.client()
    assert client.begins(ApiKey.FETCH, 96, 1_000)
    assert client.begins(ApiKey.FETCH, 96, 900)
    client.consumed(roomy.instance, 10 * CONSUME)
    assert not client.begins(ApiKey.FETCH, 96, 800)


def test_where_requests_are_counted_each_is(world):
    world.loop.run_until(1.0)
    client = world.client()
    for behind in (10, 0):
        client.begins(ApiKey.PRODUCE, 6, behind)
    assert world.charged() == {"produce": 20, "request": 2 * REQUEST}
