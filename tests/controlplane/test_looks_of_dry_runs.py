"""While a dry run has rows locked, no cluster is asked again for what was known before: a cluster may take seconds to answer."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from rest_framework.response import Response

from controlplane.api import dry_runs
from controlplane.clusters import master, zookeeper
from controlplane.clusters.zookeeper import Create, Put, TakenBack
from controlplane.core.dry_runs import once, rehearsing, taken_back
from controlplane.core.errors import ClusterUnavailable, Conflict
from controlplane.tenants.models import Organisation

from .fakes import FakeTree

DRY = "?dry_run=true"


class Asked:
    """Counts questions to a cluster: all of them, and those that were asked within the dry run's own transaction."""

    def __init__(self):
        self.all, self.locked = Counter(), Counter()
        self.depth = len(connection.savepoint_ids)

    def spy(self, monkeypatch, owner, *names):
        for name in names:
            monkeypatch.setattr(owner, name, self._counting(name, getattr(owner, name)))

    def _counting(self, name, call):
        def counted(*arguments, **members):
            self.all[name] += 1
            self.locked[name] += len(connection.savepoint_ids) > self.depth
            return call(*arguments, **members)

        return counted


def test_a_topic_is_looked_at_before_its_instance_is_locked(alice, instance, admin, monkeypatch):
    url = f"/api/v1/instances/{instance.id}/topics"
    assert alice.api.post(url, {"name": "orders", "partitions": 1}).status_code == 201
    asked = Asked()
    asked.spy(monkeypatch, admin, "layout", "config")
    said = alice.api.put(f"{url}/orders/whitelist{DRY}", {"cidrs": ["10.0.0.0/8"]}).json()
    assert said["changes"] == {"whitelist": [None, ["10.0.0.0/8"]]}
    assert set(asked.all) == {"layout", "config"}
    assert not +asked.locked


def test_nothing_of_the_tree_is_read_twice(alice, instance, tree, monkeypatch):
    acl = {"principal": "User:ann", "operation": "READ", "resource_type": "TOPIC", "resource_name": "orders"}
    url = f"/api/v1/instances/{instance.id}/acls"
    assert alice.api.post(url, acl).status_code == 201
    asked, get = [], tree.get
    monkeypatch.setattr(tree, "get", lambda path: asked.append(path) or get(path))
    assert alice.api.post(f"{url}{DRY}", {**acl, "operation": "WRITE"}).json()["changes"]
    assert len(asked) == len(set(asked)) > 0


# --- the parts ------------------------------------------------------------------------------------------------------------


class View:
    """Looks at the name of an organisation, and at something that a cluster knows."""

    def __init__(self, ask):
        self.ask = ask

    def get(self, _request, organisation_id):
        name = Organisation.objects.get(pk=organisation_id).name
        return Response({"name": name, "known": once("known", self.ask)})

    @dry_runs.rehearsed()
    def put(self, _request, organisation_id):
        Organisation.objects.filter(pk=organisation_id).update(name="other")
        return Response()

    @dry_runs.rehearsed()
    def delete(self, _request, organisation_id):
        raise Conflict(f"not {organisation_id}")


class Request:
    """Of a dry run."""

    method = "PUT"

    def __init__(self):
        self.query_params = self

    def getlist(self, _name):
        return ["true"]


def test_what_is_looked_at_is_asked_for_once_and_outside_of_the_transaction(alice):
    asked = []
    view = View(lambda: asked.append(len(connection.savepoint_ids)) or "it")
    depth = len(connection.savepoint_ids)
    said = view.put(Request(), organisation_id=alice.organisation.pk).data
    assert said["changes"] == {"name": ("alice's", "other")} or said["changes"] == {"name": ["alice's", "other"]}
    assert asked == [depth]
    assert Organisation.objects.get(pk=alice.organisation.pk).name == "alice's"


def test_who_is_refused_hears_it_from_the_call_and_not_from_the_look(alice):
    def away():
        raise ClusterUnavailable("nobody answers")

    with pytest.raises(Conflict):
        View(away).delete(Request(), organisation_id=alice.organisation.pk)
    with pytest.raises(ClusterUnavailable):
        View(away).put(Request(), organisation_id=alice.organisation.pk)
    assert Organisation.objects.get(pk=alice.organisation.pk).name == "alice's"


@pytest.mark.django_db
def test_only_in_a_dry_run_an_answer_is_remembered_and_to_its_end():
    asked = []

    def ask():
        asked.append(1)
        raise ClusterUnavailable("nobody answers")

    def asks(times):
        for _ in range(times):
            with pytest.raises(ClusterUnavailable):
                once("about", ask)
        return len(asked)

    assert asks(2) == 2
    with rehearsing():
        assert asks(1) == 3
        with taken_back():
            assert asks(2) == 3
        assert asks(1) == 3
    with taken_back():
        assert asks(2) == 4
    assert asks(1) == 5


def test_a_master_is_asked_once_in_a_dry_run(monkeypatch):
    asked = []
    monkeypatch.setattr(master, "_active", lambda _cluster: "http://127.0.0.1:1")
    monkeypatch.setattr(master, "_get", lambda _http, path: asked.append(path) or {"of": path})
    with rehearsing():
        assert [master._ask("one", path)["of"] for path in ("/a", "/a", "/b")] == ["/a", "/a", "/b"]
    assert asked == ["/a", "/b"]


def test_a_tree_is_read_once_in_a_dry_run_and_what_is_written_is_seen(monkeypatch):
    real = FakeTree(party=None)
    real.ensure("/a")
    real.write([Create("/a/one", b"1"), Create("/a/two", b"2")])
    asked = Counter()
    for name in ("get", "get_many", "children", "children_mark"):
        call = getattr(real, name)
        monkeypatch.setattr(real, name, lambda path, name=name, call=call: asked.update([name]) or call(path))
    dry, before = TakenBack(real), {}
    for _ in range(2):
        assert dry.get("/a/one") == (b"1", 0)
        assert dry.get_many(["/a/one", "/a/two", "/a/none"]) == [(b"1", 0), (b"2", 0), None]
        assert dry.children("/a") == ["one", "two"]
        mark = dry.children_mark("/a")
        before = before or dict(asked)
    assert asked == before
    dry.write([Put("/a/one", b"other", 0), Create("/a/three", b"3")])
    assert (dry.get("/a/one"), dry.children("/a")) == ((b"other", 1), ["one", "three", "two"])
    assert dry.children_mark("/a") != mark
    assert (asked["children"], asked["children_mark"]) == (before["children"], before["children_mark"])


@pytest.mark.django_db
def test_a_dry_run_within_another_leaves_it_nothing(monkeypatch):
    tree = FakeTree(party=None)
    monkeypatch.setattr(zookeeper, "connection", lambda _cluster: tree)
    tree.ensure("/a")
    tree.write([Create("/a/one", b"1")])
    with rehearsing(), taken_back():
        zookeeper.tree(None).write([Put("/a/one", b"2", 0)])
        with taken_back():
            assert zookeeper.tree(None).get("/a/one") == (b"2", 1)
            zookeeper.tree(None).write([Put("/a/one", b"3", 1)])
            assert zookeeper.tree(None).get("/a/one") == (b"3", 2)
        assert zookeeper.tree(None).get("/a/one") == (b"2", 1)
    assert tree.get("/a/one") == (b"1", 0)
