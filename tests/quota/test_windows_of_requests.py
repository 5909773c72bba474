"""The master keeps what brokers said of requests for a minute, adds it up when asked, and counts nothing twice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quota.agent.agent import Agent, InstanceFacts
from quota.agent.transport import MasterLink
from quota.contracts.requests import ApiCounts, RequestCounts
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


def requests(windows):
    return {at: RequestCounts.from_text(each).requests for at, each in windows.items()}


@pytest.fixture
def book():
    return RequestBook()


def test_a_window_is_the_sum_over_brokers_and_what_is_told_again_counts_once(book):
    for _ in range(2):
        book.take(1, {INSTANCE: {NOON: text(3, A=1)}})
        book.take(2, {INSTANCE: {NOON: text(4, A=2)}, OTHER: {NOON: text(9)}})
    found = book.since(INSTANCE, 0)
    assert requests(found) == {NOON: 7}
    assert RequestCounts.from_text(found[NOON]).errors == {"A": 3}


def test_only_later_windows_are_told(book):
    book.take(1, {INSTANCE: {NOON: text(1), NOON + 10: text(2)}})
    assert requests(book.since(INSTANCE, NOON)) == {NOON + 10: 2}
    assert book.since(INSTANCE, NOON + 10) == {}
    assert book.since(OTHER, 0) == {}


def test_a_minute_is_kept_and_a_clock_that_is_ahead_drives_out_its_own_brokers_windows_only(book):
    for number in range(KEPT + 3):
        book.take(1, {INSTANCE: {NOON + 10 * number: text(1)}})
    book.take(2, {INSTANCE: {NOON + 36_000: text(1)}})
    assert sorted(book.since(INSTANCE, 0)) == [NOON + 10 * number for number in range(3, KEPT + 3)] + [NOON + 36_000]


def test_windows_of_before_a_clock_was_set_back_drive_out_none_that_follow(book):
    for number in range(KEPT):
        book.take(1, {INSTANCE: {NOON + 3600 + 10 * number: text(1)}})
    book.take(2, {INSTANCE: {NOON + 3600: text(5)}})
    book.take(1, {INSTANCE: {NOON: text(1)}})
    book.take(1, {INSTANCE: {NOON + 10: text(2)}})
    assert requests(book.since(INSTANCE, 0)) == {NOON: 1, NOON + 10: 2, NOON + 3600: 5}


def test_all_of_a_minute_may_be_told_at_once_and_in_any_order(book):
    windows = {NOON + 10 * number: text(number + 1) for number in range(KEPT)}
    book.take(1, {INSTANCE: dict(reversed(windows.items()))})
    book.take(1, {OTHER: {NOON: text(9)}})
    assert requests(book.since(INSTANCE, 0)) == {NOON + 10 * number: number + 1 for number in range(KEPT)}


def test_a_text_that_nobody_understands_does_not_cost_the_others_theirs(book):
    book.take(1, {INSTANCE: {NOON: "{"}})
    book.take(2, {INSTANCE: {NOON: text(4)}})
    assert requests(book.since(INSTANCE, 0)) == {NOON: 4}


def test_the_control_plane_reads_windows_of_several_instances_at_once():
    clock = [0.0]
    service = Service(period_ms=1000, lease_ms=10_000, now=lambda: clock[0])
    service.set_specs({INSTANCE: spec(), OTHER: spec(OTHER)})
    service.won(6)
    clock[0] = 100.0
    service.report(replace(report(1), requests={INSTANCE: {NOON: text(3), NOON + 10: text(5)}}))
    service.report(replace(report(2), requests={INSTANCE: {NOON + 10: text(1)}}))
    ((status, body),) = ask(service, get(f"/v1/instances/{INSTANCE},{OTHER}/requests/{NOON}"))
    document = json.loads(body)
    assert (status, document["learning"], document["brokers"]) == (200, False, [1, 2])
    (found,) = document["instances"]
    assert found["instance"] == INSTANCE
    assert requests(dict(found["windows"])) == {NOON + 10: 6}
    service.lost()
    assert ask(service, get(f"/v1/instances/{INSTANCE}/requests/0"))[0][0] == 503


def test_a_connection_begins_with_all_windows_and_goes_on_with_new_ones():
    door, asked = Door(), []

    def told(*, is_whole):
        asked.append(is_whole)
        yield
        return {INSTANCE: {NOON: text(len(asked))}}

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
