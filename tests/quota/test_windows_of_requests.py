"""The master keeps what brokers said of requests for a minute, knows what they have not said yet, and hands it out unread."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink
from quota.contracts.requests import ApiCounts, RequestCounts, Told
from quota.core.windows import KEPT, RequestBook
from quota.master.service import Service
from quota.wire import Decoder
from tests.quota.samples import INSTANCE, report, spec
from tests.quota.test_http import ask, get
from tests.quota.test_transport import Door

NOON = 1_740_830_400
OTHER = "ins-aaaabbbb"


def text(unanswered, **errors):
    return RequestCounts({"Produce": ApiCounts(unanswered, errors=errors)}).to_text()


def requests(book, instance=INSTANCE):
    """What is known, by moment: so many of each broker."""
    moments = {at for told in book._told.values() for at in told}
    found = {
        at: [RequestCounts.from_text(each).requests for each in book.texts(instance, at)] for at in sorted(moments)
    }
    return {at: counts for at, counts in found.items() if counts}


@pytest.fixture
def book():
    return RequestBook()


def test_a_window_is_what_each_broker_told_and_what_is_told_again_counts_once(book):
    for _ in range(2):
        book.take(1, {INSTANCE: {NOON: text(3), NOON + 10: text(1)}})
        book.take(2, {INSTANCE: {NOON: text(4)}, OTHER: {NOON: text(9)}})
    assert requests(book) == {NOON: [3, 4], NOON + 10: [1]}
    assert requests(book, OTHER) == {NOON: [9]}
    assert (book.texts(INSTANCE, NOON + 20), book.texts("ins-cccccccc", NOON)) == ([], [])


def test_a_minute_is_kept_and_a_clock_that_is_ahead_drives_out_its_own_brokers_windows_only(book):
    for number in range(KEPT + 3):
        book.take(1, {INSTANCE: {NOON + 10 * number: text(1)}})
    book.take(2, {INSTANCE: {NOON + 36_000: text(1)}})
    assert list(requests(book)) == [NOON + 10 * number for number in range(3, KEPT + 3)] + [NOON + 36_000]


def test_windows_of_before_a_clock_was_set_back_drive_out_none_that_follow(book):
    for number in range(KEPT):
        book.take(1, {INSTANCE: {NOON + 3600 + 10 * number: text(1)}})
    book.take(2, {INSTANCE: {NOON + 3600: text(5)}})
    book.take(1, {INSTANCE: {NOON: text(1)}})
    book.take(1, {INSTANCE: {NOON + 10: text(2)}})
    assert requests(book) == {NOON: [1], NOON + 10: [2], NOON + 3600: [5]}


def test_all_of_a_minute_may_be_told_at_once_and_in_any_order(book):
    windows = {NOON + 10 * number: text(number + 1) for number in range(KEPT)}
    book.take(1, {INSTANCE: dict(reversed(windows.items()))})
    book.take(1, {OTHER: {NOON: text(9)}})
    assert requests(book) == {NOON + 10 * number: [number + 1] for number in range(KEPT)}


@pytest.fixture
def master():
    """A service whose first lease is over, and its clock."""
    clock = [0.0]
    service = Service(period_ms=1000, lease_ms=10_000, now=lambda: clock[0])
    service.set_specs({INSTANCE: spec(), OTHER: spec(OTHER)})
    service.won(6)
    clock[0] = 100.0
    return service, clock


def shown(service, at=NOON):
    ((status, body),) = ask(service, get(f"/v1/instances/{INSTANCE},{OTHER}/requests/{at}"))
    assert status == 200
    return json.loads(body)


def test_the_control_plane_reads_a_window_of_several_instances_at_once_and_unread(master):
    service, _ = master
    windows = {INSTANCE: {NOON: text(3), NOON + 10: "{"}}
    service.report(replace(report(1), requests=windows, requests_until=NOON + 20))
    service.report(replace(report(2), requests={INSTANCE: {NOON + 10: text(1)}}, requests_until=NOON + 10))
    assert shown(service, NOON + 10) == {
        "learning": False,
        "until": {"1": NOON + 20, "2": NOON + 10},
        "instances": [{"instance": INSTANCE, "texts": ["{", text(1)], "brokers": [1, 2]}],
    }
    service.lost()
    assert ask(service, get(f"/v1/instances/{INSTANCE}/requests/0"))[0][0] == 503


def test_of_a_broker_that_is_registered_and_not_heard_of_it_is_not_known_what_it_was_asked(master):
    service, _ = master
    service.report(replace(report(1), requests_until=NOON + 10))
    assert shown(service)["until"] == {"1": NOON + 10}
    service.set_brokers([1, 2])
    assert shown(service)["until"] == {"1": NOON + 10, "2": None}
    service.report(report(2))
    assert shown(service)["until"] == {"1": NOON + 10, "2": None}, "it is of an earlier release"
    service.report(replace(report(2, sequence=2), requests_until=NOON + 10))
    assert shown(service)["until"] == {"1": NOON + 10, "2": NOON + 10}


def test_what_a_broker_that_falls_silent_said_stays_until_it_is_gone(master):
    service, clock = master
    service.set_brokers([1, 2])
    for broker in (1, 2):
        service.report(replace(report(broker), requests={INSTANCE: {NOON: text(1)}}, requests_until=NOON + 10))
    clock[0] += 5
    service.report(replace(report(1, sequence=2), requests_until=NOON + 20))
    service.tick()
    assert shown(service)["until"] == {"1": NOON + 20, "2": NOON + 10}
    service.set_brokers([1])
    service.tick()
    assert shown(service)["until"] == {"1": NOON + 20}
    assert len(shown(service)["instances"][0]["texts"]) == 2, "what it told is true"


def test_a_connection_begins_with_all_windows_and_goes_on_with_new_ones():
    door, asked = Door(), []

    def told(*, is_whole):
        asked.append(is_whole)
        yield
        return Told({INSTANCE: {NOON: text(len(asked))}}, NOON + 10 * len(asked))

    agent = Agent(broker=1, boot="b", now=0.0)
    agent.configure(INSTANCE, 1000, 1000, 0.0)
    facts = {INSTANCE: InstanceFacts(1, 1, 0, 0)}
    link = MasterLink(door, agent, broker=1, secret="s", facts=facts.items, log=lambda line: None, requests=told)
    link.start()
    link.set_master("127.0.0.1", 5, 1)
    door.conns[0].on_open()
    door.run(0.05)
    door.conns[0].answer()
    door.run(1.05)
    documents = [each for each in Decoder().feed(door.conns[0].sent) if each["type"] == "report"]
    assert asked == [True, False]
    assert [each["requests"][INSTANCE] for each in documents] == [{str(NOON): text(1)}, {str(NOON): text(2)}]
    assert [each["requests_until"] for each in documents] == [NOON + 10, NOON + 20]
