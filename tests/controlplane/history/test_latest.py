"""The newest figures that are known: of many instances at once, never of what is not fresh, never another's."""

from __future__ import annotations

import pytest

from controlplane.history.latest import Latest, LatestLag, lags_get, latest_get
from controlplane.history.metrics import COUNTED, METRICS

from .conftest import MIB, NOON, counts_of, keep, keep_gaps, keep_requests, keep_waits, sample
from .test_lag_api import lag_of

pytestmark = pytest.mark.django_db
ONE, TWO = "ins-00000001", "ins-00000002"


def test_each_has_its_newest_sample():
    keep([sample(NOON, ONE, connections=1), sample(NOON + 10, ONE, connections=2), sample(NOON, TWO, connections=3)])
    found = latest_get([ONE, TWO, "ins-00000003"], NOON + 15)
    assert [found[name].at for name in (ONE, TWO)] == [NOON + 10, NOON]
    assert [found[name].values["connections"] for name in (ONE, TWO)] == [2, 3]
    assert found["ins-00000003"] == Latest()


def test_a_sample_that_is_not_fresh_or_of_a_clock_that_was_ahead_is_none():
    keep([sample(NOON, ONE), sample(NOON + 3600, ONE)])
    assert latest_get([ONE], NOON + 39, fresh_s=30)[ONE].at == NOON
    assert latest_get([ONE], NOON + 40, fresh_s=30)[ONE].at is None
    assert "connections" not in latest_get([ONE], NOON + 40, fresh_s=30)[ONE].values


def test_unlimited_is_there_as_none_and_what_is_not_known_is_absent():
    keep([sample(NOON, ONE, produce_limit_bytes_per_s=None)])
    values = latest_get([ONE], NOON + 5)[ONE].values
    assert values["produce_limit_bytes_per_s"] is None
    assert values["consume_limit_bytes_per_s"] == 5 * MIB
    assert "produce_throttled_ms_per_s" not in values, "it has not been told yet"
    keep([sample(NOON + 10 * number, ONE) for number in range(1, 5)])
    assert set(latest_get([ONE], NOON + 40)[ONE].values) == set(METRICS) - set(COUNTED)


def test_throttled_time_is_of_the_last_minute_that_is_known():
    keep([sample(NOON + 10 * number, name) for number in range(12) for name in (ONE, TWO)])
    keep_waits(
        [
            (ONE, "produce", 1000 * (NOON + 30), 1000 * (NOON + 60), 6_000),
            (ONE, "produce", 1000 * (NOON + 90), 1000 * (NOON + 100), 10_000),  # may not be all that there will be
            (TWO, "consume", 1000 * (NOON + 20), 1000 * (NOON + 30), 10_000),  # before that minute
        ]
    )
    found = latest_get([ONE, TWO], NOON + 120, waited_s=60)
    assert found[ONE].values["produce_throttled_ms_per_s"] == 100.0
    assert found[ONE].values["consume_throttled_ms_per_s"] == 0.0
    assert found[TWO].values["consume_throttled_ms_per_s"] == 0.0


def test_of_a_minute_of_which_half_is_known_throttled_time_is_that_halfs():
    keep([sample(NOON + at, ONE) for at in (60, 70, 80)])
    keep_waits([(ONE, "produce", 1000 * (NOON + 60), 1000 * (NOON + 70), 9_000)])
    found = latest_get([ONE], NOON + 120, waited_s=60)
    assert found[ONE].values["produce_throttled_ms_per_s"] == 300.0


def test_the_number_of_questions_does_not_depend_on_the_number_of_instances(django_assert_num_queries):
    names = [f"ins-{number:08}" for number in range(50)]
    keep([sample(NOON, name) for name in names])
    for asked in (names[:1], names):
        with django_assert_num_queries(2):
            assert len(latest_get(asked, NOON + 10)) == len(asked)


def test_requests_are_those_of_the_last_seconds_that_are_known(instance, alice):
    at = {NOON + 10 * number: counts_of(number + 1, took_us=2_000) for number in range(6)}
    keep_requests(instance, at, known_to=NOON + 60)
    found = latest_get([instance.id, TWO], NOON + 75, waited_s=20, with_requests=True)
    assert found[instance.id].values["requests_per_s"] == (5 + 6) / 20
    assert found[instance.id].values["fetch_p99_ms"] is None
    assert found[instance.id].values["produce_p99_ms"] == pytest.approx(2.0, rel=0.3)
    assert "requests_per_s" not in found[TWO].values
    stale = latest_get([instance.id], NOON + 200, waited_s=20, with_requests=True)
    assert "requests_per_s" not in stale[instance.id].values


@pytest.mark.parametrize(("gap", "is_known"), [((30, 40), True), ((30, 50), False), ((50, 60), False)])
def test_requests_of_seconds_of_which_some_are_not_known_are_absent(instance, gap, is_known):
    keep_requests(instance, {NOON: counts_of(1)}, known_to=NOON + 60)
    keep_gaps(instance, [NOON + at for at in gap])
    values = latest_get([instance.id], NOON + 75, waited_s=20, with_requests=True)[instance.id].values
    assert ("requests_per_s" in values) is is_known


def test_an_instance_of_which_nothing_is_asked_has_zero_requests(instance):
    keep_requests(instance, {}, known_to=NOON + 60)
    values = latest_get([instance.id], NOON + 70, with_requests=True)[instance.id].values
    assert (values["requests_per_s"], values["errors_per_s"], values["produce_p99_ms"]) == (0, 0, None)


def test_a_group_has_its_last_minute_and_nobody_elses():
    lag_of(ONE, "billing", NOON - 60, 9, 90)
    lag_of(ONE, "billing", NOON, 5, 30, 900)
    lag_of(TWO, "billing", NOON, 77, None)
    lag_of(ONE, "gone", NOON - 600, 3, 1)
    wanted = [(ONE, "billing"), (TWO, "billing"), (ONE, "gone"), (ONE, "never"), (TWO, "gone")]
    assert lags_get(wanted, NOON + 30) == {
        (ONE, "billing"): LatestLag(5, 30.0, 900),
        (TWO, "billing"): LatestLag(77, None),
    }
    assert lags_get([], NOON) == {}
