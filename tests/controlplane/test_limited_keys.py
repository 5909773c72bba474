"""API keys that may do less than their owner: scopes, instances, addresses, an end; two secrets while one is replaced."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from controlplane.accounts import joining, key_expiry, scopes, services
from controlplane.accounts.models import ApiKey
from controlplane.accounts.scopes import BY_ADDRESS, PARTS, SCOPES, WHOLE_OF, Limits, part_of, scope_of
from controlplane.cli.commands.key import Scope
from controlplane.console.forms.accounts import SCOPE_WORDS
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.models import AuditEntry
from controlplane.mail.outbox import send_due
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Membership, Role

from .conftest import client_of
from .fakes import ManualClock
from .test_foreign_ids import PREFIX, endpoints
from .test_instances_api import WANTED, problem

DAY = timedelta(days=1)
WHOLE_ONLY = {
    "api-keys",
    "access-keys",
    "service-accounts",
    "roles",
    "sso",
    "organisations",
    "capacity",
    "clusters",
    "balance",
    "rebalances",
    "metering",
    "jobs",
    "quota-report",
    "neighbours",
    "fleet",
    "taxes",
}
"""First words of addresses where a key with limits never comes: keys, who signs people in, and what operators do."""


def made(person, **limits):
    """A key with limits, and a client that has it."""
    key, text = services.api_key_create(organisation=person.organisation, user=person.user, name="limited", **limits)
    return key, client_of(text)


def audited(organisation, action):
    return list(AuditEntry.objects.for_organisation(organisation).filter(action=action).order_by("pk"))


def test_every_address_of_rest_is_in_the_table_or_is_named_here_as_closed():
    addresses = {text for _, text in endpoints()}
    closed = {text for text in addresses if scope_of(text) is None}
    expected = {text for text in addresses if text.partition("/")[0] in WHOLE_ONLY}
    assert closed == expected | {"instances/<id:instance_id>/limits"} | ({"schema"} & addresses)
    beginnings = {beginning for beginning, _ in BY_ADDRESS}
    assert all(any(text == each or text.startswith(f"{each}/") for text in addresses) for each in beginnings)
    assert {scope for _, scope in BY_ADDRESS if scope} == {*SCOPES, "any", "names"} - WHOLE_OF.keys()
    taken = {part_of(text, scope_of(text), deletes=deletes) for text in addresses for deletes in (False, True)}
    assert WHOLE_OF.keys() <= taken, "a part that opens nothing"
    assert scopes.PREFIX == PREFIX


def test_console_and_command_line_offer_the_scopes_that_there_are():
    assert tuple(SCOPE_WORDS) == SCOPES == tuple(Scope)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_changes_what_is_its_own_and_nothing_else(scope):
    limits = Limits(scopes=frozenset({scope}))
    for text, deletes in product({text for _, text in endpoints()}, (False, True)):
        whole = scope_of(text)
        own = whole is not None and scope in (whole, part_of(text, whole, deletes=deletes))
        if own or whole == "any":
            limits.admit(f"{PREFIX}{text}", {}, changes=True, deletes=deletes)
            continue
        with pytest.raises(Forbidden):
            limits.admit(f"{PREFIX}{text}", {}, changes=True, deletes=deletes)


@pytest.mark.parametrize(("whole", "parts"), PARTS.items())
def test_a_scope_is_all_of_its_parts_and_each_looks_at_all_that_it_is_about(whole, parts):
    """What was given before there were parts goes on meaning all of it."""
    by_whole, by_parts = Limits(scopes=frozenset({whole})), Limits(scopes=frozenset(parts))
    for each in (by_whole, by_parts):
        assert all(each.has(scope) for scope in (whole, *parts))
    for part in parts:
        alone = Limits(scopes=frozenset({part}))
        assert [scope for scope in SCOPES if alone.has(scope)] == [part]
        looked_at = [scope for scope in SCOPES if alone.covers(scope, changes=False)]
        assert looked_at == [scope for scope in SCOPES if by_whole.covers(scope, changes=False)] == [whole, *parts]


MAY_AND_MAY_NOT = (
    # scopes, what they are let do, what they are refused: method, address behind the instance's, body, the part that it takes
    (
        ["groups"],
        [
            ("post", "/groups/billing/offsets", {"topic": "orders", "to": "earliest"}),
            ("delete", "/groups/billing", None),
        ],
        [("delete", "/topics/orders", None, "topics_delete"), ("post", "/topics", {"name": "new"}, "topics_change")],
    ),
    (
        ["topics_change"],
        [("post", "/topics", {"name": "new"}), ("patch", "/topics/orders", {"configs": {"retention.ms": "60000"}})],
        [("delete", "/topics/orders", None, "topics_delete"), ("delete", "/groups/billing", None, "groups")],
    ),
    (
        ["topics_delete"],
        [("delete", "/topics/orders", None)],
        [("post", "/topics", {"name": "new"}, "topics_change"), ("delete", "/groups/billing", None, "groups")],
    ),
    (
        ["messages_send"],
        [("post", "/topics/orders/messages", {"partition": 0, "value": {"text": "one"}})],
        [
            ("post", "/topics/orders/delete-records", {"partition": 0}, "messages_delete"),
            ("post", "/lake-loads", {}, "messages_load"),
            ("delete", "/lake-tables/load-00000000", None, "messages_delete"),
        ],
    ),
    (
        ["messages_delete"],
        [("post", "/topics/orders/delete-records", {})],
        [
            ("post", "/topics/orders/messages", {}, "messages_send"),
            ("delete", "/lake-loads/load-00000000", None, "messages_load"),
        ],
    ),
    (
        ["instances_change"],
        [("patch", "", {"bandwidth_mib": 21}), ("post", "/restore", None)],
        [
            ("delete", "", None, "instances_delete"),
            ("post", "/destroy", None, "instances_delete"),
            ("post", "s", WANTED, "instances_create"),
        ],
    ),
    (
        ["instances_delete"],
        [("delete", "", None)],
        [("patch", "", {"name": "mine"}, "instances_change"), ("post", "/restore", None, "instances_change")],
    ),
    (["instances_create"], [("post", "s", WANTED)], [("patch", "", {"name": "mine"}, "instances_change")]),
)


@pytest.mark.parametrize(("scopes_wanted", "may", "may_not"), MAY_AND_MAY_NOT)
def test_a_part_of_a_scope_does_what_it_is_called_and_not_what_stands_beside_it(
    alice, instance, scopes_wanted, may, may_not
):
    """By a key with this part alone. `s` behind an instance's address is that of all instances."""
    base = f"/api/v1/instances/{instance.id}"
    assert alice.api.post(f"{base}/topics", {"name": "orders"}).status_code == 201
    _, api = made(alice, scopes=scopes_wanted)

    def answer(method, rest, body):
        address = "/api/v1/instances" if rest == "s" else f"{base}{rest}"
        return getattr(api, method)(address, *([] if body is None else [body]))

    for method, rest, body, part in may_not:
        detail = problem(answer(method, rest, body), 403, "scope_needed")["detail"]
        assert detail.endswith(f"the scope {part} or {WHOLE_OF[part]}"), (method, rest)
    for method, rest, body in may:
        assert answer(method, rest, body).status_code not in (401, 403, 405), (method, rest)


def test_a_key_of_before_does_whatever_its_owner_may(alice, instance):
    assert alice.api.patch(f"/api/v1/instances/{instance.id}", {"name": "mine"}).status_code == 202
    assert alice.api.post("/api/v1/api-keys", {"name": "another"}).status_code == 201
    shown = alice.api.get("/api/v1/me").json()["key"]
    assert (shown["scopes"], shown["instances"], shown["addresses"], shown["expires_at"]) == (None, None, None, None)


def test_a_key_that_reads_changes_nothing_and_sees_no_message_cost_or_audit(alice, instance):
    _, api = made(alice, scopes=["read"])
    base = f"/api/v1/instances/{instance.id}"
    assert api.get(base).status_code == 200
    assert api.get(f"{base}/topics").status_code == 200
    assert problem(api.post(f"{base}/topics", {"name": "t"}), 403, "scope_needed")["detail"].endswith("topics")
    problem(api.post("/api/v1/instances", WANTED), 403, "scope_needed")
    problem(api.get(f"{base}/topics/orders/messages"), 403, "scope_needed")
    problem(api.get("/api/v1/cost"), 403, "scope_needed")
    problem(api.get("/api/v1/audit"), 403, "scope_needed")
    problem(api.get("/api/v1/members"), 403, "scope_needed")
    problem(api.get("/api/v1/api-keys"), 403, "whole_key_needed")


def test_a_key_of_topics_makes_a_topic_and_no_user(alice, instance):
    _, api = made(alice, scopes=["topics"])
    base = f"/api/v1/instances/{instance.id}"
    assert api.post(f"{base}/topics", {"name": "orders"}).status_code == 201
    assert api.get(f"{base}/topics/orders").status_code == 200
    problem(api.post(f"{base}/users", {"name": "ann"}), 403, "scope_needed")
    problem(api.put(f"{base}/topics/orders/whitelist", {"cidrs": []}), 403, "scope_needed")
    problem(api.get(base), 403, "scope_needed")


@pytest.mark.parametrize(
    "member", [{"super_users": ["User:ops"]}, {"allow_everyone_if_no_acl_found": True}, {"audit": False}]
)
def test_who_may_do_what_in_an_instance_is_not_for_the_scope_of_its_sizes(alice, instance, member):
    base = f"/api/v1/instances/{instance.id}"
    _, api = made(alice, scopes=["instances"])
    problem(api.patch(base, {"config": member}), 403, "scope_needed")
    problem(api.post("/api/v1/instances", {**WANTED, "config": member}), 403, "scope_needed")
    assert api.patch(base, {"config": {"default_partitions": 4}}).status_code == 202
    _, api = made(alice, scopes=["instances", "access"])
    assert api.patch(base, {"config": member}).status_code == 202


def test_a_key_sees_operations_of_others_prices_and_groups_only_with_a_scope_for_them(alice, instance):
    base = f"/api/v1/instances/{instance.id}"
    _, api = made(alice, scopes=["messages"])
    problem(api.get("/api/v1/operations"), 403, "scope_needed")
    begun = alice.api.patch(base, {"name": "mine"}).json()["operation_id"]
    assert api.get(f"/api/v1/operations/{begun}").status_code == 200
    problem(api.get(f"{base}/prometheus"), 403, "scope_needed")
    _, api = made(alice, scopes=["read"])
    problem(api.get(f"{base}/audit"), 403, "scope_needed")
    resources = [{each["resource"] for each in one.get("/api/v1/caps").json()["caps"]} for one in (api, alice.api)]
    assert resources[1] - resources[0] == {"price_per_month"}


@pytest.mark.parametrize("path", ["api-keys", "access-keys"])
def test_no_key_with_limits_makes_another(alice, path):
    bound = ({"addresses": ["127.0.0.0/8"]}, {"expires_at": SYSTEM_CLOCK.now() + DAY})
    for limits in ({"scopes": list(SCOPES)}, {"instances": ["ins-00000000"]}, *bound):
        _, api = made(alice, **limits)
        problem(api.post(f"/api/v1/{path}", {"name": "wider"}), 403, "whole_key_needed")


def test_a_key_that_is_bound_to_addresses_rotates_no_other_and_does_all_else(alice, instance):
    whole = ApiKey.objects.for_organisation(alice.organisation).get()
    _, api = made(alice, addresses=["127.0.0.0/8"])
    problem(api.post(f"/api/v1/api-keys/{whole.pk}/rotate", {}), 403, "whole_key_needed")
    assert api.patch(f"/api/v1/instances/{instance.id}", {"name": "mine"}).status_code == 202


def test_a_scope_gives_no_more_than_the_role(viewer, instance):
    _, api = made(viewer, scopes=["topics"])
    problem(api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "t"}), 403, "forbidden")


def test_an_operators_key_with_scopes_is_no_operators(alice, instance):
    alice.user.is_staff = True
    alice.user.save()
    _, api = made(alice, scopes=["instances", "read"])
    problem(api.put(f"/api/v1/instances/{instance.id}/limits", {"topics": 9}), 403, "whole_key_needed")
    problem(api.get("/api/v1/capacity"), 403, "whole_key_needed")


def test_a_key_of_one_instance_finds_no_other(alice, instance):
    other = alice.api.post("/api/v1/instances", {**WANTED, "name": "other"}).json()
    _, api = made(alice, instances=[instance.id])
    assert [each["id"] for each in api.get("/api/v1/instances").json()["items"]] == [instance.id]
    assert api.get(f"/api/v1/instances/{instance.id}").status_code == 200
    theirs = problem(api.get(f"/api/v1/instances/{other['id']}"), 404, "not_found")
    nothing = problem(api.get("/api/v1/instances/ins-00000000"), 404, "not_found")
    assert {**theirs, "detail": theirs["detail"].replace(other["id"], "ins-00000000")} == nothing
    problem(api.get(f"/api/v1/operations/{other['operation_id']}"), 404, "not_found")
    shown = {each["target"] for each in api.get("/api/v1/operations").json()["items"]}
    assert shown == {instance.id}
    assert other["id"] not in api.get("/api/v1/metrics").content.decode()
    problem(api.post("/api/v1/instances", WANTED), 403, "instances_limited")
    problem(api.get("/api/v1/cost"), 403, "instances_limited")
    problem(api.get("/api/v1/audit"), 403, "instances_limited")


def test_an_answer_under_an_idempotency_key_is_not_for_a_key_that_may_not_make_the_call(alice, instance):
    path, body = f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}
    assert alice.api.post(path, body, headers={"Idempotency-Key": "k"}).status_code == 201
    _, api = made(alice, scopes=["read"])
    problem(api.post(path, body, headers={"Idempotency-Key": "k"}), 403, "scope_needed")


def test_a_key_is_good_from_its_addresses_alone(alice):
    key, api = made(alice, addresses=["10.1.0.0/16", "2001:db8::/32"])
    assert api.get("/api/v1/me", REMOTE_ADDR="10.1.2.3").status_code == 200
    assert api.get("/api/v1/me", REMOTE_ADDR="::ffff:10.1.2.3").status_code == 200
    for address in ("10.2.0.1", "127.0.0.1"):
        found = problem(api.get("/api/v1/me", REMOTE_ADDR=address), 403, "address_not_allowed")
        assert address in found["detail"]
    key.refresh_from_db()
    assert (key.last_used_address, key.refused_address) == ("10.1.2.3", "10.2.0.1")
    (entry,) = audited(alice.organisation, "api_key.refused")
    assert (entry.target, entry.address, entry.key) == (key.id, "10.2.0.1", key.id)


def test_a_wrong_secret_learns_nothing_of_addresses_or_an_end(alice):
    key, _ = made(alice, addresses=["10.1.0.0/16"])
    guessed = client_of(f"slc_{key.prefix}_{'a' * 40}")
    problem(guessed.get("/api/v1/me"), 401, "unauthenticated")
    key.refresh_from_db()
    assert key.refused_at is None


def test_a_key_ends_at_its_time_and_says_so(alice):
    key, api = made(alice, expires_at=SYSTEM_CLOCK.now() + DAY)
    assert api.get("/api/v1/me").status_code == 200
    ApiKey.objects.for_organisation(alice.organisation).filter(pk=key.pk).update(expires_at=SYSTEM_CLOCK.now())
    problem(api.get("/api/v1/me"), 401, "api_key_expired")


def test_its_owner_is_told_by_mail_a_week_before_and_once(alice, mails):
    now = SYSTEM_CLOCK.now()
    made(alice, expires_at=now + 8 * DAY)
    made(alice, expires_at=now + 3 * DAY)  # whoever chooses so near a day knows it
    made(alice)
    assert key_expiry.expiries_tell(now=now) == 0
    assert key_expiry.expiries_tell(now=now + 1.5 * DAY) == 1
    assert key_expiry.expiries_tell(now=now + 2 * DAY) == 0
    clock = ManualClock()
    clock.time = now + 2 * DAY
    send_due(clock=clock)
    (mail,) = mails.mails
    assert (mail["To"], mail["Subject"]) == ("alice@example.com", "An API key of yours expires soon")
    assert "limited" not in mail.get_content()


def test_nobody_is_told_of_a_key_that_is_revoked(alice, mails):
    now = SYSTEM_CLOCK.now()
    key, _ = made(alice, expires_at=now + 8 * DAY)
    services.api_key_revoke(organisation=alice.organisation, actor="a", key_id=key.id)
    assert key_expiry.expiries_tell(now=now + 2 * DAY) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes.0"),
        ({"instances": []}, "instances"),
        ({"instances": ["events"]}, "instances.0"),
        ({"addresses": []}, "addresses"),
        ({"addresses": ["10.0.0.1/8"]}, "addresses.0"),
        ({"addresses": ["10.0.0.0/8", 7]}, "addresses.1"),
        ({"addresses": ["::ffff:10.1.0.0/112"]}, "addresses.0"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "9999-12-31T00:00:00Z"}, "expires_at"),
        ({"scope": ["read"]}, "scope"),
    ],
)
def test_what_is_wrong_with_a_limit_is_said(alice, body, field):
    found = problem(alice.api.post("/api/v1/api-keys", {"name": "ci", **body}), 400, "invalid")
    assert [each["field"] for each in found["errors"]] == [field]
    assert ApiKey.objects.for_organisation(alice.organisation).count() == 1


def test_limits_are_shown_and_audited(alice, instance):
    body = {"scopes": ["topics", "read"], "instances": [instance.id], "addresses": ["10.0.0.7"]}
    ends = f"{SYSTEM_CLOCK.now() + 90 * DAY:%Y-%m-%d}T00:00:00Z"
    answer = alice.api.post("/api/v1/api-keys", {"name": "ci", **body, "expires_at": ends})
    assert answer.status_code == 201, answer.content
    shown = next(each for each in alice.api.get("/api/v1/api-keys").json()["items"] if each["name"] == "ci")
    assert shown["scopes"] == ["read", "topics"]
    assert (shown["instances"], shown["addresses"]) == ([instance.id], ["10.0.0.7/32"])
    assert shown["expires_at"] == ends
    entry = audited(alice.organisation, "api_key.create")[-1]
    assert entry.detail["scopes"] == ["read", "topics"]
    assert entry.detail["addresses"] == ["10.0.0.7/32"]


def rotated(person, key_id, **body):
    return person.api.post(f"/api/v1/api-keys/{key_id}/rotate", body or {"overlap_s": 60})


def test_two_secrets_are_good_for_the_overlap_and_then_the_later_one(alice):
    key, before = made(alice, scopes=["read"])
    answer = rotated(alice, key.id, overlap_s=3600)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    after = client_of(answer.json()["key"])
    assert before.get("/api/v1/me").json()["key"]["id"] == after.get("/api/v1/me").json()["key"]["id"] == key.id
    rows = ApiKey.objects.for_organisation(alice.organisation).filter(pk=key.pk)
    rows.update(previous_until=SYSTEM_CLOCK.now())
    problem(before.get("/api/v1/me"), 401, "unauthenticated")
    assert after.get("/api/v1/me").status_code == 200
    (entry,) = audited(alice.organisation, "api_key.rotate")
    assert entry.target == key.id
    assert answer.json()["key"].rpartition("_")[2] not in str(entry.detail)


def test_the_earlier_secret_makes_and_rotates_no_key(alice):
    """Whoever has stolen it would have one without an end."""
    key, before = made(alice)
    after = client_of(rotated(alice, key.id, overlap_s=3600).json()["key"])
    problem(before.post(f"/api/v1/api-keys/{key.id}/rotate", {"overlap_s": 0}), 403, "whole_key_needed")
    problem(before.post("/api/v1/api-keys", {"name": "for ever"}), 403, "whole_key_needed")
    assert before.get("/api/v1/api-keys").status_code == 200
    assert after.post(f"/api/v1/api-keys/{key.id}/rotate", {"overlap_s": 0}).status_code == 200


@pytest.mark.parametrize("make", [services.api_key_create, services.access_key_create])
def test_a_key_that_was_revoked_since_it_was_looked_at_makes_none(alice, make):
    key, _ = made(alice)
    wanted = {"organisation": alice.organisation, "user": alice.user, "name": "late", "by": key}
    services.api_key_revoke(organisation=alice.organisation, actor="a", key_id=key.id)
    with pytest.raises(Unauthenticated):
        make(**wanted)


def test_with_an_overlap_of_0_all_earlier_secrets_end_at_once(alice):
    key, first = made(alice)
    second = client_of(rotated(alice, key.id, overlap_s=3600).json()["key"])
    problem(rotated(alice, key.id), 409, "rotation_under_way")
    third = client_of(rotated(alice, key.id, overlap_s=0).json()["key"])
    for ended in (first, second):
        problem(ended.get("/api/v1/me"), 401, "unauthenticated")
    assert third.get("/api/v1/me").status_code == 200


def test_revoking_ends_both_secrets(alice):
    key, before = made(alice)
    after = client_of(rotated(alice, key.id).json()["key"])
    assert alice.api.delete(f"/api/v1/api-keys/{key.id}").status_code == 204
    for api in (before, after):
        problem(api.get("/api/v1/me"), 401, "unauthenticated")
    problem(rotated(alice, key.id), 409, "key_not_active")


def test_nobody_rotates_the_key_of_somebody_else(alice, bob, charlie):
    key, api = made(bob)
    problem(rotated(alice, key.id), 403, "forbidden")  # or an owner would act as bob
    problem(rotated(charlie, key.id), 404, "not_found")
    assert api.get("/api/v1/me").status_code == 200


def test_keys_of_whoever_is_removed_are_revoked_and_stay_so(alice, bob):
    membership = Membership.objects.get(organisation=alice.organisation, user=bob.user)
    joining.member_remove(organisation=alice.organisation, by=alice.user, membership_id=membership.pk)
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.MEMBER)
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")
    (entry,) = audited(alice.organisation, "api_key.revoke")
    assert entry.actor == "alice@example.com"


def test_who_is_no_member_is_given_no_access_key(alice, charlie):
    with pytest.raises(Forbidden):
        services.access_key_create(organisation=alice.organisation, user=charlie.user, name="of a stranger")


def test_who_is_no_member_is_given_no_key(alice, charlie):
    with pytest.raises(Forbidden):
        services.api_key_create(organisation=alice.organisation, user=charlie.user, name="mine")
