"""Users, ACLs and the question who may do what, in the console."""

from __future__ import annotations

import re

import pytest

from controlplane.access import acls, selectors, users
from quota.core import scram
from tests.controlplane.access.test_users_api import in_force as users_of

from .conftest import problem_beside, text_of

PASSWORD = "correct horse battery"
ACL = {
    "permission": "ALLOW",
    "principal": "User:ann",
    "operation": "READ",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "host": "*",
}


@pytest.fixture
def place(alice, instance):
    return {"organisation": alice.organisation, "actor": "alice@example.com", "instance_id": instance.id}


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}"


def shown_password(page):
    return re.search(r'id="new-password"[^>]*>([^<]+)<', page.content.decode())[1]


def test_pages_without_anything_say_what_there_could_be(at_alice, at):
    assert "No user yet" in text_of(at_alice.get(f"{at}/users"))
    page = text_of(at_alice.get(f"{at}/acls"))
    assert "No ACL yet" in page
    assert "What has no ACL everyone may use who may connect" in page
    assert "Users" in text_of(at_alice.get(f"{at}/access"))


def test_what_holds_where_no_acl_decides_is_changed_by_a_form(at_alice, at, instance):
    assert f"{at}/acl-rules" in at_alice.get(f"{at}/acls").content.decode()
    closed = {"allow_everyone_if_no_acl_found": "no", "super_users": "User:ann\n\n User:root "}
    assert at_alice.post(f"{at}/acl-rules", closed).status_code == 302
    shown = text_of(at_alice.get(f"{at}/acls"))
    assert "What has no ACL only super users may use; super users: User:ann, User:root" in shown
    assert at_alice.post(f"{at}/acl-rules", {"allow_everyone_if_no_acl_found": "yes"}).status_code == 302
    instance.refresh_from_db()
    assert instance.config["allow_everyone_if_no_acl_found"] is True
    assert instance.config["super_users"] == []
    wrong = at_alice.post(f"{at}/acl-rules", {**closed, "super_users": "ann"})
    assert wrong.status_code == 422
    assert "User:admin" in problem_beside(wrong, "super_users")


def test_a_password_that_we_made_is_shown_once(at_alice, at, tree, instance):
    page = at_alice.post(f"{at}/users", {"name": "ann", "mechanisms": "both"})
    password = shown_password(page)
    [user] = users_of(tree, instance)
    assert all(scram.is_password(one, password) for one in user.credentials)
    again = at_alice.get(f"{at}/users")
    assert password not in again.content.decode()
    assert re.search(r"ann SCRAM-SHA-256 8.192 iterations SCRAM-SHA-512 8.192 iterations One", text_of(again))


def test_a_password_that_was_given_is_not_shown(at_alice, at, tree, instance):
    page = at_alice.post(f"{at}/users", {"name": "ann", "password": PASSWORD, "mechanisms": "SCRAM-SHA-512"})
    assert "can log in" in text_of(page)
    assert PASSWORD not in page.content.decode()
    [user] = users_of(tree, instance)
    assert [one.mechanism.value for one in user.credentials] == ["SCRAM-SHA-512"]


def test_what_is_wrong_stands_beside_its_field_and_repeats_no_password(at_alice, at, place):
    users.user_create(**place, name="ann")
    taken = at_alice.post(f"{at}/users", {"name": "ann", "password": PASSWORD, "mechanisms": "both"})
    assert taken.status_code == 422
    assert "There is a user ann" in problem_beside(taken, "name")
    short = at_alice.post(f"{at}/users", {"name": "bob", "password": "too short!!", "mechanisms": "both"})
    assert "at least 12 characters" in problem_beside(short, "password")
    assert PASSWORD not in taken.content.decode()
    assert "too short!!" not in short.content.decode()


def test_a_rotation_says_until_when_two_are_good(at_alice, at, place, tree, instance):
    users.user_create(**place, name="ann", password=PASSWORD)
    page = at_alice.post(f"{at}/user-password/ann", {"keep_previous_s": "86400"})
    assert "The one before it stays good until" in text_of(page)
    assert scram.is_password(users_of(tree, instance)[0].credentials[0], shown_password(page))
    assert "Two, until" in text_of(at_alice.get(f"{at}/users"))
    page = at_alice.post(f"{at}/user-password/ann", {"password": PASSWORD, "keep_previous_s": "0"})
    assert "was changed" in text_of(page)
    assert "Two, until" not in text_of(at_alice.get(f"{at}/users"))


@pytest.mark.parametrize("name", ["..", ".", "a/b", "~ann"])
def test_a_user_of_any_name_has_a_row_whose_links_lead_to_it(at_alice, at, place, name):
    users.user_create(**place, name=name)
    listed = at_alice.get(f"{at}/users").content.decode()
    (way,) = re.findall(r'href="([^"]*/user-password/[^"]*)"', listed)
    assert way.partition("/user-password/")[2].startswith("~")
    assert at_alice.client.get(way).status_code == 200


def test_a_user_is_deleted_from_its_row(at_alice, at, place):
    users.user_create(**place, name="ann")
    page = at_alice.post(f"{at}/user-deletion/ann", follow=True)
    assert "User ann was deleted" in text_of(page)
    assert "No user yet" in text_of(page)


@pytest.mark.parametrize("with_acls", [False, True])
def test_a_user_is_deleted_with_his_acls_or_without_which_is_said(at_alice, at, place, with_acls):
    users.user_create(**place, name="ann")
    at_alice.post(f"{at}/new-acl", ACL)
    assert "Delete 1 ACL of User:ann as well" in text_of(at_alice.get(f"{at}/users"))
    page = text_of(at_alice.post(f"{at}/user-deletion/ann", {"with_acls": "yes"} if with_acls else {}, follow=True))
    assert ("User ann was deleted, with 1 ACL" in page) == with_acls
    assert ("What the user had stays, 1 ACL" in page) == (not with_acls)
    left = selectors.acl_list(organisation=place["organisation"], instance_id=place["instance_id"])
    assert len(left) == (not with_acls)


def test_nothing_is_offered_of_who_has_no_acls(at_alice, at, place):
    users.user_create(**place, name="ann")
    assert "as well" not in text_of(at_alice.get(f"{at}/users"))


def test_an_acl_is_made_found_and_deleted(at_alice, at, place):
    page = at_alice.post(f"{at}/new-acl", ACL, follow=True)
    assert "1 ACL is in force within 2 seconds" in text_of(page)
    assert "orders TOPIC User:ann ALLOW READ *" in text_of(page)
    at_alice.post(f"{at}/new-acl", {**ACL, "principal": "User:bob", "pattern_type": "PREFIXED"})
    assert "names that begin so" in text_of(at_alice.get(f"{at}/acls?q=bob", HTTP_HX_REQUEST="true"))
    assert "User:ann" not in text_of(at_alice.get(f"{at}/acls?q=bob", HTTP_HX_REQUEST="true"))
    gone = at_alice.post(f"{at}/acl-deletion", ACL, follow=True)
    assert "1 ACL was deleted" in text_of(gone)
    assert [
        acl.principal
        for acl in selectors.acl_list(organisation=place["organisation"], instance_id=place["instance_id"])
    ] == ["User:bob"]
    assert "no such ACL any more" in text_of(at_alice.post(f"{at}/acl-deletion", ACL, follow=True))


def test_an_acl_that_cannot_be_says_why(at_alice, at):
    page = at_alice.post(f"{at}/new-acl", {**ACL, "principal": "ann"})
    assert page.status_code == 422
    assert "A principal is" in problem_beside(page, "principal")


def test_a_program_gets_all_that_it_needs(at_alice, at):
    wanted = {"principal": "User:ann", "topic": "orders.", "pattern_type": "PREFIXED", "host": "*"}
    page = at_alice.post(f"{at}/new-acls", {**wanted, "preset": "producer"}, follow=True)
    assert "3 ACLs are in force" in text_of(page)
    without = at_alice.post(f"{at}/new-acls", {**wanted, "preset": "consumer"})
    assert "Belongs to a consumer" in problem_beside(without, "group")
    page = at_alice.post(f"{at}/new-acls", {**wanted, "preset": "consumer", "group": "billing"}, follow=True)
    assert "3 ACLs are in force" in text_of(page)


ASKED = {
    "source": "127.0.0.7",
    "principal": "User:ANONYMOUS",
    "route": "default",
    "operation": "WRITE",
    "resource_type": "TOPIC",
    "resource_name": "orders",
}


def test_the_answer_is_that_of_rest_with_its_rule(at_alice, alice, at, place):
    acls.acls_preset(**place, preset="producer", principal="User:ANONYMOUS", topic="orders")
    for asked in (
        ASKED,
        {**ASKED, "operation": "READ"},
        {**ASKED, "source": "10.0.0.1"},
        {**ASKED, "principal": "User:ann"},
    ):
        told = alice.api.post(f"/api/v1/{at}/access-check", asked).json()
        text = text_of(at_alice.get(f"{at}/access-check", data=asked))
        assert ("Yes" in text) == told["allowed"]
        assert told["reason"][1:] in text
    assert "ALLOW WRITE TOPIC LITERAL orders User:ANONYMOUS *" in text_of(
        at_alice.get(f"{at}/access-check", data=ASKED)
    )


def test_a_question_that_cannot_be_asked_says_why(at_alice, at):
    page = at_alice.get(f"{at}/access-check", data={**ASKED, "source": "nowhere"})
    assert page.status_code == 422
    assert "neither an IPv4" in problem_beside(page, "source")
    assert "May a client at" in text_of(at_alice.get(f"{at}/access-check"))


def test_a_viewer_may_ask_and_sees_no_buttons(at_viewer, at, place):
    users.user_create(**place, name="ann")
    assert "Yes" in text_of(at_viewer.get(f"{at}/access-check", data=ASKED))
    text = text_of(at_viewer.get(f"{at}/users"))
    assert "ann" in text
    assert "Delete" not in text
    assert "New user" not in text


def test_a_cluster_that_is_away_is_said_calmly(at_alice, at, tree):
    tree.away = True
    for page in ("users", "acls", "access-check"):
        answer = at_alice.get(f"{at}/{page}")
        assert answer.status_code == 503
        assert "does not answer" in text_of(answer)
