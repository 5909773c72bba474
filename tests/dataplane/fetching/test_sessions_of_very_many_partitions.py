"""A session in which very many partitions may have something to tell is looked at in steps: 16 us each were 0.2 s for 20,000."""

from __future__ import annotations

import pytest

from dataplane.handlers.context import RequestContext
from dataplane.handlers.records import fetch
from dataplane.handlers.records.fetch_reading import ConsumerReader
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.fetch import FetchResponse
from dataplane.tasks import Future
from tests.dataplane.fetching.support import FETCH, KEY, NAME, Door, request, rows, single

MANY = 300
VERSION = 12
PRINCIPAL = "User:one@127.0.0.1"


class Slices:
    """Runs all steps at once."""

    @staticmethod
    def run(_owner, steps):
        done: Future = Future()
        done.resolve(list(steps))
        return done


class Client(Door):
    """One with a session of `wanted`, whose requests are handled a step at a time."""

    def __init__(self, cluster, wanted):
        super().__init__(cluster)
        self.broker.slices = Slices()
        self.session_id, self.epoch = self.fetch(wanted, VERSION, session_epoch=0).session_id, 0
        assert self.session_id

    @property
    def pool(self):
        return self.broker.fetch_sessions.pool(KEY)

    @property
    def fetch_session(self):
        return self.pool.find(self.session_id, PRINCIPAL)

    def request(self, wanted=(), **members):
        self.epoch += 1
        members.setdefault("max_wait_ms", 0)
        return request(wanted, VERSION, session_id=self.session_id, session_epoch=self.epoch, **members)

    def steps(self, wanted=(), *, is_long=False, **members):
        """Of the session's next request."""
        ctx = RequestContext(self.broker, self.session, ApiKey.FETCH, VERSION, 7, "test", 100, is_long)
        return fetch.handle_fetch(ctx, self.request(wanted, **members))

    def overtake(self, number):
        """In one of the pauses the session's next request comes by another connection."""
        if number == 3:
            assert self.pool.resume(self.request(), PRINCIPAL, VERSION) is self.fetch_session

    def told(self, reply) -> FetchResponse:
        """What a reply says, which is there."""
        if isinstance(reply, FetchResponse):
            return reply
        frame = b"".join(part.read() if hasattr(part, "read") else bytes(part) for part in reply.result().parts)
        return decode_response(FETCH, VERSION, frame[4:], self.session.names)[1]


def run(steps, meanwhile=lambda number: None):
    """To the end; `meanwhile` is called in each pause."""
    number = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value
        meanwhile(number)
        number += 1


def long_session(count=100):
    """One whose partitions are all there, each with a record that its reader has not got yet."""
    client = Client(single(count), dict.fromkeys(range(count), 0))
    for index in range(count):
        client.cluster.produce(1, "x", acks=1, index=index)
    client.cluster.run(0.01)
    return client


def produce(client, index):
    client.cluster.produce(1, "y", acks=1, index=index)
    client.cluster.run(0.01)


@pytest.fixture
def client():
    """All of its partitions but two are unknown: these have that to tell, again and again."""
    return Client(single(2), dict.fromkeys(range(MANY), 0))


def test_few_are_looked_at_between_two_pauses(client, monkeypatch):
    looks, read = [0], ConsumerReader.read

    def counted(reader, *arguments):
        looks[-1] += 1
        return read(reader, *arguments)

    monkeypatch.setattr(ConsumerReader, "read", counted)
    answer = client.told(run(client.steps(), lambda _: looks.append(0)))
    assert sorted(rows(answer)) == list(range(2, MANY))
    assert {row.error_code for row in rows(answer).values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert max(looks) <= 6
    assert sum(looks) == MANY - 2


def test_what_arrives_where_nothing_was_while_others_are_looked_at_is_told(client):
    answer = client.told(run(client.steps(), lambda number: number == 3 and produce(client, 1)))
    assert rows(answer)[1].high_watermark == 1
    assert len(rows(answer)[1].records) > 0


def test_what_is_forgotten_is_not_told(client):
    answer = client.told(run(client.steps(forget=range(100, MANY), is_long=True)))
    assert sorted(rows(answer)) == list(range(2, 100))
    assert client.fetch_session.size == 100


def test_one_that_is_overtaken_says_so(client):
    answer = client.told(run(client.steps(), client.overtake))
    assert (answer.error_code, rows(answer)) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, {})


def test_one_whose_session_goes_meanwhile_is_answered(client):
    def end(number):
        if number == 3:
            client.pool.remove(client.fetch_session)

    answer = client.told(run(client.steps(), end))
    assert answer.error_code == 0
    assert 0 < len(rows(answer)) < MANY
    assert (len(client.pool), client.pool.partitions) == (0, 0)
    assert client.fetch({}, VERSION, session_id=client.session_id, session_epoch=2).error_code == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_one_that_finds_nothing_waits_and_is_woken():
    count = 80
    client = long_session(count)
    assert len(rows(client.told(run(client.steps())))) == count
    reply = run(client.steps(dict.fromkeys(range(count), 1), is_long=True, max_wait_ms=5_000))
    assert not reply.done
    produce(client, 7)
    assert list(rows(client.told(reply))) == [7]


def test_a_request_that_names_more_than_is_remembered_ends_the_session_in_steps(client):
    pauses = []
    answer = run(client.steps(dict.fromkeys(range(1_000, 8_000), 0), is_long=True), pauses.append)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(client.pool), client.pool.partitions) == (0, 0)
    assert len(pauses) > 100


def test_what_a_client_may_no_longer_read_is_told_also_where_that_is_asked_in_steps(client, monkeypatch):
    """The one topic counts for many here."""
    monkeypatch.setattr(fetch, "_SHORT", 0)
    assert len(rows(client.told(run(client.steps())))) == MANY - 2
    client.instance.deny(NAME)
    answer = client.told(run(client.steps()))
    assert sorted(rows(answer)) == list(range(MANY))
    assert {row.error_code for row in rows(answer).values()} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


# --- what happens while it is looked at -----------------------------------------------------------------------------------


def test_what_arrives_where_something_was_found_already_is_told_next():
    """A record there was no news of would be left until something else happens."""
    client = long_session()
    steps = client.steps(dict.fromkeys(range(100), 1), is_long=True)  # there is nothing but other high watermarks
    answer = client.told(run(steps, lambda number: number == 15 and produce(client, 0)))
    assert (len(rows(answer)), rows(answer)[0].high_watermark) == (100, 1)
    again = client.told(run(client.steps(is_long=True)))
    assert list(rows(again)) == [0]
    assert rows(again)[0].high_watermark == 2


def test_what_arrives_where_too_little_was_found_is_looked_at_again_and_not_waited_for():
    client = long_session()
    size = sum(len(row.records) for row in rows(client.told(run(client.steps()))).values())
    reply = run(
        client.steps(dict.fromkeys(range(100), 0), is_long=True, min_bytes=size + 1, max_wait_ms=60_000),
        lambda number: number == 10 and produce(client, 0),
    )
    assert reply.done
    assert sum(len(row.records) for row in rows(client.told(reply)).values()) > size


def test_one_that_is_overtaken_does_not_wait():
    client = long_session()
    run(client.steps())
    reply = run(client.steps(dict.fromkeys(range(100), 1), is_long=True, max_wait_ms=60_000), client.overtake)
    assert client.told(reply).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_that_begins_with_a_look_in_many_turns_looks_at_all_of_it_again():
    client = long_session()
    client.pool.remove(client.fetch_session)
    client.epoch = -1
    steps = client.steps(dict.fromkeys(range(100), 1), is_long=True)
    answer = client.told(run(steps, lambda number: number == 20 and produce(client, 0)))
    client.session_id = answer.session_id
    assert client.session_id
    assert list(rows(client.told(run(client.steps())))) == [0]


def test_partitions_are_counted_also_where_their_client_has_gone_in_the_midst(client):
    steps = client.steps(dict.fromkeys(range(1_000, 2_000), 0), is_long=True)
    for _ in range(20):
        next(steps)
    steps.close()
    assert client.pool.partitions == client.fetch_session.size > MANY
