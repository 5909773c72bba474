"""How brokers' loops spent their time: an optional member of reports, kept by the master for two minutes."""

from __future__ import annotations

import json

import pytest

from quota.contracts.instance import ContractError
from quota.contracts.loop_time import MOST_ROWS, MOST_WINDOWS, LoopUse, LoopWindow, documents_of, times_of
from quota.contracts.report import FlowReport
from quota.core.ledger import Ledger
from quota.core.loop_book import KEPT, LoopBook

from .test_contracts import INSTANCE, REPORT

NOON = 1_740_830_400
WINDOW = LoopWindow(10_003_211, 7_210_000, {INSTANCE: LoopUse(410_000, 38_000, 0)})


def told(times):
    loop = REPORT.loop._replace(times=times)
    return json.loads(
        FlowReport(**{**{name: getattr(REPORT, name) for name in FlowReport.__slots__}, "loop": loop}).to_json()
    )


def test_what_is_told_is_read_as_it_was():
    document = told({NOON: WINDOW})
    assert document["loop"]["times"] == {str(NOON): [10_003_211, 7_210_000, {INSTANCE: [410_000, 38_000, 0]}]}
    assert FlowReport.from_document(document).loop.times == {NOON: WINDOW}


def test_where_no_window_has_ended_reports_are_as_before():
    assert "times" not in told({})["loop"]
    assert FlowReport.from_document(told({})).loop.times == {}


@pytest.mark.parametrize(
    "times",
    [
        {"noon": [1, 1, {}]},
        {"-10": [1, 1, {}]},
        {str(NOON): [1, 1]},
        {str(NOON): [-1, 1, {}]},
        {str(NOON): [1, 1.5, {}]},
        {str(NOON): [1, True, {}]},
        {str(NOON): [1, 1, []]},
        {str(NOON): [1, 1, {INSTANCE: [1, 2]}]},
        {str(NOON): [1, 1, {INSTANCE: [1, 2, "3"]}]},
        {str(NOON): [1, 2**60, {}]},
        {str(NOON + 10 * number): [1, 1, {}] for number in range(MOST_WINDOWS + 1)},
        {str(NOON): [1, 1, {f"ins-{number}": [1, 1, 1] for number in range(MOST_ROWS + 1)}]},
        [],
    ],
)
def test_what_is_no_window_is_refused(times):
    document = told({})
    document["loop"]["times"] = times
    with pytest.raises(ContractError, match="flow report"):
        FlowReport.from_document(document)


def test_the_master_keeps_the_newest_of_each_broker_and_hands_out_a_minute():
    book = LoopBook()
    for number in range(KEPT + 4):
        book.take(1, {NOON + 10 * number: WINDOW})
    book.take(2, {NOON + 100_000: WINDOW})  # its clock is ahead, and drives out nobody else's
    assert book.windows(1, NOON, NOON + 40) == {}
    assert book.windows(3, NOON, NOON + 10**6) == {}
    minute = book.windows(1, NOON + 60, NOON + 120)
    assert list(minute) == [NOON + 60 + 10 * number for number in range(6)]
    assert times_of(json.loads(json.dumps(documents_of(minute)))) == minute


def test_a_clock_that_was_ahead_and_is_set_back_does_not_make_its_broker_dark():
    book = LoopBook()
    for number in range(KEPT):
        book.take(1, {NOON + 3600 + 10 * number: WINDOW})
    book.take(1, {NOON: WINDOW})
    assert list(book.windows(1, NOON, NOON + 60)) == [NOON]
    for number in range(1, 6):
        book.take(1, {NOON + 10 * number: WINDOW})
    assert len(book.windows(1, NOON, NOON + 60)) == 6


def test_brokers_that_are_gone_are_forgotten():
    ledger = Ledger(epoch=1, now=0.0, period_ms=1_000, lease_ms=5_000)
    ledger.loop_times.take(1, {NOON: WINDOW})
    ledger.loop_times.take(2, {NOON: WINDOW})
    ledger.set_registered(None)  # ZooKeeper does not say it
    ledger.set_registered([])
    assert ledger.loop_times.windows(1, NOON, NOON + 60)
    ledger.set_registered([2])
    assert ledger.loop_times.windows(1, NOON, NOON + 60) == {}
    assert ledger.loop_times.windows(2, NOON, NOON + 60)
