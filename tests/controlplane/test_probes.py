"""/health/live and /health/ready: who is sent requests, who is not, and that the answer comes whatever hangs."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import DatabaseError

from controlplane import probes
from controlplane.clusters import zookeeper
from controlplane.clusters.models import PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.core.errors import ClusterUnavailable

from .fakes import FakeTree

NAMES = ("database", "cache", "zookeeper")


def well() -> None:
    """It answers."""


def away() -> None:
    raise DatabaseError("a word with a p4ssword in it")


@pytest.fixture
def ask(client, monkeypatch):
    """Ask with these three in place of the real ones."""

    def ask(database=well, cache=well, zookeeper=well, path="/health/ready"):
        made = [probes.Probe(name, one) for name, one in zip(NAMES, (database, cache, zookeeper), strict=True)]
        monkeypatch.setattr(probes, "PROBES", made)
        monkeypatch.setattr(probes, "DATABASE", made[0])
        return client.get(path)

    return ask


def test_a_process_that_answers_lives_whatever_is_away(ask):
    answer = ask(away, away, away, path="/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer["Cache-Control"] == "no-store"


def test_it_is_ready_where_everything_answers(ask):
    answer = ask()
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "database": "ok", "cache": "ok", "zookeeper": "ok"}


def test_without_the_database_it_is_not(ask):
    answer = ask(database=away)
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "database": "away", "cache": "ok", "zookeeper": "ok"}
    assert "p4ssword" not in answer.content.decode()


@pytest.mark.parametrize("name", ["cache", "zookeeper"])
def test_without_cache_or_zookeeper_it_serves_what_it_can_and_says_so(ask, name):
    answer = ask(**{name: away})
    assert (answer.status_code, answer.json()["status"], answer.json()[name]) == (200, "degraded", "away")
    assert ask(**{name: away}, path="/health/ready?strict=1").status_code == 503
    assert ask(path="/health/ready?strict=1").status_code == 200


def test_what_hangs_costs_the_answer_two_seconds_and_is_not_asked_again(ask, client, monkeypatch):
    monkeypatch.setattr(probes, "WITHIN_S", 0.3)
    monkeypatch.setattr(probes, "KEPT_S", 0.0)
    asked, end = [], threading.Event()

    def hangs():
        asked.append(1)
        end.wait(60)

    began = time.monotonic()
    assert ask(zookeeper=hangs).json()["zookeeper"] == "away"
    assert client.get("/health/ready").json()["zookeeper"] == "away"
    assert time.monotonic() - began < 30
    assert asked == [1]
    end.set()
    for _ in range(300):
        if client.get("/health/ready").json()["zookeeper"] == "ok":
            break
        time.sleep(0.1)
    else:
        pytest.fail("it answers again, and that is not noticed")


def test_who_asks_often_has_the_answer_of_a_moment_ago(ask, client, monkeypatch):
    monkeypatch.setattr(probes, "KEPT_S", 60.0)
    asked = []
    ask(database=lambda: asked.append(1))
    for _ in range(5):
        assert client.get("/health/ready").status_code == 200
    assert asked == [1]


def test_the_real_ones_ask_what_they_are_named_after(tree, monkeypatch):
    tree.away = True
    with pytest.raises(ClusterUnavailable):
        probes._zookeeper()
    tree.away = False
    probes._zookeeper()
    probes._cache()
    queries = []

    class Connection:
        def cursor(self):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            return None

        def execute(self, query):
            queries.append(query)

        def fetchone(self):
            return (1,)

        def close(self):
            queries.append("closed")

    monkeypatch.setattr(probes.connections, "create_connection", lambda _alias: Connection())
    probes._database()
    assert queries == ["SELECT 1", "closed"]


@pytest.mark.django_db(transaction=True)
def test_the_zookeeper_of_every_cluster_that_is_in_use_is_asked(monkeypatch, settings):
    cluster_ensure()
    PhysicalCluster.objects.create(name="second", zookeeper_hosts="z1:2181/kafka")
    PhysicalCluster.objects.create(name="third", zookeeper_hosts="z9:2181", state="retired")
    asked = []

    def tree(address):
        asked.append(address.zookeeper_hosts)
        return FakeTree()

    monkeypatch.setattr(zookeeper, "tree", tree)
    probes._zookeeper()
    assert asked == [settings.ENVIRONMENT.zookeeper_hosts, "z1:2181/kafka"]


def test_where_the_database_is_away_the_installations_own_is(tree, monkeypatch, settings):
    asked = []
    monkeypatch.setattr(probes.connections, "create_connection", lambda _alias: Away())
    monkeypatch.setattr(zookeeper, "tree", lambda address: asked.append(address.zookeeper_hosts) or tree)
    probes._zookeeper()
    assert asked == [settings.ENVIRONMENT.zookeeper_hosts]


class Away:
    def cursor(self):
        raise DatabaseError("away")

    def close(self):
        pass


def test_only_reading_is_allowed(client):
    assert client.post("/health/live").status_code == 405
    assert client.post("/health/ready").status_code == 405
