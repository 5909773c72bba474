"""Trying a change of access in the console: from the forms, the list of who would be cut off, and both ways on."""

from __future__ import annotations

import pytest

from controlplane.access import acls, proposals, selectors
from quota.contracts.proposals import Cut, Seen
from tests.controlplane.access.test_proposals_api import ORDERS, stored, tell

from .conftest import text_of
from .test_access_pages import ACL


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}"


@pytest.fixture
def place(alice, instance):
    return {"organisation": alice.organisation, "actor": "alice@example.com", "instance_id": instance.id}


def test_without_one_the_page_says_what_it_is_for_and_where_to_begin(at_alice, at):
    page = text_of(at_alice.get(f"{at}/proposal"))
    assert "No change is being tried" in page
    assert "cut nobody off" in page
    assert "Try it first" in at_alice.get(f"{at}/access").content.decode()


def test_a_whitelist_is_tried_instead_of_saved(at_alice, at, instance, tree):
    page = at_alice.post(f"{at}/access", {"cidrs": "10.0.0.0/8", "try": "1"}, follow=True)
    assert "Nobody is cut off meanwhile" in text_of(page)
    assert "Who may connect 10.0.0.0/8" in text_of(page)
    assert stored(tree, instance).whitelist == ("10.0.0.0/8",)
    assert tree.spec(instance.id).whitelist == tuple(instance.whitelist)


def test_acls_are_tried_together_with_what_is_tried_already(at_alice, at, instance, tree, place):
    acls.acls_create(**place, acls=[ORDERS])
    at_alice.post(f"{at}/access", {"cidrs": "", "try": "1"})
    at_alice.post(f"{at}/new-acl", {**ACL, "principal": "User:bob", "try": "1"})
    preset = {"principal": "User:eve", "topic": "orders", "pattern_type": "LITERAL", "host": "*", "preset": "producer"}
    at_alice.post(f"{at}/new-acls", {**preset, "try": "1"})
    at_alice.post(f"{at}/acl-deletion", {**ACL, "try": "1"})
    page = text_of(at_alice.post(f"{at}/proposal", {"then": "nobody"}, follow=True))
    assert "only super users may use" in page
    proposal = stored(tree, instance)
    assert proposal.whitelist == ()
    assert {acl.principal for acl in proposal.acls_added} == {"User:bob", "User:eve"}
    assert proposal.acls_removed == (ORDERS,)
    assert proposal.allow_everyone is False
    at = {"organisation": place["organisation"], "instance_id": place["instance_id"]}
    assert selectors.acl_list(**at) == [ORDERS]


def test_who_would_be_cut_off_is_listed_and_the_list_comes_again(at_alice, at, instance, tree, place):
    made = proposals.proposal_make(**place, whitelist=[]).proposal
    assert "Brokers begin to judge within seconds" in text_of(at_alice.get(f"{at}/proposal"))
    for broker in (1, 2, 3):
        tell(tree, instance, broker, made.id, connections=4, requests=20)
    page = text_of(at_alice.get(f"{at}/proposal", HTTP_HX_REQUEST="true"))
    assert "Nobody would be cut off so far" in page
    assert "Judged: 12 connections, 60 requests on 3 brokers" in page
    tell(
        tree,
        instance,
        1,
        made.id,
        connections=4,
        left_out=2,
        cuts={
            Cut("User:bob", "10.0.0.7", "default", "WRITE", "TOPIC:orders"): Seen(3, 5_000, 9_000),
            Cut("User:ann", "10.0.0.8", "default", "CONNECT", ""): Seen(9, 5_000, 9_000),
        },
    )
    page = text_of(at_alice.get(f"{at}/proposal", HTTP_HX_REQUEST="true"))
    assert page.index("User:ann") < page.index("User:bob")
    assert "WRITE TOPIC:orders" in page
    assert "2 more times somebody would be cut off" in page


def test_put_in_force_it_is_and_there_is_none_any_more(at_alice, at, instance, tree, place):
    made = proposals.proposal_make(**place, whitelist=["10.0.0.0/8"]).proposal
    page = at_alice.post(f"{at}/proposal", {"then": "in-force", "id": made.id}, follow=True)
    assert "It is in force within 2 seconds" in text_of(page)
    assert "No change is being tried" in text_of(page)
    assert tree.spec(instance.id).whitelist == ("10.0.0.0/8",)


def test_discarded_nothing_is_in_force(at_alice, at, instance, tree, place):
    made = proposals.proposal_make(**place, whitelist=["10.0.0.0/8"]).proposal
    page = at_alice.post(f"{at}/proposal", {"then": "discard", "id": made.id}, follow=True)
    assert "was discarded" in text_of(page)
    assert stored(tree, instance) is None
    assert tree.spec(instance.id).whitelist == tuple(instance.whitelist)


def test_another_one_meanwhile_is_not_put_in_force(at_alice, at, instance, tree, place):
    first = proposals.proposal_make(**place, whitelist=["10.0.0.0/8"]).proposal
    proposals.proposal_make(**place, whitelist=[])
    page = at_alice.post(f"{at}/proposal", {"then": "in-force", "id": first.id}, follow=True)
    assert "no such proposal" in text_of(page)
    assert tree.spec(instance.id).whitelist == tuple(instance.whitelist)


def test_a_viewer_looks_and_has_no_buttons(at_viewer, at, place):
    made = proposals.proposal_make(**place, whitelist=[]).proposal
    page = text_of(at_viewer.get(f"{at}/proposal"))
    assert "What is being tried" in page
    assert "Put in force" not in page
    assert at_viewer.post(f"{at}/proposal", {"then": "discard", "id": made.id}).status_code == 403


def test_a_cluster_that_is_away_is_said_calmly(at_alice, at, tree):
    tree.away = True
    page = at_alice.get(f"{at}/proposal")
    assert page.status_code == 503
    assert "your data is safe" in text_of(page)
