"""Every page of the console that deletes, ends or gives away what does not come back asks whether it is the person.

So does every page that lets others in: what they have read meanwhile does not come back, whatever is set back later.

The addresses come from the routes themselves: a page that is added later either asks, and is in `DOES`, or says in `WITHOUT` why
it need not.
"""

from __future__ import annotations

import html
import re
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.test import Client

import controlplane.urls  # noqa: F401  # it knows the converters that the routes of the console use
from controlplane.access import acls, proposals, selectors
from controlplane.accounts.models import ApiKey
from controlplane.console import urls
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances.services import instance_whitelist_set
from controlplane.topics.selectors import topic_list
from controlplane.topics.services import topic_whitelist_set
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType

from .conftest import text_of
from .test_who_sees_what import address

__all__ = ["address"]
PASSWORD = "water over the wheel"
ACL = {
    "principal": "User:ann",
    "host": "*",
    "resource_type": "TOPIC",
    "pattern_type": "LITERAL",
    "resource_name": "orders",
    "operation": "READ",
    "permission": "ALLOW",
}
SURE = {"sure": "1"}
ROUTE = {"security": "plaintext", "client_certificates": "none", "scope": "instance"}
PRESET = {"preset": "producer", "principal": "User:eve", "topic": "orders", "pattern_type": "LITERAL", "host": "*"}
LETS_IN = {
    "instance_access": {"cidrs": "0.0.0.0/0"},
    "topic_access": {"scope": "own", "cidrs": "10.0.0.0/8 0.0.0.0/0"},
    "users": {"name": "eve"},
    "acl_new": ACL,
    "acl_preset": PRESET,
    "acl_rules": {"allow_everyone_if_no_acl_found": "no", "super_users": "User:eve"},
    "instance_audit": {"audit": "off"},
    "token_issuers": {"issuer": "https://tokens.example.com", "audiences": "kafka"},
    "route_new": ROUTE,
    "route": {**ROUTE, "public": "on"},
    "route_certificate": {"change": "client-ca", "client_ca": "of my own"},
    "instance_load_new": {"topic": "orders", "kind": "bucket", "schema": "raw", "every_minutes": "30"},
}
"""Pages that open access: to clients, to readers of a bucket, or to whoever is no longer written down."""
DOES = LETS_IN | {
    "topic_delete": {"confirmation": "orders"},
    "topic_settings": {"retention.ms": "1"},
    "topic_records_delete": {"partitions": "0", "everything": "on", "confirmation": "orders"},
    "topics_configure": {"topics": "orders", "change": ""},
    "topic_schema": {"remove": "1"},
    "group_delete": {"confirmation": "readers"},
    "group_reset": {"to": "earliest", "move": ""},
    "group_topic_delete": {"confirmation": "orders"},
    "transaction_end": {"confirmation": "copier"},
    "hanging_transaction_end": {"confirmation": "orders"},
    "instance_new": {"prepaid_months": "1"},
    "instance_delete": {"confirmation": "events"},
    "instance_policies": {"save": "1"},
    "instance_prepaid": {"buy": "1"},
    "instance_load_delete": {"table": "remove"},
    "instance_table_remove": SURE,
    "acl_delete": ACL,
    "proposal": {"then": "in-force", "id": "prp-00000000"},
    "topic_message_new": {"key": "one", "tombstone": "on"},
    "user_delete": {"with_acls": "yes"},
    "user_password": {"keep_previous_s": "0"},
    "token_issuer_delete": SURE,
    "route_removal": {"confirmed": "on"},
    "throttle_rule_delete": SURE,
    "alarm_delete": SURE,
    "receiver_delete": SURE,
    "receiver": {"secret": "1"},
    "budget_delete": SURE,
    "keys": {"name": "deploy"},
    "key_rotate": {"overlap_s": "0"},
    "key_revoke": SURE,
    "access_key_revoke": SURE,
    "members": {"email": "another@example.com", "role": "owner"},
    "member_role": {"role": "viewer"},
    "member_remove": SURE,
    "invitation_withdraw": SURE,
    "second_factor_demand": {"demanded": "1"},
    "roles": {"name": "All"},
    "role": {"name": "All"},
    "role_delete": SURE,
    "service_accounts": {"name": "deploy"},
    "service_account": {"name": "deploy"},
    "service_account_key": {"name": "deploy"},
    "service_account_switch": {"disabled": "1"},
    "service_account_delete": SURE,
    "organisation_settings": {"do": "transfer", "email": "bob@example.com"},
    "organisation_deletion": {"do": "delete", "confirmation": "alice's"},
    "organisation_sso": {"do": "remove"},
    "address_change": {"email": "new@example.com"},
    "passkeys": {"remove": "x"},
    "second_factor": {"do": "remove"},
    "fleet_credit_notes": {"amount": "1"},
    "fleet_invoices": {"reason": "late"},
    "fleet_metering": {"broker": "1"},
}
"""Pages that ask, with a form that one could not take back."""
LOOKS = {
    "topic_records_delete": {"preview": "1"},
    "topics_configure": {"preview": ""},
    "group_reset": {"preview": ""},
    "instance_new": {"name": "", "prepaid_months": ""},
    "topic_message_new": {"key": "one", "value": "", "key_as": "no such way"},
    "instance_policies": {"preview": "1"},
    "instance_prepaid": {"preview": "1"},
    "acl_delete": {**ACL, "try": "1"},
    "proposal": {"then": "discard", "id": "prp-00000000"},
}
"""Forms of the same pages that only show what would be, or do what can be taken back."""
LET_IN_NOBODY = [
    ("instance_access", {"cidrs": "10.1.0.0/16"}),
    ("instance_access", {"cidrs": ""}),
    ("instance_access", {"cidrs": "0.0.0.0/0", "try": "1"}),
    ("instance_access", {"cidrs": "no address"}),
    ("topic_access", {"scope": "own", "cidrs": "10.1.2.0/24"}),
    ("acl_new", {**ACL, "permission": "DENY"}),
    ("acl_new", {**ACL, "try": "1"}),
    ("acl_preset", {**PRESET, "try": "1"}),
    ("acl_rules", {"allow_everyone_if_no_acl_found": "no", "super_users": ""}),
    ("instance_audit", {"audit": "on"}),
    ("route", {**ROUTE, "connections": "7", "connections_per_address": "2"}),
    ("route", {**ROUTE, "closes_at": "2099-01-01T00:00"}),
    ("route", {**ROUTE, "closes_at": "2098-01-01T00:00", "scope": "own", "cidrs": "10.1.0.0/16"}),
    ("route_certificate", {"change": "give-back"}),
]
"""Forms of those pages that take access away, try it, or only count."""
NOBODY_YET = "whoever uses it has not signed in"
SETS = "what it sets is set back by the same form"
MAKES = "what it makes can be deleted"
WITHOUT = {
    "sign_up": NOBODY_YET,
    "sign_up_confirm": NOBODY_YET,
    "sign_in": NOBODY_YET,
    "sign_in_code": NOBODY_YET,
    "sign_in_passkey": NOBODY_YET,
    "sign_in_sso": NOBODY_YET,
    "sign_in_link": NOBODY_YET,
    "sign_in_browser": NOBODY_YET,
    "password_forgotten": NOBODY_YET,
    "password_reset": NOBODY_YET,
    "invitation": "joining: who has the link may leave again, and owners may remove them",
    "passkey_challenge": "it gives a number that is good for nothing alone",
    "sign_out": "whoever ends a session ends it now",
    "sessions": "whoever sees a stranger's session ends it now",
    "account": "a password is changed with the one of today",
    "address_send": "it sends a mail to the address of the account",
    "address_confirm": "it takes a link that was mailed",
    "theme": SETS,
    "language": SETS,
    "organisation_new": MAKES,
    "topic_new": MAKES,
    "group_new": MAKES,
    "alarm_new": MAKES,
    "receivers": MAKES,
    "budget_new": MAKES,
    "throttle_rule_new": MAKES,
    "instance_settings": SETS,
    "instance_config": SETS,
    "instance_elastic": SETS,
    "topic_note": SETS,
    "alarm": SETS,
    "alarm_silence": SETS,
    "alarms_silence": SETS,
    "budget": SETS,
    "throttle_rule": SETS,
    "instance_load": SETS,
    "plan": SETS,
    "leaders_spread": "no message is lost, and clients stay connected",
    "change_cancel": "the change is planned again by the same form",
    "instance_restore": "it takes a deletion back",
    "instance_load_stop": "the next run goes on where this one stops",
    "group_removal": "a member that is taken out comes back by itself",
    "receiver_test": "it sends one message",
    "token_issuer_refresh": "it fetches keys again",
    "fleet_capacity": SETS,
    "fleet_organisation": SETS,
    "fleet_clusters": MAKES,
    "fleet_cluster": SETS,
    "fleet_by_itself": SETS,
    "fleet_rebalancing": "moved partitions are moved back, and no message is lost",
    "fleet_rebalance": "the same",
    "fleet_jobs": "a job that is run again gives the same",
}
"""Pages with a form that ask nothing, and why."""
CALLBACKS = {route.name: route.callback for route in urls.urlpatterns}


def acl_of(principal):
    return Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", principal, "*", AclOperation.READ, Permission.ALLOW)


def is_asked(page) -> bool:
    return "Is it you?" in text_of(page)


def carried(page) -> dict[str, str]:
    body = page.content.decode().partition('<form class="card form narrow"')[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="(?!csrf)([\w.]+)" value="([^"]*)">', body)
    return {name: html.unescape(value) for name, value in found}


@pytest.fixture
def long_ago(alice, bob, address, instance, monkeypatch):
    """She operates the service as well, and has signed in a quarter of an hour ago. Of addresses one network is let in."""
    place = {"organisation": alice.organisation, "actor": "a", "instance_id": instance.id}
    instance_whitelist_set(**place, cidrs=["10.0.0.0/8"])
    topic_whitelist_set(**place, name="orders", cidrs=["10.1.0.0/16"])
    alice.user.set_password(PASSWORD)
    alice.user.is_staff = True
    alice.user.save()
    browser = Client()
    browser.force_login(alice.user)
    later = SYSTEM_CLOCK.now() + timedelta(minutes=15)
    monkeypatch.setattr(
        "controlplane.console.proof.SYSTEM_CLOCK", type("Later", (), {"now": staticmethod(lambda: later)})
    )
    return browser


def test_each_page_with_a_form_asks_or_says_why_not(long_ago, address):
    """GET alone is answered by what has no form."""
    asking = {name for name, callback in CALLBACKS.items() if getattr(callback, "asks_proof", False)}
    assert asking == set(DOES)
    assert not asking & set(WITHOUT)
    unsaid = [
        name
        for name in CALLBACKS
        if name not in asking | set(WITHOUT) | {"sso_back"}
        and long_ago.post(address(name)).status_code != HTTPStatus.METHOD_NOT_ALLOWED
    ]
    assert unsaid == []
    assert set(WITHOUT) <= set(CALLBACKS)


def test_none_of_them_does_anything_before_and_each_goes_on_with_what_was_typed(
    long_ago, address, alice, instance, admin
):
    """All in one world: the second half goes on where the first has left it, since nothing was done."""
    for name, typed in DOES.items():
        page = long_ago.post(address(name), typed)
        assert is_asked(page), name
        assert carried(page) == typed, name
        assert not page.has_header("Location"), name
        wrong = long_ago.post(address(name), {**typed, "proof": "a guess"}) if name == "topic_delete" else page
        assert is_asked(wrong), name
    place = {"organisation": alice.organisation, "instance_id": instance.id}
    assert "orders" in [view.topic.name for view in topic_list(**place)]
    assert any(name.endswith(".readers") for name in admin.groups.found)
    instance.refresh_from_db()
    assert instance.state == "running"
    key = ApiKey.objects.for_organisation(alice.organisation).get(pk=address("key_revoke").split("/")[3])
    assert key.revoked_at is None


def test_looking_at_what_would_be_is_not_asked(long_ago, address):
    for name, typed in LOOKS.items():
        assert not is_asked(long_ago.post(address(name), typed)), name


def test_what_lets_in_nobody_else_is_not_asked(long_ago, address):
    for name, typed in LET_IN_NOBODY:
        assert not is_asked(long_ago.post(address(name), typed)), (name, typed)


@pytest.mark.parametrize("typed", [{"add": "1"}, {"add": "1", "address": "203.0.113.7"}, {"add": "1", "try": "1"}])
def test_one_address_more_is_asked_for(long_ago, address, instance, typed):
    assert is_asked(long_ago.post(address("instance_access"), typed))
    instance.refresh_from_db()
    assert instance.whitelist == ["10.0.0.0/8"]


def test_whoever_loosens_what_is_tight_already_changes_nothing_and_is_asked_when_it_is_tight_again(long_ago, address):
    """What counts is what there is now, not what the page showed when it was opened."""
    everyone = {"allow_everyone_if_no_acl_found": "yes", "super_users": ""}
    assert not is_asked(long_ago.post(address("acl_rules"), everyone))
    assert not is_asked(long_ago.post(address("acl_rules"), {**everyone, "allow_everyone_if_no_acl_found": "no"}))
    assert is_asked(long_ago.post(address("acl_rules"), everyone))


def test_a_network_is_let_in_after_the_password(long_ago, address, instance):
    sent = carried(long_ago.post(address("instance_access"), LETS_IN["instance_access"]))
    page = long_ago.post(address("instance_access"), {**sent, "proof": PASSWORD})
    assert page.status_code == HTTPStatus.FOUND
    instance.refresh_from_db()
    assert instance.whitelist == ["0.0.0.0/0"]


@pytest.mark.parametrize("name", ["group_reset", "topics_configure", "instance_prepaid"])
def test_a_button_that_looks_hides_none_that_does(long_ago, address, name):
    """Both at once, as a browser never sends them."""
    does = {"instance_prepaid": {"set": "1"}}.get(name, DOES[name])
    assert is_asked(long_ago.post(address(name), {**does, "preview": "1"}))


def test_a_topic_goes_after_the_password(long_ago, address, alice, instance):
    sent = carried(long_ago.post(address("topic_delete"), DOES["topic_delete"]))
    page = long_ago.post(address("topic_delete"), {**sent, "proof": PASSWORD})
    assert page.status_code == HTTPStatus.FOUND
    assert "orders" not in [
        view.topic.name for view in topic_list(organisation=alice.organisation, instance_id=instance.id)
    ]


def test_a_group_goes_after_the_password(long_ago, address, admin):
    sent = carried(long_ago.post(address("group_delete"), DOES["group_delete"]))
    assert long_ago.post(address("group_delete"), {**sent, "proof": PASSWORD}).status_code == HTTPStatus.FOUND
    assert not any(name.endswith(".readers") for name in admin.groups.found)


def test_a_key_ends_after_the_password(long_ago, address, alice):
    assert long_ago.post(address("key_revoke"), {**SURE, "proof": PASSWORD}).status_code == HTTPStatus.FOUND
    assert ApiKey.objects.for_organisation(alice.organisation).exclude(revoked_at=None).exists()


def test_an_acl_is_not_deleted_by_trying_that_and_putting_it_in_force(long_ago, address, alice, instance):
    place = {"organisation": alice.organisation, "instance_id": instance.id}
    acls.acls_create(**place, actor="a", acls=[acl_of("User:ann"), acl_of("User:bob")])
    assert long_ago.post(address("acl_delete"), {**ACL, "try": "1"}).status_code == HTTPStatus.FOUND
    made = proposals.proposal_get(**place).proposal
    sent = {"then": "in-force", "id": made.id}
    assert is_asked(long_ago.post(address("proposal"), sent))
    assert len(selectors.acl_list(**place)) == 2
    assert long_ago.post(address("proposal"), {**sent, "proof": PASSWORD}).status_code == HTTPStatus.FOUND
    assert [each.principal for each in selectors.acl_list(**place)] == ["User:bob"]


def test_whoever_has_signed_in_just_now_is_not_asked(address, alice):
    browser = Client()
    browser.force_login(alice.user)
    for name in ("topic_settings", "throttle_rule_delete", "budget_delete", "user_delete", "key_revoke", *LETS_IN):
        assert not is_asked(browser.post(address(name), DOES[name])), name
