"""The history in a metrics store: the same answers as from the database, and nothing lost while the store is away."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clusters.models import PhysicalCluster
from controlplane.core import clock as clocks
from controlplane.history import api, services
from controlplane.history.models import (
    Minute,
    RequestDay,
    RequestMinute,
    RequestSample,
    StoredSpan,
    StoreWriter,
)
from controlplane.history.requests import sampling
from controlplane.history.requests.topics import topic_moved_get
from controlplane.history.selectors import moment_at
from controlplane.history.store import client, series, wire, writing
from controlplane.history.store.spans import windows_of
from quota.contracts.requests import RequestCounts
from tests.controlplane.console.conftest import at_alice  # noqa: F401  # a fixture
from tests.controlplane.test_instances_api import URL

from .conftest import NOON, counts_of, move
from .store_world import ROWS, alike, world  # noqa: F401  # a fixture
from .stores import FakeStore, decoded

HOUR = 3600


@pytest.fixture
def fake():
    found = FakeStore()
    yield found
    found.stop()
    client.AWAY.forget()


@pytest.fixture
def stored(world, fake):  # noqa: F811
    """An hour without a store, and three with it, of which the database has forgotten all that was written."""
    world.passes(HOUR)
    world.stored_in(fake.url)
    assert world.writes() == 0, "it begins with what comes next"
    for _ in range(4):
        world.passes(2700)
        assert world.writes() > 0
    world.stored_in("")
    world.expected = world.answers()
    world.stored_in(fake.url)
    world.forgets()
    return world


def test_both_stores_answer_the_same(stored, fake):
    assert fake.writes
    answers = stored.answers()
    assert answers == stored.expected
    assert alike(answers, stored.expected)
    assert all(each["complete"] for each in answers)
    assert fake.queries
    figures = [value for _, values, _ in answers[0]["series"] for value in values if value is not None]
    assert len(figures) > 1000, "they compare something"
    stored.stored_in("")
    assert stored.answers() != stored.expected, "the database alone does not have it"


def test_what_was_asked_of_each_broker_is_the_same(world, fake, brokers, monkeypatch):  # noqa: F811
    monkeypatch.setattr(clocks.SystemClock, "now", lambda _self: world.clock.now())
    world.stored_in(fake.url)
    world.passes(1800)
    world.writes()
    world.passes(2 * HOUR)
    world.writes()
    world.stored_in("")
    _, expected = world.of_brokers()
    assert any(value is not None for _, values in expected for value in values)
    world.stored_in(fake.url)
    world.forgets()
    assert world.of_brokers()[1] == expected


def test_the_last_hour_in_steps_of_ten_seconds_is_the_databases(stored, fake):
    fake.answers = 503
    now = int(stored.clock.now().timestamp())
    assert stored._answer(now - HOUR + 60, now, 10)["complete"]
    assert fake.queries == []


def test_rows_stay_until_the_store_answers_and_are_then_written_in_order(world, fake):  # noqa: F811
    world.passes(600)
    world.stored_in(fake.url)
    world.writes()
    world.passes(HOUR)
    world.writes()
    written = len(fake.writes)
    fake.answers = 503
    world.passes(HOUR)
    assert world.writes() == 0
    assert (StoreWriter.objects.get().until, len(fake.writes)) == (0, written), "another worker may try at once"
    services.purge(clock=world.clock)
    fake.answers = None
    assert world.writes() > 60
    moments = [
        samples[0][0] for request in fake.writes for labels, samples in request[:1] if ("kind", "flow") in labels
    ]
    minutes = [at for at in moments if at % 60_000 == 59_000 and at % 3_600_000 != 3_599_000]
    assert minutes == sorted(minutes)
    world.stored_in("")
    expected = world.answers()
    world.stored_in(fake.url)
    world.forgets()
    assert world.answers() == expected


def test_a_lost_answer_doubles_nothing(world, fake):  # noqa: F811
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    world.passes(1200)
    fake.loses_answers = True
    world.writes()
    assert world.writes() > 0
    world.stored_in("")
    expected = world.answers()
    world.stored_in(fake.url)
    world.forgets()
    assert world.answers() == expected


def test_what_the_store_refuses_stays_in_the_database_and_is_read_from_there(world, fake, caplog):  # noqa: F811
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    world.passes(600)
    world.writes()
    fake.answers = 400
    world.passes(600)
    world.writes()
    assert "refuses the minutes" in caplog.text
    fake.answers = None
    world.passes(HOUR)
    world.writes()
    assert StoredSpan.objects.filter(name="minutes").count() == 2
    world.stored_in("")
    expected = world.answers()
    world.stored_in(fake.url)
    world.forgets()
    assert world.answers() == expected


def test_while_the_store_is_away_what_the_database_has_is_shown_and_that_it_is_not_all(stored, fake):
    fake.answers = 503
    answers = stored.answers()
    assert not any(each["complete"] for each in answers)
    now = int(stored.clock.now().timestamp())
    _, figures, _ = answers[0]["series"][0]
    assert figures[60] is None
    assert figures[-2] is not None, "not written yet, so the database has it"
    assert stored._answer(now - 200, now, 60)["complete"], "of so short a time it has all"


def test_a_store_that_is_away_is_asked_once_for_a_page(stored, fake, monkeypatch):
    monkeypatch.setattr(client, "PAUSE_S", 100.0)
    fake.answers = 503
    fake.seen.clear()
    client.AWAY.forget()
    now = int(stored.clock.now().timestamp())
    stored._answer(now - 4 * HOUR, now, 60)
    assert len(fake.seen) == 1


@pytest.fixture
def purged(world, fake):  # noqa: F811
    """Ten minutes without a store, and six hours with it, of which the worker has removed all that it removes."""
    world.passes(600)
    world.stored_in(fake.url)
    world.writes()
    for _ in range(6):
        world.passes(HOUR)
        world.writes()
    services.purge(clock=world.clock)
    assert not RequestMinute.objects.filter(at__gte=world.began + 600, at__lt=world.at - 3 * HOUR).exists()
    return world


@pytest.mark.parametrize("now_stored_in", ["away", "", "http://127.0.0.1:9"])
def test_what_only_the_store_has_is_not_known_and_never_zero(purged, fake, now_stored_in):
    """It does not answer, METRICS_URL was taken away, or is another: minutes of samples are here, those of requests are not."""
    if now_stored_in == "away":
        fake.answers = 503
    else:
        purged.stored_in(now_stored_in)
    now = int(purged.clock.now().timestamp())
    answer = purged._answer(now - 5 * HOUR, now, 60)
    assert not answer["complete"]
    rates = [values for name, values, _ in answer["series"] if name == "requests_per_s"]
    for values in rates:
        assert set(values[:60]) == {None}
        assert any(values[-60:]), "the database has the last two hours"
    flow = next(values for name, values, _ in answer["series"] if name == "produce_bytes_per_s")
    assert all(flow[5:60]), "what was sampled is here, and is not 0"
    assert answer["known"][:60] == [None] * 60


def test_a_day_of_which_the_samples_are_in_the_store_alone_is_as_long_as_it_was(world, fake):  # noqa: F811
    """Rows of days are here; how much was sampled the store knows."""
    day = 86_400
    RequestDay.objects.create(
        instance=world.instance.pk,
        at=world.began - world.began % day - day,
        windows=60,
        counts=counts_of(8640).to_text(),
    )
    StoredSpan.objects.create(
        store="gone", name="hours", at=world.began - 3 * day, until=world.began, purged=world.began
    )
    world.passes(600)
    start = world.began - world.began % day - day
    answer = world._answer(start - 20 * day, start + day, day)
    seconds, _ = answer["known"][-1]
    assert seconds == day
    assert not answer["complete"]


def test_requests_of_a_cluster_that_stopped_are_written_to_their_last_window(world, fake):  # noqa: F811
    """Nobody adds up its last minute until it is clear that it tells no more: the store must not have gone on without it."""
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    last = world.at
    RequestSample.objects.create(instance=world.instance.pk, at=last, windows=1, counts=counts_of(5).to_text())
    sampling.RequestMark.objects.filter(name=world.mark).update(taken=last + 10)
    move(world.clock, last + writing.SETTLED_S + 600)
    world.writes()
    assert StoredSpan.objects.get(name="request minutes").until > last
    written = {dict(labels)["kind"] for labels, found in fake.series.items() if (last + 59) * 1000 in found}
    assert "requests" in written


def test_a_silent_store_is_asked_by_one_thread_at_a_time(monkeypatch):
    monkeypatch.setattr(client, "PAUSE_S", 0.0)
    monkeypatch.setattr(client, "_pause_s", lambda times: 0.0 if times == 1 else 60.0 * times)
    away = client._Away()
    assert away.may_ask("a")
    assert away.may_ask("a"), "as long as it answers all may"
    away.note("a")
    away.note("a")
    assert away.may_ask("a"), "the pause is over"
    assert not away.may_ask("a"), "and another one asks"
    assert away.may_ask("b")
    away.answered("a")
    assert away.may_ask("a")
    assert away.may_ask("a")


def test_pauses_get_longer_up_to_a_minute():
    assert [client._pause_s(times) for times in (1, 2, 3, 9, 10**6)] == [5.0, 10.0, 20.0, 60.0, 60.0]


def test_a_question_that_is_too_much_for_it_keeps_nobody_else_from_asking(stored, fake):
    fake.answers = 422
    fake.seen.clear()
    client.AWAY.forget()
    now = int(stored.clock.now().timestamp())
    assert not stored._answer(now - 4 * HOUR, now, 60)["complete"]
    assert len(fake.seen) > 1


def test_a_page_waits_for_the_store_once(stored, fake, monkeypatch):
    """Whatever a page asks has one deadline."""
    monkeypatch.setattr(client, "QUESTIONS_S", 0.2)
    monkeypatch.setattr(client, "TELLS_S", 10.0)  # so nobody notes that it is silent
    answer = fake.answer
    monkeypatch.setattr(fake, "answer", lambda *asked: time.sleep(0.15) or answer(*asked))
    fake.seen.clear()
    client._begins()
    try:
        now = int(stored.clock.now().timestamp())
        assert not stored._answer(now - 4 * HOUR, now, 60)["complete"]
    finally:
        client._ends()
    assert len(fake.seen) <= 2


def test_carried_bytes_and_one_broker_are_asked_for_alone():
    asked = series.requests_asked("ins-1", 60, 60, series.COUNTS, "")
    assert 'kind="requests",api=""' in asked
    one = series.requests_asked("ins-1", 60, 60, series.BROKERS, "2")
    assert 'broker=""' in one
    assert 'broker="2"' in one


def test_names_that_no_sampler_would_keep_are_left_out():
    labels = {"kind": "requests", "column": "unanswered"}
    text = series.text_of(
        series.COUNTS,
        [({**labels, "api": "<script>"}, 1.0), ({**labels, "api": "Fetch"}, 1.0), ({**labels, "api": "_x"}, 1.0)],
    )
    assert list(json.loads(text)) == ["Fetch"]
    broker = {"kind": "brokers", "column": "requests"}
    text = series.text_of(series.BROKERS, [({**broker, "broker": "<b>"}, 1.0), ({**broker, "broker": "1"}, 1.0)])
    assert list(json.loads(text)) == ["1"]


def test_who_was_too_slow_does_not_release_what_another_has_claimed(world, fake, monkeypatch):  # noqa: F811
    world.stored_in(fake.url)
    now = int(world.clock.now().timestamp())
    monkeypatch.setattr(writing, "_written", lambda *_: StoreWriter.objects.update(until=now + 700))
    world.writes()
    assert StoreWriter.objects.get().until == now + 700
    assert world.writes() == 0, "a clock that is ahead by a moment has its turn"


@pytest.fixture
def here(stored, monkeypatch):
    monkeypatch.setattr(api, "SYSTEM_CLOCK", stored.clock)
    monkeypatch.setattr(clocks.SystemClock, "now", lambda _self: stored.clock.now())
    return stored


@pytest.mark.parametrize("path", ["history", "metrics", "requests", "topics/orders/history"])
def test_rest_says_whether_it_is_all(here, alice, fake, path):
    def asked():
        client.AWAY.forget()
        answer = alice.api.get(f"{URL}/{here.instance.id}/{path}?{urlencode({'from': '2025-03-01T12:00:00Z'})}")
        assert answer.status_code == 200
        return answer.json()["is_complete"]

    assert asked() is True
    fake.answers = 500
    assert asked() is False


def test_pages_say_that_the_store_does_not_answer(here, at_alice, fake):  # noqa: F811
    """The pages of an instance and of a topic, with what the database has."""

    def asked(more):
        client.AWAY.forget()
        page = at_alice.get(f"instances/{here.instance.id}/history{more}")
        assert page.status_code == 200
        assert "data-plot=" in page.content.decode()
        return "metrics store does not answer" in page.content.decode()

    assert not asked("?range=24h")
    fake.answers = 503
    assert asked("?range=24h")
    assert not asked(""), "the last hour is the database's"
    client.AWAY.forget()
    page = at_alice.get(f"instances/{here.instance.id}/history?since=2025-03-01T14:00Z&until=2025-03-01T14:30Z")
    assert "metrics store does not answer" in page.content.decode()
    assert "Nothing is recorded" not in page.content.decode(), "it may be: nobody knows"


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"{}", b'{"status":"error"}', b'{"status":"success","data":{"resultType":"matrix","result":[{}]}}'],
)
def test_an_answer_that_is_none_is_as_none(answer):
    with pytest.raises(client.StoreAway):
        client._rows(answer)


def test_a_name_from_an_address_is_a_string_and_nothing_else(stored, fake):
    """A topic is asked for by a text of the caller's."""
    evil = 'x"}[60s]) or sum_over_time(sluice_history_sum{instance_id="ins-another1",topic="orders'
    now = int(stored.clock.now().timestamp())
    for name in (evil, "a\\", "a\nb", "\x00", "ö", ".*", ""):
        found = topic_moved_get(
            instance=stored.instance, name=name, start=moment_at(now - 3 * HOUR), end=moment_at(now), step_s=60,
            clock=stored.clock,
        )  # fmt: skip
        assert not any(value for each in found.series for value in each.values)
        assert found.is_complete, "the store has understood it"
    mine = f'instance_id="{stored.instance.pk}"'
    assert all(
        query.count("_over_time(sluice_history_") <= query.count(mine) + query.count("ins-another1")
        for query in fake.queries
    )


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_text_ends_where_it_ends(text):
    found = series.quoted(text)
    assert json.loads(found) == text
    assert "\n" not in found


def test_what_is_sent_is_remote_write():
    points = [
        wire.Point((("b", "2"), ("__name__", "m"), ("a", "ö")), 1.5),
        wire.Point((("__name__", "n"),), float("inf")),
    ]
    body = wire.cramjam.snappy.decompress_raw(wire.body_of(points, NOON))
    assert decoded(bytes(body)) == [
        ([("__name__", "m"), ("a", "ö"), ("b", "2")], [(NOON * 1000, 1.5)]),
        ([("__name__", "n")], [(NOON * 1000, float("inf"))]),
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Produce", "Fetch", "Metadata"]),
            st.integers(0, 2 * 10**8),
            st.integers(0, 9),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_counts_come_back_as_they_were(asked):
    counts = RequestCounts()
    for name, took_us, count, has_waited in asked:
        if count:
            counts.add(
                counts_of(
                    count,
                    api=name,
                    took_us=took_us,
                    waited_us=took_us if has_waited else 0,
                    errors={"NOT_CONTROLLER": count},
                )
            )
    row = RequestMinute(instance="ins-k3v9x2qa", at=NOON, windows=3, counts=counts.to_text())
    points = [(dict(point.labels), point.value) for point in series.points_of_requests(row, 60)]
    ours = [(labels, value) for labels, value in points if labels["kind"] in ("windows", "requests")]
    assert series.windows_of(ours) == 3
    assert series.text_of(series.COUNTS, ours) == counts.to_text()


@pytest.mark.parametrize(
    ("start", "end", "step_s", "found"),
    [
        (120, 300, 60, [(180, 300, 60)]),
        (120, 300, 600, [(300, 300, 180)]),
        (120, 1500, 600, [(600, 600, 480), (1200, 1200, 600), (1500, 1500, 300)]),
        (600, 1800, 600, [(1200, 1800, 600)]),
        (60, 60, 60, []),
    ],
)
def test_windows_are_whole_steps_and_the_parts_before_and_after(start, end, step_s, found):
    assert [(each.first_end, each.last_end, each.range_s) for each in windows_of(start, end, step_s)] == found


def test_only_what_is_written_and_not_needed_is_removed(world, fake):  # noqa: F811
    world.passes(600)
    before = RequestMinute.objects.count()
    world.stored_in(fake.url)
    world.writes()
    world.passes(HOUR)
    world.writes()
    span = StoredSpan.objects.get(name="request minutes")
    fake.answers = 503
    world.passes(HOUR)
    world.writes()
    move(world.clock, world.at + 3 * HOUR)
    services.purge(clock=world.clock)
    left = RequestMinute.objects.filter(instance=world.instance.pk)
    assert left.filter(at__lt=span.at).exists(), "what was before the store is kept as long as ever"
    assert not left.filter(at__gte=span.at, at__lt=span.until).exists()
    assert left.filter(at__gte=span.until).exists(), "what is not written is kept"
    assert before
    assert Minute.objects.filter(at__gte=span.at, at__lt=span.until).exists(), "the quota report reads these"


def test_one_worker_writes_at_a_time(world, fake):  # noqa: F811
    world.stored_in(fake.url)
    world.writes()
    world.passes(1200)
    now = int(world.clock.now().timestamp())
    StoreWriter.objects.update(until=now + 60)
    assert world.writes() == 0
    StoreWriter.objects.update(until=now - 1)
    assert world.writes() > 0


def test_minutes_that_may_change_are_not_written(world, fake):  # noqa: F811
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    world.passes(900)
    world.writes()
    span = StoredSpan.objects.get(name="minutes")
    assert span.until <= world.at - writing.AGAIN_S
    assert StoredSpan.objects.get(name="request minutes").until == world.at


def test_requests_wait_for_a_cluster_that_is_silent_as_long_as_it_may_tell_more(world, fake):  # noqa: F811
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    second = PhysicalCluster.objects.create(name="second", zookeeper_hosts="second:2181")
    sampling.RequestMark.objects.create(name=sampling.mark_name(second.pk), taken=world.at - 10, rolled=world.at)
    sampling.RequestMark.objects.create(name="cluster 99", taken=world.at - 9000, rolled=world.at - 9000)  # it is gone
    silent = world.at
    world.passes(600)
    world.writes()
    assert StoredSpan.objects.get(name="request minutes").until == silent
    world.passes(writing.SETTLED_S)
    world.writes()
    assert StoredSpan.objects.get(name="request minutes").until > silent


def test_another_address_is_another_store(stored):
    """What the first one has is not taken for what the second one has."""
    other = FakeStore()
    try:
        stored.stored_in(other.url)
        stored.writes()
        assert not any(
            span.at < span.until for span in StoredSpan.objects.filter(store=client.store_installed().digest)
        )
        assert not any(each["complete"] for each in stored.answers()[:1]), "what the first one has is not known"
        assert other.queries == []
    finally:
        other.stop()


@pytest.fixture
def secrets(tmp_path, settings):
    def secrets(**members):
        path = tmp_path / "secrets.json"
        path.write_text(json.dumps(members))
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=path)

    return secrets


def test_it_logs_in_as_it_is_told(world, fake, secrets):  # noqa: F811
    def said():
        fake.seen.clear()
        client.store_installed().write(wire.body_of([], NOON))
        return fake.seen[0][1].get("Authorization")

    world.stored_in(fake.url)
    assert said() is None
    secrets(metrics_store_password="p:w", metrics_store_token="t0ken")
    assert said() == "Bearer t0ken"
    secrets(metrics_store_password="p:w")
    world.stored_in(fake.url, metrics_user="sluice")
    assert said() == "Basic c2x1aWNlOnA6dw=="


def test_a_redirect_is_not_followed(world, fake):  # noqa: F811
    world.stored_in(fake.url)
    fake.answers = 307
    with pytest.raises(client.StoreAway, match="307"):
        client.store_installed().write(wire.body_of([], NOON))
    assert len(fake.seen) == 1


def test_a_service_that_is_no_store_is_said_with_what_the_setting_was_before(world, fake, caplog):  # noqa: F811
    world.stored_in(fake.url)
    world.passes(600)
    world.writes()
    world.passes(600)
    fake.answers = 404
    assert world.writes() == 0
    assert "SLUICE_SCRAPE_URL" in caplog.text


def test_the_address_for_writing_may_be_another(world, fake):  # noqa: F811
    world.stored_in("http://127.0.0.1:9/prometheus", metrics_write_url=f"{fake.url}/push/api/v1/write")
    client.store_installed().write(wire.body_of([], NOON))
    assert fake.seen[0][0] == "/push/api/v1/write"


def test_without_a_store_nothing_is_asked_or_noted(world):  # noqa: F811
    world.passes(600)
    assert world.writes() == 0
    assert not StoreWriter.objects.exists()
    assert not StoredSpan.objects.exists()
    assert all(model.objects.exists() for model in ROWS[:1])
    assert RequestSample.objects.exists()
