"""Tables of the console in the order of a column: heads are links, and say by what the table is sorted."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from controlplane.billing.models import MonthCost
from controlplane.billing.pricing.rating import Month
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.groups import earlier
from controlplane.groups.earlier import Earlier
from controlplane.instances.models import Route
from tests.controlplane.alarms.rows import receiver_row
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.loads.rows import load_row
from tests.controlplane.rows import LONG_AGO, instance_row, reason_row

NOON_S = 1_795_348_800


@pytest.fixture
def page(alice, instance, client):
    client.force_login(alice.user)

    def get(path, **query):
        answer = client.get(f"/{alice.organisation.id}{path}", query)
        assert answer.status_code == 200
        return answer.content.decode()

    return get


def names(text):
    return re.findall(r'<a class="row-link[^>]*>([^<]+)</a>', text)


def words(text):
    return re.sub(r"<[^>]+>", "", text)


def head(text, title):
    """How a column is sorted, and where its link leads."""
    found = re.search(rf'<th[^>]*aria-sort="(\w+)"><a class="sort" href="([^"]+)">{title}</a></th>', text)
    return found.groups()


@pytest.fixture
def topics(alice, instance):
    for name, partitions in (("b", 3), ("a", 1), ("c", 2)):
        made = {"name": name, "partitions": partitions}
        assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", made).status_code == 201
    return f"/instances/{instance.id}/topics"


def test_a_click_sorts_and_another_one_turns_it_round(page, topics):
    text = page(topics)
    assert names(text) == ["a", "b", "c"]
    state, link = head(text, "Partitions")
    assert state == "none"
    assert link.endswith("?sort=partitions")
    text = page(topics, sort="partitions")
    assert names(text) == ["a", "c", "b"]
    assert head(text, "Partitions") == ("ascending", link.replace("=", "=-"))
    assert head(text, "Name")[0] == "none"
    text = page(topics, sort="-partitions")
    assert names(text) == ["b", "c", "a"]
    assert head(text, "Partitions")[0] == "descending"


def test_the_order_is_kept_by_a_search_and_a_search_by_the_order(page, topics):
    text = page(topics, sort="-name", q="")
    assert '<input type="hidden" name="sort" value="-name">' in text
    assert "q=b" in head(page(topics, q="b", page="2"), "Name")[1]
    assert "page=" not in head(page(topics, q="b", page="2"), "Name")[1], "another order begins at its beginning"


@pytest.mark.parametrize("word", ["colour", "-", "--name", "<script>", "topic.name", "name "])
def test_what_is_no_column_is_passed_over(page, topics, word):
    assert names(page(topics, sort=word)) == ["a", "b", "c"]


def test_instances(page, alice, instance):
    for number, gib in ((1, 700), (2, 5)):
        row = instance_row(alice.organisation, f"ins-00000000000{number}")
        row.name, row.storage_gib = f"n{number}", gib
        row.save()
    assert names(page("/instances", sort="-storage_gib"))[0] == "n1"
    assert names(page("/instances", sort="storage_gib"))[0] == "n2"
    assert head(page("/instances", sort="name"), "Name")[0] == "ascending"


def test_the_column_of_the_state_is_sorted_by_health_the_worst_first(page, alice, instance):
    for name, state in (("worst", "critical"), ("fair", "degraded"), ("away", None)):
        row = instance_row(alice.organisation, f"ins-{name:0>12}")
        row.name, row.state = name, "running" if state else "isolated"
        row.save()
        if state:
            reason_row(row.id, "flow_unknown", state)
    text = page("/instances")
    state, link = head(text, "State")
    assert (state, link.partition("?")[2]) == ("none", "sort=health")
    assert names(page("/instances", sort="health")) == ["worst", "fair", instance.name, "away"]
    assert head(page("/instances", sort="health"), "State")[0] == "ascending"
    assert names(page("/instances", sort="-health")) == [instance.name, "fair", "worst", "away"]


def test_topics_by_size_with_a_column_of_it(page, alice, instance, admin, topics):
    key = instance.id.removeprefix("ins-")
    admin.sizes.held |= {(f"{key}.a", 0): 700 * 2**20, (f"{key}.c", 1): 5}
    text = page(topics)
    assert "Stored" not in text, "no broker is asked unless somebody wants to know"
    assert f'{topics}?sort=-stored_bytes">The largest first</a>' in text
    text = page(topics, sort="-stored_bytes")
    assert names(text) == ["a", "c", "b"]
    assert re.findall(r'data-label="Stored">([^<]+)<', text) == ["2.05 GiB", "15 B", "0 B"]
    assert head(text, "Stored")[0] == "descending"
    assert names(page(topics, sort="-stored_bytes", q="c")) == ["c"]
    admin.sizes.silent = {1, 2, 3}
    text = page(topics, sort="-stored_bytes")
    assert re.findall(r'data-label="Stored">([^<]+)<', text) == ["\N{EN DASH}"] * 3


@pytest.fixture
def rows_of(alice, instance, admin):
    """Makes what the page at a path has, called b and a."""

    def invited():
        for email in ("b@example.com", "a@example.com"):
            assert alice.api.post("/api/v1/invitations", {"email": email, "role": "viewer"}).status_code == 201

    def ruled():
        for name in ("b", "a"):
            body = {
                "principal": f"User:{name}", "host": "*", "operation": "READ", "permission": "ALLOW",
                "resource_type": "TOPIC", "resource_name": name, "pattern_type": "LITERAL",
            }  # fmt: skip
            assert alice.api.post(f"/api/v1/instances/{instance.id}/acls", body).status_code == 201

    return {
        "acls": ruled,
        "members": invited,
        "lake-loads": lambda: [load_row(instance, f"load-{topic:0>12}", topic=topic) for topic in ("b", "a")],
        "receivers": lambda: [receiver_row(instance, f"rcv-{name:0>12}", name=name) for name in ("b", "a")],
        "transactions": lambda: [
            admin.transactions.begin(f"{instance.id.removeprefix('ins-')}.{name}") for name in ("b", "a")
        ],
    }


@pytest.mark.parametrize(
    ("part", "field", "title", "cell"),
    [
        ("acls", "resource_name", "Resource", '<span class="mono">{}</span>'),
        ("acls", "principal", "Principal", '<span class="mono">User:{}</span>'),
        ("members", "email", "Address", "{}@example.com</th>"),
        ("lake-loads", "topic", "Topic", ">{}</a>"),
        ("receivers", "name", "Receiver", ">{}</a>"),
        ("transactions", "transactional_id", "Transactional id", ">{}</a>"),
    ],
)
def test_tables_of_names_both_ways(page, instance, rows_of, part, field, title, cell):
    rows_of[part]()
    path = "/members" if part == "members" else f"/instances/{instance.id}/{part}"

    def is_a_before_b(**query):
        text = page(path, **query)
        return text.index(cell.format("a")) < text.index(cell.format("b"))

    assert is_a_before_b(sort=field)
    assert not is_a_before_b(sort=f"-{field}")
    assert head(page(path, sort=field), title)[0] == "ascending"
    assert head(page(path, sort="colour"), title)[0] == "none"


def test_routes_by_when_they_close(page, instance):
    for number, days in ((2, 2), (3, 1)):
        Route(
            organisation=instance.organisation, instance=instance, number=number, key=f"r{number}", security="tls",
            state="running", created_at=LONG_AGO, closes_at=LONG_AGO + timedelta(days=10_000 + days),
        ).save(force_insert=True)  # fmt: skip
    path = f"/instances/{instance.id}/access"

    def keys(**query):
        return re.findall(r'<a class="mono" href="[^"]+">([^<]+)</a>', page(path, **query))

    assert keys() == ["default", "r2", "r3"]
    assert keys(sort="closes_at") == ["r3", "r2", "default"]
    assert keys(sort="-id") == ["r3", "r2", "default"]
    assert head(page(path, sort="-security"), "Security")[0] == "descending"


def test_bills_by_what_the_month_costs(page, alice, instance):
    now = SYSTEM_CLOCK.now()
    for name, so_far in (("cheap", 1), ("dear", 200)):
        MonthCost(
            organisation=alice.organisation, instance=instance_row(alice.organisation, f"ins-{name:0>12}", name),
            month=str(Month.of(now)), currency="CNY", so_far=so_far, forecast=300 - so_far, counted_until=now, computed_at=now,
        ).save(force_insert=True)  # fmt: skip

    def bills(**query):
        return re.findall(r'<th scope="row">([^<]+)<span', page("/bills", **query))

    others = {instance.name}
    assert [name for name in bills(sort="so_far") if name not in others] == ["cheap", "dear"]
    assert bills(sort="-so_far")[0] == "dear"
    assert bills(sort="-forecast")[0] == "cheap"
    assert bills(sort="name") == sorted(["cheap", "dear", instance.name])
    assert head(page("/bills", sort="-so_far"), "This month")[0] == "descending"


def test_a_list_that_comes_again_by_itself_stays_sorted(page, instance):
    load_row(instance)
    assert f'hx-get="/{instance.organisation_id}/instances/{instance.id}/lake-loads?sort=-topic"' in page(
        f"/instances/{instance.id}/lake-loads", sort="-topic"
    )


def test_groups_by_lag(page, instance, admin, monkeypatch):
    key = instance.id.removeprefix("ins-")
    for name in ("audit", "billing", "quiet"):
        admin.groups.found[f"{key}.{name}"] = FakeGroup()
    known = {"audit": Earlier(5, 60.0, NOON_S + 59), "billing": Earlier(900, 2.5, NOON_S)}
    monkeypatch.setattr(earlier, "_TELLS", [lambda *_asked: known])
    url = f"/instances/{instance.id}/groups"
    assert "are as of 2026-11-22 12:00 UTC." in words(page(url))
    assert "the order by lag, are of a minute ago." in words(page(url, q="quiet"))
    known["audit"] = Earlier(5, 60.0, NOON_S + 60)
    assert "are as of 2026-11-22 12:00 UTC to 2026-11-22 12:01 UTC." in words(page(url))
    assert names(page(url, sort="-lag_messages")) == ["billing", "audit", "quiet"]
    assert names(page(url, sort="-lag_seconds")) == ["audit", "billing", "quiet"]
    assert names(page(url, sort="-name")) == ["quiet", "billing", "audit"]
    assert names(page(url, by="lag"))[0] == "billing", "the address of before leads where it did"
    assert "by=" not in head(page(url, by="lag"), "Name")[1]
