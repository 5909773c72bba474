"""What an instance's requests come to on a broker is taken once, and an idle one has nothing."""

from __future__ import annotations

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.tenancy.request_figures import API_NAMES, BOUNDS_S, Delays, RequestFigures, api_name
from quota.contracts.requests import MOST_TEXT, RequestCounts

NOW_S = 1_000.0


def delayed(key, took_s, waited_s=0.0, told_s=0.0):
    made = Delays(key, NOW_S - took_s)
    made.waited_s, made.told_s = waited_s, told_s
    return made


def test_what_is_counted_is_taken_once():
    figures = RequestFigures()
    assert figures.take() is None
    figures.answered(ApiKey.METADATA, 0.001)
    figures.answered(ApiKey.METADATA, 0.003)
    taken = figures.take()
    assert list(taken.apis) == ["Metadata"]
    assert (taken.of("Metadata").requests, taken.of("Metadata").times("total").sum_us) == (2, 4_000)
    assert figures.take() is None


def test_several_that_came_and_went_together_are_counted_in_one_sum():
    figures = RequestFigures()
    figures.answered(ApiKey.PRODUCE, 0.002, 20)
    figures.answered(ApiKey.PRODUCE, 0.5)
    times = figures.take().of("Produce").times("total")
    assert (times.count, times.sum_us) == (21, 540_000)
    assert times.percentile_us(0.9) <= 2_000


def test_time_that_was_waited_for_others_is_told_apart_from_the_loops_and_from_throttling():
    figures = RequestFigures()
    figures.delayed(delayed(ApiKey.PRODUCE, 0.010, waited_s=0.008), NOW_S)
    figures.delayed(delayed(ApiKey.PRODUCE, 0.001, told_s=0.5), NOW_S)
    figures.answered(ApiKey.PRODUCE, 0.001)
    api = figures.take().of("Produce")
    sums = {phase: api.times(phase).sum_us for phase in ("total", "local", "remote", "throttle")}
    assert sums == {"total": 12_000, "local": 4_000, "remote": 8_000, "throttle": 500_000}
    assert {phase: api.times(phase).count for phase in sums} == dict.fromkeys(sums, 3)


def test_nobody_waits_longer_than_the_whole():
    figures = RequestFigures()
    figures.delayed(delayed(ApiKey.FETCH, 0.001, waited_s=0.002), NOW_S)
    assert figures.take().of("Fetch").times("local").sum_us == 0


def test_requests_without_an_answer_are_counted_and_have_no_time():
    figures = RequestFigures()
    figures.unanswered(ApiKey.PRODUCE)
    api = figures.take().of("Produce")
    assert (api.requests, api.times("total").count) == (1, 0)


def test_errors_have_kafkas_names_and_no_error_is_none():
    figures = RequestFigures()
    figures.refused(ApiKey.FETCH, [0, 6, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1])
    taken = figures.take()
    assert taken.errors == {"NOT_LEADER_OR_FOLLOWER": 2, "UNKNOWN_SERVER_ERROR": 1}
    assert RequestCounts.from_text(taken.to_text()).errors == taken.errors


def test_every_api_that_is_served_has_a_name_as_kafkas_metrics_have_it():
    assert {api_name(key) for key in (ApiKey.PRODUCE, ApiKey.LIST_OFFSETS, ApiKey.ADD_PARTITIONS_TO_TXN)} == {
        "Produce", "ListOffsets", "AddPartitionsToTxn",
    }  # fmt: skip
    assert HANDLERS.keys() <= API_NAMES.keys()
    assert len(set(API_NAMES.values())) == len(API_NAMES)


def test_a_window_with_something_in_all_buckets_of_all_apis_can_be_told():
    figures = RequestFigures()
    for key in (key for key, row in HANDLERS.items() if row.tenant):
        for seconds in BOUNDS_S:
            figures.answered(key, seconds, 12_345)
            figures.delayed(delayed(key, seconds, waited_s=seconds / 2, told_s=seconds), NOW_S)
    assert len(figures.take().to_text()) < MOST_TEXT / 2
