"""A call changes the group that was meant, whatever groups are called, or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from controlplane.cli.segments import marked, segment_of
from controlplane.core.errors import ConcurrentChange
from controlplane.groups import making, services
from controlplane.kafka import groups
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.test_instances_api import problem

from .conftest import ALIVE

ODD = [".", "..", "~", "~eA", "g/offsets", "x/members/y", "x/topics/t", "foo/history", "a/../../b", "/", " lead", "a/b"]
CONTROL = ["two\nlines", "\x01", "a\x1b[31mb", "\r\n", "\x7f", "\x9b", "\u2028"]


@pytest.fixture
def both(hers):
    """The group x with an offset and a member's name, and one whose name goes on where an address of x would."""

    def made(longer):
        place = (f"{hers.key}.orders", 0)
        found = hers.groups.found
        found[f"{hers.key}.x"] = FakeGroup({place: 101})
        found[f"{hers.key}.{longer}"] = FakeGroup({place: 102})
        return found[f"{hers.key}.x"]

    return made


@pytest.mark.parametrize("name", ODD)
def test_a_group_of_any_name_is_made_read_moved_and_deleted(alice, hers, name):
    assert alice.api.post(hers.url, {"name": name, "topics": ["orders"]}).json()["name"] == name
    address = f"{hers.url}/{segment_of(name)}"
    assert alice.api.get(address).json()["name"] == name
    assert alice.api.get(f"{address}/history").status_code == 200
    moved = alice.api.post(f"{address}/offsets", {"topic": "orders", "strategy": "earliest"})
    assert moved.status_code == 200
    assert hers.groups.found[f"{hers.key}.{name}"].offsets[f"{hers.key}.orders", 0] == 100
    assert alice.api.delete(f"{address}/topics/orders").status_code == 204
    assert f"{hers.key}.{name}" not in hers.groups.found
    alice.api.post(hers.url, {"name": name, "topics": ["orders"]})
    assert alice.api.delete(address).status_code == 204
    assert f"{hers.key}.{name}" not in hers.groups.found


@pytest.mark.parametrize("spelled", [segment_of, lambda name: quote(name, safe="")])
@pytest.mark.parametrize("name", CONTROL)
def test_a_group_whose_name_has_control_characters_is_read_moved_and_deleted(alice, hers, name, spelled):
    hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    address = f"{hers.url}/{spelled(name)}"
    assert [each["name"] for each in alice.api.get(hers.url).json()["items"]] == sorted(["billing", name])
    assert alice.api.get(address).json()["name"] == name
    assert alice.api.get(f"{address}/history").status_code == 200
    assert alice.api.post(f"{address}/offsets", {"topic": "orders", "strategy": "earliest"}).status_code == 200
    assert alice.api.delete(address).status_code == 204
    assert f"{hers.key}.{name}" not in hers.groups.found


@pytest.mark.parametrize("spelled", [segment_of, lambda name: quote(name, safe="")])
def test_one_with_nul_is_listed_and_every_other_call_says_why_not(alice, hers, spelled):
    """librdkafka ends a name at NUL, and would ask for another group of the same tenant."""
    name = "billing\0x"
    hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    before = dict(hers.billing.offsets)
    _, row = alice.api.get(hers.url).json()["items"]
    assert (row["name"], row["known"], row["lag_messages"]) == (name, False, None)
    first = alice.api.get(f"{hers.url}?limit=1").json()
    assert [each["name"] for each in alice.api.get(f"{hers.url}?cursor={first['next']}").json()["items"]] == [name]
    address = f"{hers.url}/{spelled(name)}"
    answers = [
        alice.api.get(address),
        alice.api.get(f"{address}/history"),
        alice.api.post(f"{address}/offsets", {"strategy": "earliest"}),
        alice.api.delete(f"{address}/topics/orders"),
        alice.api.delete(f"{address}/members/m"),
        alice.api.delete(address),
    ]
    for answer in answers:
        assert "use Kafka's own tools" in problem(answer, 404, "group_not_found")["detail"]
    assert set(hers.groups.found) == {f"{hers.key}.billing", f"{hers.key}.{name}"}
    assert hers.billing.offsets == before


@pytest.mark.parametrize("dry", ["", "?dry_run=true"])
@pytest.mark.parametrize(("longer", "kind"), [("x/topics/orders", "topics"), ("x/members/y", "members")])
def test_an_address_that_may_mean_two_groups_changes_neither(alice, hers, both, longer, kind, dry):
    x = both(longer)
    x.members.append(replace(ALIVE, id="y"))
    before = {name: dict(group.offsets) for name, group in hers.groups.found.items()}
    said = problem(alice.api.delete(f"{hers.url}/{longer.replace('/', '%2F')}{dry}"), 409, "ambiguous_address")
    assert marked(longer) in said["detail"]
    assert marked("x") in said["detail"]
    assert {name: dict(group.offsets) for name, group in hers.groups.found.items()} == before
    assert [member.id for member in x.members] == ["y"]


def test_each_of_the_two_is_named_by_its_own_segment(alice, hers, both):
    both("x/topics/orders")
    assert alice.api.delete(f"{hers.url}/{marked('x')}/topics/orders").status_code == 204
    assert f"{hers.key}.x" not in hers.groups.found
    assert alice.api.delete(f"{hers.url}/{segment_of('x/topics/orders')}").status_code == 204
    assert f"{hers.key}.x/topics/orders" not in hers.groups.found
    hers.billing.members.append(replace(ALIVE, id="a/b"))
    assert alice.api.delete(f"{hers.url}/billing/members/{segment_of('a/b')}").status_code == 204
    assert hers.billing.members == []


def test_ordinary_addresses_go_on_as_before(alice, hers):
    assert alice.api.delete(f"{hers.url}/billing/topics/orders").status_code == 204
    assert f"{hers.key}.billing" not in hers.groups.found


@pytest.mark.parametrize(
    "path", ["a/b/topics/orders", "x/members/a/b", "a/members/x/members/y", "x/members/y/topics/orders"]
)
def test_a_slash_as_it_is_before_or_in_a_longer_address_changes_nothing(alice, hers, path):
    for name in ("a", "a/b", "x", "a/b/topics/orders", "x/members/a/b", "a/members/x"):
        hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 1})
    before = set(hers.groups.found)
    assert alice.api.delete(f"{hers.url}/{path}").status_code in (400, 409)
    assert set(hers.groups.found) == before
    assert [hers.groups.rounds[act] for act in ("delete", "remove", "forget")] == [0, 0, 0]


def test_a_slash_as_it_is_in_the_address_of_a_group_can_mean_that_group_alone(alice, hers):
    hers.groups.found[f"{hers.key}.a"] = FakeGroup({(f"{hers.key}.orders", 0): 1})
    hers.groups.found[f"{hers.key}.a/b"] = FakeGroup({(f"{hers.key}.orders", 0): 1})
    assert alice.api.delete(f"{hers.url}/a%2Fb").status_code == 204
    assert set(hers.groups.found) == {f"{hers.key}.a", f"{hers.key}.billing"}


def test_reading_takes_a_slash_as_it_is_where_nothing_else_has_the_address(alice, hers):
    hers.groups.found[f"{hers.key}.prod/orders"] = FakeGroup()
    assert alice.api.get(f"{hers.url}/prod%2Forders").json()["name"] == "prod/orders"
    problem(alice.api.get(f"{hers.url}/~nothing!"), 404, "not_found")


# --- made once, and of a name that brokers take ------------------------------------------------------------------------


def test_a_name_that_brokers_do_not_take_is_refused_by_its_field_in_both_ways(alice, hers):
    for dry in ("", "?dry_run=true"):
        body = {"name": "g" * (groups.MOST_NAME + 1), "topics": ["orders"]}
        (error,) = problem(alice.api.post(f"{hers.url}{dry}", body), 400, "invalid")["errors"]
        assert error["field"] == "name"
    assert groups.MOST_NAME + len(f"{hers.key}.") == 1000
    assert alice.api.post(hers.url, {"name": "g" * groups.MOST_NAME, "topics": ["orders"]}).status_code == 201


def test_while_one_makes_a_group_nobody_else_makes_one_of_its_name(alice, hers, monkeypatch):
    """The second looks while the first has looked and not written yet."""
    asked = {
        "organisation": alice.organisation,
        "actor": "a",
        "instance_id": hers.instance_id,
        "topic_names": ["orders"],
    }
    seen = []
    commit = groups.commit

    def meanwhile(cluster, instance_id, name, offsets):
        if name == "new":
            with pytest.raises(ConcurrentChange):
                services.group_create(**asked, name="new")
            services.group_create(**asked, name="other")
            seen.append(name)
        commit(cluster, instance_id, name, offsets)

    monkeypatch.setattr(groups, "commit", meanwhile)
    services.group_create(**asked, name="new")
    assert seen == ["new"]
    problem(alice.api.post(hers.url, {"name": "new", "topics": ["orders"]}), 409, "group_exists")
    hers.groups.found.clear()
    services.group_create(**asked, name="new")
    assert seen == ["new", "new"], "the name is free again"


def test_who_was_too_slow_does_not_end_what_another_holds(monkeypatch):
    kept = {}
    cache = SimpleNamespace(
        add=lambda key, token, timeout: kept.setdefault(key, token) == token,
        get=kept.get,
        delete=kept.pop,
    )
    monkeypatch.setattr(making, "cache", cache)
    with making.alone("ins-k3v9x2qa", "g"):
        (key,) = kept
        kept[key] = "another's"
    assert kept == {key: "another's"}


def test_of_many_at_once_one_makes_it(monkeypatch):
    kept = {}
    monkeypatch.setattr(
        making,
        "cache",
        SimpleNamespace(
            add=lambda key, token, timeout: kept.setdefault(key, token) == token, get=kept.get, delete=kept.pop
        ),
    )

    def held(_):
        try:
            with making.alone("ins-k3v9x2qa", "g"):
                begun.append(1)
                while len(refused) < 14:
                    pass
        except ConcurrentChange:
            refused.append(1)

    begun, refused = [], []
    with ThreadPoolExecutor(15) as pool:
        list(pool.map(held, range(15)))
    assert (len(begun), len(refused), kept) == (1, 14, {})
