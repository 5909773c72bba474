"""What flowed is counted to the byte where brokers say it, and sampled where they do not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.history.exposition import exposition
from controlplane.history.models import Minute, RequestMinute, RequestSample, RolledUp, Sample
from controlplane.history.requests import sampling
from controlplane.history.requests.reading import totals_of
from controlplane.history.selectors import history_get, metrics_named
from quota.contracts.requests import RequestCounts

from .conftest import MIB, NOON, counts_of, keep_requests, move, rolled, sample

WITHOUT = counts_of(1)


def carried(produced, consumed=0, *, requests=1):
    """A window as a broker tells it."""
    found = counts_of(requests) if requests else RequestCounts()
    found.produced_bytes, found.consumed_bytes, found.carried_windows = produced, consumed, 1
    return found


@pytest.fixture
def sampled(instance):
    """One MiB/s produced, by samples of one second in ten, for a minute."""
    Sample.objects.bulk_create(Sample(**sample(NOON + 10 * step, instance.id)) for step in range(6))


def produced(instance, clock, seconds=60, step_s=10, before_s=0):
    """Averages and maxima."""
    start = datetime.fromtimestamp(NOON, UTC)
    found = history_get(
        instance=instance,
        start=start - timedelta(seconds=before_s),
        end=start + timedelta(seconds=seconds),
        step_s=step_s,
        metrics=metrics_named("produce_bytes_per_s"),
        clock=clock,
    )
    (series,) = found.series
    return series.values, series.maxima


def test_the_average_of_a_step_is_what_was_counted_and_its_maximum_no_less(instance, sampled, at_noon):
    move(at_noon, NOON + 90)
    keep_requests(instance, {NOON: carried(50 * MIB), NOON + 10: carried(5 * MIB)}, known_to=NOON + 30)
    values, maxima = produced(instance, at_noon)
    assert values == [
        5 * MIB,
        MIB // 2,
        0,
        MIB,
        MIB,
        MIB,
    ]  # nobody asked anything in the third; the others are not known yet
    assert maxima == [5 * MIB, MIB, MIB, MIB, MIB, MIB]


def test_it_is_known_where_no_master_was_asked(instance, at_noon):
    move(at_noon, NOON + 90)
    keep_requests(instance, {NOON: carried(50 * MIB)}, known_to=NOON + 30)
    assert produced(instance, at_noon) == ([5 * MIB, *[None] * 5], [5 * MIB, *[None] * 5])


def test_a_window_that_a_broker_of_an_earlier_release_had_part_in_is_sampled(instance, sampled, at_noon):
    move(at_noon, NOON + 90)
    keep_requests(instance, {NOON: WITHOUT, NOON + 10: carried(5 * MIB)}, known_to=NOON + 20)
    assert produced(instance, at_noon)[0][:2] == [MIB, MIB // 2]


def test_a_longer_step_is_exact_where_all_of_its_windows_are(instance, sampled, at_noon):
    move(at_noon, NOON + 90)
    windows = {NOON + 10 * step: carried(step * MIB) for step in range(6)}
    keep_requests(instance, windows, known_to=NOON + 60)
    assert produced(instance, at_noon, step_s=60)[0] == [15 * MIB // 60]
    RequestSample.objects.filter(at=NOON).update(counts=WITHOUT.to_text())
    assert produced(instance, at_noon, step_s=60)[0] == [MIB]


def test_a_minute_is_known_when_its_samples_have_been_added_up_as_well(instance, at_noon):
    """Until then nobody knows of the seconds without requests: with one busy window the minute would be taken for ten of them."""
    move(at_noon, NOON + 130)
    keep_requests(instance, {}, known_to=NOON + 120)
    RequestMinute.objects.create(instance=instance.pk, at=NOON, windows=1, counts=carried(60 * MIB).to_text())
    RolledUp.objects.create(step_s=60, until=NOON)
    assert produced(instance, at_noon, step_s=60, before_s=7200)[0][-1] is None
    rolled(Minute, NOON, instance.id).save()
    RolledUp.objects.update(until=NOON + 60)
    assert produced(instance, at_noon, step_s=60, before_s=7200)[0][-1] == MIB


def summed(instance, texts):
    """Of a window, as its row has it."""
    return sampling._row(instance.id, NOON, sampling._legible(instance.id, texts)).counts


def test_sums_of_brokers_and_minutes_keep_every_byte(instance, flow_master, at_noon):
    texts = [carried(1000, 7), carried(500, 3, requests=0)]
    flow_master.windows = {
        instance.id: {NOON + 10 * step: RequestCounts.joined([texts[0].to_text()]).to_text() for step in range(6)}
    }
    move(at_noon, NOON + 20)
    assert summed(instance, [each.to_text() for each in texts]) == carried(1500, 10).to_text()
    assert RequestCounts.from_text(summed(instance, [texts[0].to_text(), WITHOUT.to_text()])).carried_windows == 0
    sampling.sample(clock=at_noon)
    move(at_noon, NOON + 90)
    sampling.sample(clock=at_noon)
    (minute,) = RequestMinute.objects.filter(at=NOON)
    found = RequestCounts.from_text(minute.counts)
    assert (found.produced_bytes, found.consumed_bytes, found.carried_windows, minute.windows) == (6000, 42, 6, 6)


def test_prometheus_has_counters_of_them():
    text = exposition("ins-k3v9x2qa", {}, [], is_known=False, requests=carried(1500, 10))
    assert 'sluice_produced_bytes_total{instance_id="ins-k3v9x2qa"} 1500\n' in text
    assert 'sluice_consumed_bytes_total{instance_id="ins-k3v9x2qa"} 10\n' in text
    assert "# TYPE sluice_produced_bytes_total counter\n" in text
    assert "bytes_total" not in exposition("ins-k3v9x2qa", {}, [], is_known=False, requests=WITHOUT)


def test_the_counters_are_left_out_while_a_broker_of_an_earlier_release_has_part_in_them(instance):
    """Sums that stand still would be read as no flow."""
    keep_requests(instance, {NOON: carried(1000), NOON + 10: WITHOUT})
    assert totals_of(instance.id).carried_windows == 0
    keep_requests(instance, {NOON + 20: carried(500)})
    found = totals_of(instance.id)
    assert (found.produced_bytes, found.carried_windows) == (1500, 2)


def test_a_window_with_what_a_later_release_tells_is_taken_like_the_others(instance):
    later = json.loads(carried(500).to_text()) | {"_later": [1, {"anything": 2}]}
    texts = [carried(1000, 7).to_text(), json.dumps(later)]
    assert summed(instance, texts) == carried(1500, 7, requests=2).to_text()


def test_what_a_control_plane_of_an_earlier_release_has_added_up_is_sampled(instance, sampled, at_noon):
    """It takes what was carried for an API without requests, and writes down no more of it than its name."""
    move(at_noon, NOON + 90)
    keep_requests(instance, {NOON: carried(50 * MIB), NOON + 10: carried(5 * MIB)}, known_to=NOON + 20)
    row = RequestSample.objects.get(at=NOON)
    row.counts = json.dumps(json.loads(WITHOUT.to_text()) | {"_carried": [0, [], [], [], [], [], {}]})
    row.save()
    assert produced(instance, at_noon)[0][:2] == [MIB, MIB // 2]
