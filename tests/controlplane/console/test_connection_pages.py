"""Connections in the console: who is connected, who moves most, who was refused, and an address that is let in."""

from __future__ import annotations

import pytest

from controlplane.instances.models import Route
from tests.controlplane.connections.conftest import connection, hers, refused, rest  # noqa: F401  # hers is a fixture
from tests.controlplane.test_custom_roles import given_to, role_of

from .conftest import text_of

DASH = "\N{EN DASH}"
PART = {"HX-Request": "true"}


@pytest.fixture
def at(hers):  # noqa: F811
    """Where her instance is."""
    return f"instances/{hers.instance_id}"


def test_where_nobody_is_connected_the_page_says_what_to_do(at_alice, at):
    text = text_of(at_alice.get(f"{at}/connections"))
    assert "Nobody is connected" in text
    assert "How to connect a client" in text
    assert "Nobody was refused since the brokers started." in text
    assert "Nobody has produced or consumed in the last minute." in text


def test_clients_are_shown_with_what_they_say_of_themselves(at_alice, at, hers):  # noqa: F811
    hers.say(
        1,
        connections=(
            connection("shop-1", sends=2**20, is_sent=512, requests=12),
            connection("", "10.0.0.8", principal="User:ANONYMOUS", software_name="", software_version=""),
            connection("new", "10.0.0.9", principal=""),
        ),
        other_connections=rest(3, 2_048, 0),
    )
    text = text_of(at_alice.get(f"{at}/connections"))
    assert "shop-1 apache-kafka-java 3.9.1 10.0.0.7 broker 1 User:ann route default, PLAINTEXT" in text
    assert "1 MiB/s 512 B/s 12 a second 1 minute ago" in text.replace("\xa0", " ")
    assert "no client id software not said 10.0.0.8 broker 1 anonymous" in text
    assert "not logged in yet" in text
    assert "3 connections more are not told one by one: they send 2 KiB/s" in text


def test_what_clients_say_of_themselves_is_text(at_alice, at, hers):  # noqa: F811
    hers.say(1, connections=(connection("<script>alert(1)</script>", software_name="<b>"),))
    page = at_alice.get(f"{at}/connections").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_search_looks_at_clients_addresses_and_users(at_alice, at, hers):  # noqa: F811
    hers.say(1, connections=(connection("shop"), connection("billing", "10.9.9.9", principal="User:bea")))
    for wanted in ("bill", "9.9.9", "BEA"):
        text = text_of(at_alice.get(f"{at}/connections?q={wanted}", headers=PART))
        assert "billing" in text
        assert "shop" not in text
    assert "No connection matches" in text_of(at_alice.get(f"{at}/connections?q=zzz"))


def test_who_moves_most_is_linked_to_topics(at_alice, at, hers):  # noqa: F811
    hers.say(1, talkers=(hers.talker("shop-1", produces=2**20), hers.talker("billing", consumes=10)))
    page = at_alice.get(f"{at}/connections")
    assert f"shop-1 10.0.0.7 orders 1 MiB/s {DASH}" in text_of(page).replace("\xa0", " ")
    assert f"/{at}/topics/orders" in page.content.decode()


def test_the_page_of_a_topic_brings_who_uses_it_behind_itself(at_alice, at, hers):  # noqa: F811
    assert (
        at_alice.post(f"{at}/new-topic", {"name": "orders", "partitions": 1, "replication_factor": 1}).status_code
        == 302
    )
    hers.say(1, talkers=(hers.talker("shop-1", produces=10), hers.talker("other", "events", produces=5)))
    page = at_alice.get(f"{at}/topics/orders")
    assert f'hx-get="/{at_alice.organisation.id}/{at}/topics/orders/talkers" hx-trigger="load"' in page.content.decode()
    assert hers.door.asked_for == []
    for headers in ({}, PART):
        part = at_alice.get(f"{at}/topics/orders/talkers", headers=headers)
        assert f"shop-1 10.0.0.7 10 B/s {DASH}" in text_of(part).replace("\xa0", " ")
        assert "other" not in text_of(part)
        assert "Produced now 10 B/s" in text_of(part).replace("\xa0", " ")


def test_the_quota_page_leads_to_who_moves_most(at_alice, at, flow_master):
    assert f"/{at}/connections#talkers" in at_alice.get(f"{at}/quota").content.decode()


# --- refused ----------------------------------------------------------------------------------------------------------


def test_who_was_refused_is_told_with_the_reason_in_words(at_alice, at, hers):  # noqa: F811
    hers.say(
        1,
        refused=(
            refused("192.0.2.1", "sasl", 1_200),
            refused("192.0.2.2", "tls_in_clear", 1),
            refused("192.0.2.3", "of_a_later_release", 1),
        ),
        other_refused=9,
    )
    text = text_of(at_alice.get(f"{at}/connections")).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "192.0.2.1 The login failed: wrong user, password or token default 1 200 just now" in text
    assert "TLS, on a route without TLS" in text
    assert "of_a_later_release" in text
    assert "9 refused connections more are longer ago" in text


def test_a_refused_login_names_the_last_user_and_client_with_what_cannot_be_printed_in_escapes(at_alice, at, hers):  # noqa: F811
    hers.say(1, refused=(refused("192.0.2.1", "sasl", user="an<b>n", client_id="a\nb"),))
    text = text_of(at_alice.get(f"{at}/connections"))
    assert "last user: an&lt;b&gt;n last client id: a\\nb" in text


def test_an_address_that_was_refused_is_put_on_the_whitelist(at_alice, at, hers, tree):  # noqa: F811
    hers.say(1, refused=(refused("192.0.2.1"),))
    assert 'name="address" value="192.0.2.1"' in at_alice.get(f"{at}/connections").content.decode()
    answer = at_alice.post(f"{at}/access", {"add": "1", "address": "192.0.2.1"}, follow=True)
    assert "The whitelist was changed." in text_of(answer)
    assert tree.spec(hers.instance_id).whitelist == ("127.0.0.0/8", "192.0.2.1/32")
    page = at_alice.get(f"{at}/connections").content.decode()
    assert 'name="address"' not in page


def test_ones_own_address_is_added_from_there_too(at_alice, at_viewer, at, hers, tree):  # noqa: F811
    page = at_alice.get(f"{at}/connections", REMOTE_ADDR="192.0.2.7")
    assert "You are at 192.0.2.7 as this server sees it, which is not on the list. Add my address" in text_of(page)
    assert f'{at}/access" hidden>' in page.content.decode(), "the form of the page Access"
    seen = at_viewer.get(f"{at}/connections", REMOTE_ADDR="192.0.2.7").content.decode()
    assert 'form="add-address"' not in seen
    at_alice.post(f"{at}/access", {"add": "1"}, REMOTE_ADDR="192.0.2.7")
    assert tree.spec(hers.instance_id).whitelist == ("127.0.0.0/8", "192.0.2.7/32")
    page = at_alice.get(f"{at}/connections", REMOTE_ADDR="192.0.2.7")
    assert "which is on the list." in text_of(page)
    assert 'id="add-address"' not in page.content.decode()


@pytest.mark.parametrize("access", ["look", "change"])
def test_a_role_is_offered_to_add_an_address_where_it_changes_access(alice, bob, at_bob, at, hers, access):  # noqa: F811
    given_to(alice, bob, role_of(alice, scopes={"instances": "change", "access": access}))
    hers.say(1, refused=(refused("192.0.2.1"),))
    page = at_bob.get(f"{at}/connections", REMOTE_ADDR="192.0.2.7").content.decode()
    assert "192.0.2.1" in page
    for button in ('form="add-address"', 'id="add-address"', 'name="address" value="192.0.2.1"'):
        assert (button in page) == (access == "change"), button


def test_one_that_the_route_alone_refuses_leads_to_the_route(at_alice, at, hers):  # noqa: F811
    Route.objects.unscoped("a test").filter(instance_id=hers.instance_id, key="default").update(
        whitelist=["127.0.0.8/32"]
    )
    hers.say(1, refused=(refused("127.0.0.9"), refused("127.0.0.8", "sasl")))
    page = at_alice.get(f"{at}/connections").content.decode()
    assert page.count("The route's own list") == 1
    assert 'name="address"' not in page


@pytest.mark.parametrize("own_list", [None, ["127.0.0.0/8"]])
def test_one_that_was_let_in_since_is_said_to_be(at_alice, at, hers, own_list):  # noqa: F811
    """Refusals are told since the brokers started; the list may be another by now."""
    Route.objects.unscoped("a test").filter(instance_id=hers.instance_id, key="default").update(whitelist=own_list)
    hers.say(1, refused=(refused("127.0.0.9"),))
    page = at_alice.get(f"{at}/connections").content.decode()
    assert "Let in now" in page
    assert "The route's own list" not in page


def test_while_brokers_do_not_answer_nobody_is_said_to_be_alone(at_alice, at, hers):  # noqa: F811
    hers.say(1)
    hers.door.away.add(2)
    assert "Nobody is connected to the brokers that answered" in text_of(at_alice.get(f"{at}/connections"))


@pytest.mark.parametrize("address", ["", "nonsense", "10.0.0.0/8", "127.0.0.1"])
def test_what_is_no_address_or_is_listed_changes_nothing(at_alice, at, hers, tree, address):  # noqa: F811
    answer = at_alice.post(f"{at}/access", {"add": "1", "address": address}, follow=True)
    assert "Nothing was changed" in text_of(answer)
    assert tree.spec(hers.instance_id).whitelist == ("127.0.0.0/8",)


def test_a_viewer_sees_who_was_refused_and_lets_nobody_in(at_viewer, at, hers, tree):  # noqa: F811
    hers.say(1, refused=(refused("192.0.2.1"),))
    page = at_viewer.get(f"{at}/connections")
    assert "192.0.2.1" in text_of(page)
    assert 'name="address"' not in page.content.decode()
    assert at_viewer.post(f"{at}/access", {"add": "1", "address": "192.0.2.1"}).status_code == 403
    assert tree.spec(hers.instance_id).whitelist == ("127.0.0.0/8",)


# --- brokers that do not answer ---------------------------------------------------------------------------------------


def test_a_broker_that_does_not_answer_is_named(at_alice, at, hers):  # noqa: F811
    hers.say(2, connections=(connection("here"),))
    hers.door.away = {1}
    text = text_of(at_alice.get(f"{at}/connections"))
    assert "Broker 1 does not answer: what it knows is missing here." in text
    assert "here" in text


def test_a_cluster_that_is_away_is_said(at_alice, at, admin):
    admin.away = True
    for path in ("connections", "topics/orders/talkers"):
        assert at_alice.get(f"{at}/{path}").status_code == 503
        part = at_alice.get(f"{at}/{path}", headers=PART)
        assert part.status_code == 200
        assert "does not answer" in text_of(part)
