"""Who moves how much of which topic: one counter for each client and topic, as many as may be, and the others together."""

from __future__ import annotations

from dataplane.tenancy import talkers as module
from dataplane.tenancy.talkers import MOST_CLIENT_ID, Talkers

HERE = "10.0.0.1"


def swept(talkers, now):
    for _ in talkers.sweep(now):
        pass


def test_a_client_has_one_counter_of_a_topic_whatever_its_connections():
    talkers = Talkers()
    talkers.of("shop", HERE, "k.orders", 0.0).produced += 5
    talkers.of("shop", HERE, "k.orders", 1.0).produced += 6
    talkers.of("shop", HERE, "k.events", 1.0).consumed += 7
    talkers.of("shop", "10.0.0.2", "k.orders", 1.0).consumed += 8
    told = [(talk.address, talk.topic, talk.produced, talk.consumed) for talk in talkers.all()]
    assert told == [(HERE, "k.orders", 11, 0), (HERE, "k.events", 0, 7), ("10.0.0.2", "k.orders", 0, 8)]


def test_a_client_that_has_gone_is_told_until_two_looks_find_nothing_new():
    talkers = Talkers()
    talkers.of("shop", HERE, "k.orders", 0.0).produced += 5
    swept(talkers, 60.0)
    assert len(talkers.all()) == 1
    swept(talkers, 120.0)
    assert talkers.all() == []


def test_a_counter_that_a_short_cut_has_is_there_when_it_goes_on_after_a_long_silence():
    talkers = Talkers()
    kept = talkers.of("shop", HERE, "k.orders", 0.0)
    for minute in range(1, 10):
        swept(talkers, 60.0 * minute)
    kept.produced += 5
    assert talkers.all() == [kept]
    swept(talkers, 600.0)
    del kept  # its connection has gone, and the last minute is told all the same
    assert [talk.lately(601.0) for talk in talkers.all()] == [(61.0, 5, 0)]


def test_who_comes_when_the_table_is_full_is_among_the_others_until_some_go_quiet(monkeypatch):
    monkeypatch.setattr(module, "MOST_TALKS", 2)
    talkers = Talkers()
    for name in ("a", "b", "c", "d"):
        talkers.of(name, HERE, "k.orders", 0.0).produced += 10
    assert [talk.client_id for talk in talkers.all()] == ["a", "b"]
    assert talkers.others.lately(30.0) == (30.0, 20, 0)
    swept(talkers, 60.0)
    swept(talkers, 120.0)
    talkers.of("d", HERE, "k.orders", 120.0).produced += 10
    assert [talk.client_id for talk in talkers.all()] == ["d"]


def test_of_a_long_client_id_no_more_is_kept_than_can_be_shown():
    talkers = Talkers()
    assert talkers.of("x" * 30_000, HERE, "k.orders", 0.0).client_id == "x" * MOST_CLIENT_ID
    assert talkers.of(None, HERE, "k.orders", 0.0).client_id == ""
