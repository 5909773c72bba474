"""Dry runs of groups: they say what the group would be and who is touched, are refused as the call is, and change nothing."""

from __future__ import annotations

from copy import deepcopy

import pytest

from controlplane.api.dry_runs import DRAWN
from controlplane.core.dry_runs import flat
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.models import AuditEntry
from controlplane.kafka.group_door import Member
from tests.controlplane.test_instances_api import problem

from .conftest import ALIVE

DRY = "?dry_run=true"
ASKING = {"listed", "described", "committed", "spans", "offsets_at", "oldest", "partitions", "classic_members"}
OF_TIME = {"lag_seconds", "consume_rate_per_s", "produce_rate_per_s", "drain_seconds"}
OTHER = Member("billing-2-uuid", "billing-2", "10.0.0.8", (("orders", 1),))


@pytest.fixture
def dry(hers):
    """Asks for a dry run: 200, and coordinators were only asked. What it says."""

    def ask(call, url, body=None):
        before = deepcopy(hers.groups.found)
        hers.groups.rounds.clear()
        answer = call(f"{url}{DRY}", body)
        assert answer.status_code == 200, answer.content
        assert set(hers.groups.rounds) <= ASKING
        assert hers.groups.found == before
        assert not AuditEntry.objects.unscoped("a test").filter(action__startswith="group.").exists()
        return answer.json()

    return ask


def legible(shown):
    """A group as flat members, without what time changes."""
    rows = [{**row, "lag_seconds": None} for row in shown.get("partitions", ())]
    return flat({name: value for name, value in shown.items() if name not in OF_TIME} | {"partitions": rows})


def foretold(said, before):
    """What `GET` said, with the changes of a dry run put in."""
    after = flat(before) | {name: pair[1] for name, pair in said["changes"].items()}
    assert not set(said["changes"]) & DRAWN
    return legible(after)


def is_gone(said, before):
    """Whether a dry run says of all that `GET` has said that it would be there no more."""
    there = {name for name, value in legible(before).items() if value is not None}
    return there <= set(said["changes"]) and all(after is None for _, after in said["changes"].values())


def test_a_group_would_begin_at_the_present_ends(alice, hers, dry):
    said = dry(alice.api.post, hers.url, {"name": "new", "topics": ["orders"]})
    assert alice.api.get(f"{hers.url}/new").status_code == 404
    assert alice.api.post(hers.url, {"name": "new", "topics": ["orders"]}).status_code == 201
    shown = legible(alice.api.get(f"{hers.url}/new").json())
    assert foretold(said, dict.fromkeys(shown)) == shown
    rows = {row["partition"]: row["offset"] for row in said["changes"]["partitions"][1]}
    assert rows == {0: 104, 1: 2}
    assert said["changes"]["state"] == [None, "Empty"]


def test_offsets_that_would_be_reset_are_those_of_the_group_afterwards(alice, hers, dry):
    url, body = f"{hers.url}/billing", {"topic": "orders", "strategy": "earliest"}
    before = alice.api.get(url).json()
    said = dry(alice.api.post, f"{url}/offsets", body)
    assert said["problems"] == ["4 records would be read again"]
    assert said["changes"]["lag_messages"] == [2, 6]
    assert alice.api.post(f"{url}/offsets", body).status_code == 200
    assert foretold(said, before) == legible(alice.api.get(url).json())


def test_records_that_would_be_skipped_are_counted(alice, hers, dry):
    url = f"{hers.url}/billing/offsets"
    said = dry(alice.api.post, url, {"topic": "orders", "strategy": "latest"})
    assert said["problems"] == ["2 records would be skipped: this group never reads them"]
    far = dry(alice.api.post, url, {"topic": "orders", "strategy": "offset", "value": 10**6})
    assert "in 2 partitions the offset asked for is not kept: the nearest would be taken" in far["problems"]
    assert dry(alice.api.post, url, {"topic": "orders", "strategy": "shift", "value": 0}) | {"price": None} == {
        "dry_run": True, "plan": [], "price_change": None, "bytes_to_move": 0, "seconds": 0,
        "changes": {}, "price": None, "problems": [], "affected": [],
    }  # fmt: skip


def test_a_preview_in_the_body_is_as_it_was_and_not_asked_for_twice(alice, hers):
    url, body = f"{hers.url}/billing/offsets", {"topic": "orders", "strategy": "earliest", "dry_run": True}
    assert alice.api.post(url, body).json()["read_again"] == 4
    problem(alice.api.post(f"{url}{DRY}", body), 400, "invalid")


def test_while_members_live_a_dry_run_is_refused_as_the_call(alice, hers):
    hers.billing.members.append(ALIVE)
    body = {"topic": "orders", "strategy": "earliest"}
    for method, url, sent in (
        ("post", f"{hers.url}/billing/offsets", body),
        ("delete", f"{hers.url}/billing", None),
        ("delete", f"{hers.url}/billing/topics/orders", None),
    ):
        call = getattr(alice.api, method)
        asked = problem(call(f"{url}{DRY}", sent), 409, "group_not_empty")
        assert asked == problem(call(url, sent), 409, "group_not_empty")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("post", "", {"name": "billing", "topics": ["orders"]}, 409, "group_exists"),
        ("post", "", {"name": "new", "topics": ["nothing"]}, 404, "topic_not_found"),
        ("post", "", {"name": "a\0b", "topics": ["orders"]}, 400, "invalid"),
        ("post", "", {"name": "new", "topics": []}, 400, "invalid"),
        ("delete", "/nobody", None, 404, "group_not_found"),
        ("delete", "/billing/members/nobody", None, 404, "member_not_found"),
        ("delete", "/billing/topics/nothing", None, 404, "offset_not_found"),
        ("post", "/billing/offsets", {"strategy": "shift"}, 400, "invalid"),
        ("post", "/billing/offsets", {"strategy": "earliest", "partitions": [0]}, 400, "invalid"),
        ("post", "/billing/offsets", {"strategy": "earliest", "topic": "orders", "partitions": [9]}, 400, "invalid"),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(alice, hers, method, path, body, status, code):
    call, url = getattr(alice.api, method), f"{hers.url}{path}"
    assert problem(call(f"{url}{DRY}", body), status, code) == problem(call(url, body), status, code)


def test_a_group_that_would_be_deleted_would_be_gone_with_its_offsets(alice, hers, dry):
    said = dry(alice.api.delete, f"{hers.url}/billing")
    assert said["changes"]["name"] == ["billing", None]
    assert said["changes"]["partitions"][1] is None
    assert said["problems"] == [
        "offsets in 2 partitions would be lost: whoever reads there by this name begins as auto.offset.reset says"
    ]
    before = alice.api.get(f"{hers.url}/billing").json()
    assert alice.api.delete(f"{hers.url}/billing").status_code == 204
    assert alice.api.get(f"{hers.url}/billing").status_code == 404
    assert is_gone(said, before)


def test_a_topics_offsets_that_would_go_are_the_only_ones_or_not(alice, hers, dry):
    last = dry(alice.api.delete, f"{hers.url}/billing/topics/orders")
    assert last["changes"]["name"] == ["billing", None]
    hers.billing.offsets[f"{hers.key}.clicks", 0] = 5
    before = alice.api.get(f"{hers.url}/billing").json()
    said = dry(alice.api.delete, f"{hers.url}/billing/topics/orders")
    assert "name" not in said["changes"]
    assert [row["topic"] for row in said["changes"]["partitions"][1]] == ["clicks"]
    assert alice.api.delete(f"{hers.url}/billing/topics/orders").status_code == 204
    assert foretold(said, before) == legible(alice.api.get(f"{hers.url}/billing").json())


def test_a_group_that_somebody_was_in_stays_empty_without_its_last_offset(alice, hers, dry):
    hers.billing.was_joined = True
    url = f"{hers.url}/billing"
    before = alice.api.get(url).json()
    said = dry(alice.api.delete, f"{url}/topics/orders")
    assert "name" not in said["changes"]
    assert said["problems"][1] == "these are its last offsets: without them the group stays, empty, for some minutes"
    assert alice.api.delete(f"{url}/topics/orders").status_code == 204
    after = alice.api.get(url).json()
    assert (after["state"], after["partitions"]) == ("Empty", [])
    assert foretold(said, before) == legible(after)


def test_a_group_that_nobody_was_in_is_gone_with_its_last_offset(alice, hers, dry):
    url = f"{hers.url}/billing"
    before = alice.api.get(url).json()
    said = dry(alice.api.delete, f"{url}/topics/orders")
    assert alice.api.delete(f"{url}/topics/orders").status_code == 204
    assert alice.api.get(url).status_code == 404
    assert is_gone(said, before)


@pytest.mark.parametrize("path", ["", "/topics/orders", f"/members/{ALIVE.id}"])
def test_leaders_that_are_away_keep_nothing_back_that_coordinators_do(alice, hers, dry, monkeypatch, path):
    if "members" in path:
        hers.billing.members.append(ALIVE)

    def away(_places):
        raise ClusterUnavailable("the leaders of the partitions do not answer")

    monkeypatch.setattr(hers.groups, "spans", away)
    said = dry(alice.api.delete, f"{hers.url}/billing{path}")
    assert said["changes"]
    assert alice.api.delete(f"{hers.url}/billing{path}").status_code == 204


@pytest.mark.parametrize("others", [[], [OTHER]], ids=["the last one", "one of two"])
def test_without_a_member_a_group_is_what_get_says_of_it_afterwards(alice, hers, dry, others):
    """The other member has nothing to read until everybody has joined again."""
    hers.billing.members.extend([ALIVE, *others])
    url = f"{hers.url}/billing"
    before = alice.api.get(url).json()
    said = dry(alice.api.delete, f"{url}/members/{ALIVE.id}")
    assert alice.api.delete(f"{url}/members/{ALIVE.id}").status_code == 204
    after = alice.api.get(url).json()
    assert after["protocol"] == ""
    assert foretold(said, before) == legible(after)


def test_a_member_of_the_consumer_protocol_leaves_by_itself_alone(alice, hers, dry):
    hers.billing.members.extend([ALIVE, OTHER])
    hers.billing.classic = {OTHER.id}
    url = f"{hers.url}/billing/members"
    refused = problem(alice.api.delete(f"{url}/{ALIVE.id}{DRY}"), 409, "member_not_removable")
    assert refused == problem(alice.api.delete(f"{url}/{ALIVE.id}"), 409, "member_not_removable")
    assert not hers.groups.rounds["remove"]
    before = alice.api.get(f"{hers.url}/billing").json()
    said = dry(alice.api.delete, f"{url}/{OTHER.id}")
    assert alice.api.delete(f"{url}/{OTHER.id}").status_code == 204
    assert foretold(said, before) == legible(alice.api.get(f"{hers.url}/billing").json())


def test_who_would_be_given_a_members_partitions_is_named(alice, hers, dry):
    hers.billing.members.extend([ALIVE, OTHER])
    said = dry(alice.api.delete, f"{hers.url}/billing/members/{ALIVE.id}")
    assert [row["id"] for row in said["changes"]["members"][1]] == [OTHER.id]
    assert said["changes"]["state"][1] == "PreparingRebalance"
    assert [(each["names"], each["effect"]) for each in said["affected"]] == [
        ([ALIVE.id], "out of the group; one that lives joins again by itself"),
        ([OTHER.id], "share its partitions among them"),
    ]


def test_without_its_last_member_a_group_is_empty(alice, hers, dry):
    hers.billing.members.append(ALIVE)
    url = f"{hers.url}/billing/members/{ALIVE.id}"
    assert dry(alice.api.delete, url)["changes"]["state"][1] == "Empty"
    hers.billing.offsets.clear()
    said = dry(alice.api.delete, url)["changes"]
    assert (said["state"][1], "name" in said) == ("Empty", False)


def test_while_the_cluster_is_away_nothing_is_foretold(alice, hers, admin):
    admin.away = True
    for path in ("/billing", "/billing/topics/orders"):
        problem(alice.api.delete(f"{hers.url}{path}{DRY}"), 503, "cluster_unavailable")


def test_viewers_and_strangers_are_told_nothing(viewer, charlie, hers):
    problem(viewer.api.delete(f"{hers.url}/billing{DRY}"), 403, "forbidden")
    problem(charlie.api.delete(f"{hers.url}/billing{DRY}"), 404, "not_found")
