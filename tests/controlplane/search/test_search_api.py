"""GET /api/v1/search: what is found, in which order, and by whom."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts import services as accounts
from controlplane.core.models import Operation
from controlplane.search import of_access, of_books
from controlplane.search.kinds import KINDS
from controlplane.throttle_rules.services import throttle_rule_create
from controlplane.topics import services as topics
from tests.controlplane.alarms.rows import receiver_row
from tests.controlplane.billing.rows import note_row
from tests.controlplane.budgets.rows import budget_row
from tests.controlplane.conftest import client_of
from tests.controlplane.loads.rows import load_row
from tests.controlplane.rows import custom_role_row, instance_row, service_account_row
from tests.controlplane.test_custom_roles import given_to, role_of
from tests.controlplane.test_instances_api import problem
from tests.controlplane.token_issuers.rows import token_issuer_row

from .conftest import SEARCH, found, group_row, looked

MORE_OF_READ = {"receiver", "token_issuer", "throttle_rule"}
ALL = [
    ("instance", "zebra"),
    ("topic", "zebra-events"),
    ("topic", "other"),
    ("group", "zebra-readers"),
    ("user", "zebra-app"),
    ("acl", "User:zebra-app ALLOW READ TOPIC zebra-events"),
    ("alarm", "zebra alarm"),
    ("invoice", "inv-00000001"),
    ("invitation", "zebra@example.com"),
    ("api_key", "zebra key"),
]


def limited(person, **limits):
    return client_of(accounts.api_key_create(organisation=person.organisation, user=person.user, name="l", **limits)[1])


# --- what is found ---------------------------------------------------------------------------------------------------------


def test_one_text_finds_something_of_every_kind(alice, zoo):
    assert found(alice.api, "zebra") == ALL


def test_an_item_says_where_it_is(alice, zoo):
    group = next(each for each in looked(alice.api, "zebra-readers")["items"] if each["kind"] == "group")
    assert group == {
        "kind": "group",
        "id": "zebra-readers",
        "name": "zebra-readers",
        "where": "zebra",
        "instance_id": zoo.id,
        "url": f"/api/v1/instances/{zoo.id}/groups/zebra-readers",
        "page": f"/{alice.organisation.id}/instances/{zoo.id}/groups/zebra-readers",
    }
    for item in looked(alice.api, "zebra")["items"]:
        assert item["url"].startswith("/api/v1/"), item


def test_what_items_name_is_there_by_rest(alice, zoo):
    for text in ("zebra", "2026-03", "alice", zoo.id, "10.7.3.9", "default"):
        for item in looked(alice.api, text)["items"]:
            assert alice.api.get(item["url"]).status_code in (200, 405), item["url"]


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        ("10.7.3.9", "address", ["10.7.0.0/16", "10.7.3.0/24"]),
        ("10.7.3.0/24", "address", ["10.7.3.0/24", "10.7.0.0/16"]),
        ("10.7.3", "address", ["10.7.3.0/24"]),
        ("10.8.0.1", "address", []),
        ("0.7.3.", "address", ["10.7.3.0/24"]),
        ("2026-03", "month", ["2026-03"]),
        ("2026-03", "invoice", ["inv-00000001"]),
        ("INV-1", "invoice", ["inv-00000001"]),
        ("bob", "member", ["bob@example.com"]),
        ("sdk", "access_key", ["sdk"]),
        ("akid", "access_key", ["sdk"]),
        ("black", "topic", ["other"]),
        ("stripes zebra", "topic", ["other"]),
        ("default", "route", ["default"]),
        ("plaintext", "route", ["default"]),
        ("ann", "user", []),
    ],
)
def test_things_are_found_by_what_they_have(alice, zoo, text, kind, names):
    assert [name for _, name in found(alice.api, text, kind=kind)] == names


def test_an_instance_is_found_by_where_it_listens(alice, charlie, zoo):
    bootstrap = alice.api.get(f"/api/v1/instances/{zoo.id}").json()["bootstrap"].split(",")[0]
    port = bootstrap.rpartition(":")[2]
    for text in (bootstrap, port):
        item = looked(alice.api, text, kind="instance")["items"][0]
        assert (item["id"], item["where"].rpartition(":")[2]) == (zoo.id, port)
        assert found(charlie.api, text) == []
    assert found(alice.api, f"elsewhere.example.com:{port}", kind="instance") == []


def test_an_instance_is_found_by_its_name_and_id_together(alice, zoo):
    for text in (f"zebra {zoo.id}", f"{zoo.id} zebra", f"zeb {zoo.id[-4:]}"):
        assert found(alice.api, text, kind="instance") == [("instance", "zebra")], text


@pytest.mark.parametrize(("scopes", "names"), [(["topics"], []), (["access"], ["zebra"]), (["instances"], ["zebra"])])
def test_where_it_listens_finds_it_for_who_may_see_that_alone(alice, zoo, scopes, names):
    bootstrap = alice.api.get(f"/api/v1/instances/{zoo.id}").json()["bootstrap"].split(",")[0]
    for text in (bootstrap, bootstrap.rpartition(":")[2]):
        assert [name for _, name in found(limited(alice, scopes=scopes), text, kind="instance")] == names, text


def test_operations_are_looked_through_from_the_newest_on_without_reading_all(alice, zoo, monkeypatch):
    monkeypatch.setattr(of_books, "NEWEST", 1)
    older = Operation.objects.for_organisation(alice.organisation).order_by("-created_at").last()
    older.pk, older.created_at = "op-theolderone", older.created_at - timedelta(hours=1)
    older.save(force_insert=True)
    ids = list(
        Operation.objects.for_organisation(alice.organisation).order_by("-created_at").values_list("pk", flat=True)
    )
    assert len(ids) > 1
    with CaptureQueriesContext(connection) as asked:
        assert found(alice.api, "ins", kind="operation") == [("operation", ids[0])]
    assert not [each["sql"] for each in asked if each["sql"].count("SELECT") > 1 and "core_operation" in each["sql"]]
    assert found(alice.api, ids[-1], kind="operation") == [("operation", ids[-1])]


def test_an_operation_is_found_by_its_id_its_target_and_its_kind(alice, zoo):
    operation = Operation.objects.for_organisation(alice.organisation).first()
    assert found(alice.api, operation.id, kind="operation") == [("operation", operation.id)]
    assert ("operation", operation.id) in found(alice.api, zoo.id, kind="operation", limit=50)
    assert ("operation", operation.id) in found(alice.api, "instance.create", kind="operation", limit=50)


def test_a_key_is_found_by_its_name_and_the_part_that_lists_show(alice, zoo):
    key = alice.api.post("/api/v1/api-keys", {"name": "quagga"}).json()
    prefix, secret = key["key"].split("_")[1:]
    for text in ("quagga", prefix, f"slc_{prefix}", key["id"]):
        assert found(alice.api, text, kind="api_key") == [("api_key", "quagga")], text
    for text in (secret, key["key"], secret[:12]):
        assert found(alice.api, text) == [], "a secret finds nothing"
    assert secret not in json.dumps(looked(alice.api, "quagga"))


def test_nothing_that_verifies_a_password_is_found(alice, zoo, tree):
    data = next(data for path, (data, _) in tree.nodes.items() if path.endswith(f"users/{zoo.id}"))
    credential = json.loads(data)["users"][0] if "users" in json.loads(data) else json.loads(data)
    words = [word for word in json.dumps(credential).replace('"', " ").replace(",", " ").split() if len(word) > 20]
    assert words
    for word in words:
        assert found(alice.api, word[:90], kind="user") == []


@pytest.fixture
def herd(alice, zoo):
    """One of each kind whose ids stand in mails, reasons and the audit log."""
    receiver_row(zoo, name="pager of the herd")
    budget_row(alice.organisation, name="herd budget")
    custom_role_row(alice.organisation)
    service_account_row(alice.organisation)
    load_row(zoo, bucket="herd-lake", path="zebras")
    token_issuer_row(zoo)
    note_row(alice.organisation)
    rule = throttle_rule_create(
        organisation=alice.organisation, actor="a", instance_id=zoo.id, kind="client", users=["herdsman"], clients=[None],
        produce_mib_per_s=1,
    )  # fmt: skip
    return rule.id


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("rcv-000000000001", "receiver", "pager of the herd"),
        ("pager", "receiver", "pager of the herd"),
        ("hooks.example.com", "receiver", "pager of the herd"),
        ("bud-000000000001", "budget", "herd budget"),
        ("herd budget", "budget", "herd budget"),
        ("rol-abcdefghijkl", "role", "rol-abcdefghijkl"),
        ("svc-abcdefghijkl", "service_account", "svc-abcdefghijkl"),
        ("load-000000000001", "lake_load", "load-000000000001"),
        ("herd-lake", "lake_load", "load-000000000001"),
        ("iss-000000000001", "token_issuer", "https://login.example.com/iss-000000000001"),
        ("login.example.com", "token_issuer", "https://login.example.com/iss-000000000001"),
        ("crn-00000001", "credit_note", "crn-00000001"),
        ("2026-03", "credit_note", "crn-00000001"),
    ],
)
def test_whose_id_somebody_has_read_somewhere_is_found_by_it(alice, herd, text, kind, name):
    (item,) = looked(alice.api, text, kind=kind)["items"]
    assert item["name"] == name
    assert alice.api.get(item["url"]).status_code == 200


def test_a_throttle_rule_is_found_by_its_id_and_by_whom_it_names(alice, zoo, herd):
    for text in (herd, "herdsman"):
        (item,) = looked(alice.api, text, kind="throttle_rule")["items"]
        assert (item["name"], item["where"]) == (herd, "zebra · client · herdsman")
        assert alice.api.get(item["url"]).status_code == 200
    assert found(alice.api, "nobody", kind="throttle_rule") == []


def test_none_of_them_is_anothers(alice, charlie, herd):
    ids = ("rcv-0", "bud-0", "rol-a", "svc-a", "load-0", "iss-0", "crn-1", herd)
    assert [text for text in ids if found(charlie.api, text)] == []
    assert [text for text in ids if not found(alice.api, text)] == []


def test_roles_and_service_accounts_are_for_owners(bob, viewer, herd):
    for person in (bob, viewer):
        for kind in ("role", "service_account"):
            problem(person.api.get(SEARCH, {"q": "abc", "kind": kind}), 403, "forbidden")
        assert found(person.api, "abcdefghijkl") == []


def test_what_is_deleted_is_not_found(alice, zoo, herd):
    assert alice.api.delete("/api/v1/service-accounts/svc-abcdefghijkl").status_code == 204
    assert found(alice.api, "svc-abcdefghijkl") == []


def test_a_key_of_some_instances_finds_no_receiver_of_others(alice, herd):
    other = instance_row(alice.organisation, "ins-zebra000")
    api = limited(alice, instances=[other.id])
    assert [found(api, text) for text in ("rcv-0", "load-0", "iss-0", herd)] == [[], [], [], []]


# --- the order, and how much ------------------------------------------------------------------------------------------------


def test_the_exact_name_is_first_then_beginnings_then_words(alice, zoo):
    for name in ("lion", "a-lion", "stallion", "lioness", "zz.lion.zz"):
        topics.topic_create(organisation=alice.organisation, actor="a", instance_id=zoo.id, name=name, partitions=1)
        group_row(zoo.id, name)
    for kind in ("topic", "group"):
        names = [name for _, name in found(alice.api, "lion", kind=kind)]
        assert names == ["lion", "lioness", "a-lion", "zz.lion.zz", "stallion"], kind


def test_there_are_so_many_of_each_and_it_is_said_that_there_are_more(alice, zoo):
    for number in range(7):
        group_row(zoo.id, f"herd-{number}")
    kinds = {each["kind"]: each for each in looked(alice.api, "herd")["kinds"]}
    assert (kinds["group"]["found"], kinds["group"]["has_more"], kinds["group"]["seen_within_s"]) == (5, True, 600)
    assert (kinds["topic"]["found"], kinds["topic"]["has_more"], kinds["topic"]["seen_within_s"]) == (0, False, None)
    assert kinds["group"]["more"] == f"/{alice.organisation.id}/search?q=herd&kind=group"
    one = looked(alice.api, "herd", limit=7)
    assert (len(one["items"]), any(each["has_more"] for each in one["kinds"])) == (7, False)


def test_groups_of_long_ago_are_not_there(alice, zoo):
    group_row(zoo.id, "zebra-gone", 1_700_000_000)
    assert found(alice.api, "zebra-gone") == []


@pytest.mark.parametrize("text", ["%", "_", "zebra%", "\\", "zebr_", "%zebra%", "'", '"', "[", "z*a"])
def test_wildcards_are_letters_like_others(alice, zoo, text):
    assert [each for each in found(alice.api, text) if each[0] not in ("operation", "alarm")] == []


@pytest.mark.parametrize("text", ["", "  ", "x" * 101, "a\x00b", "a\x1bb"])
def test_what_cannot_be_looked_for_is_refused(alice, text):
    assert problem(alice.api.get(SEARCH, {"q": text}), 400, "invalid")["errors"][0]["field"] == "q"


def test_so_is_what_the_address_does_not_take(alice):
    for query in (
        {},
        {"q": "a", "kind": "secret"},
        {"q": "a", "limit": 51},
        {"q": "a", "limit": 0},
        {"q": "a", "kin": "topic"},
    ):
        problem(alice.api.get(SEARCH, query), 400, "invalid")


# --- what is away -----------------------------------------------------------------------------------------------------------


def test_a_cluster_that_is_away_hides_what_is_kept_there_and_it_is_said(alice, zoo, tree):
    tree.away = True
    answer = looked(alice.api, "zebra")
    assert [(each["kind"], each["name"]) for each in answer["items"]] == [
        each for each in ALL if each[0] not in ("topic", "user", "acl")
    ]
    partial = {each["kind"] for each in answer["kinds"] if each["is_partial"]}
    assert partial == {"topic", "user", "acl", "throttle_rule"}


def test_one_letter_finds_no_user_and_it_is_said(alice, zoo):
    kinds = {each["kind"]: each for each in looked(alice.api, "z")["kinds"]}
    for kind in ("user", "acl", "throttle_rule"):
        assert (kinds[kind]["found"], kinds[kind]["is_partial"]) == (0, True), kind
    assert not kinds["topic"]["is_partial"]


def test_things_of_more_kinds_are_found_by_the_same_questions(alice, herd):
    with CaptureQueriesContext(connection) as asked:
        assert len(looked(alice.api, "herd")["items"]) >= 4
    of_authentication = 3
    assert len(asked) <= 14 + of_authentication, [each["sql"][:80] for each in asked]


def test_users_of_many_instances_are_not_all_looked_at_and_it_is_said(alice, zoo, monkeypatch):
    instance_row(alice.organisation, "ins-aaaaaaaa")
    monkeypatch.setattr(of_access, "MOST_LOOKED", 1)
    first = looked(alice.api, "zebra-app", kind="user")  # events comes before zebra
    assert (first["items"], first["kinds"][0]["is_partial"]) == ([], True)
    assert found(alice.api, "zebra-app", kind="user", instance_id=zoo.id) == [("user", "zebra-app")]


def test_a_note_of_a_topic_that_is_gone_finds_nothing(alice, zoo, admin):
    assert alice.api.delete(f"/api/v1/instances/{zoo.id}/topics/other").status_code in (202, 204)
    assert found(alice.api, "stripes") == []


# --- who finds what ---------------------------------------------------------------------------------------------------------


def test_nothing_of_anothers_is_found(charlie, zoo):
    for text in ("zebra", zoo.id, "10.7.3.9", "2026-03", "alice", "inv-1", "sdk", "stripes"):
        items = looked(charlie.api, text, instance_id=zoo.id)["items"]
        assert [each for each in items if each["kind"] != "month"] == [], text


def test_anothers_id_and_one_that_is_not_there_are_answered_alike(charlie, zoo):
    theirs, none = (
        charlie.api.get(SEARCH, {"q": "zebra", "instance_id": each}).content for each in (zoo.id, "ins-00000000")
    )
    assert theirs == none


def test_an_invitation_says_the_role_of_ones_own(alice, zoo):
    role = alice.api.post("/api/v1/roles", {"name": "Night watch", "scopes": {"read": "look"}}).json()
    body = {"email": "zebra-2@example.com", "custom_role": role["id"]}
    assert alice.api.post("/api/v1/invitations", body).status_code == 201
    items = looked(alice.api, "zebra-2@", kind="invitation")["items"]
    assert [each["where"] for each in items] == ["Night watch"]


def test_invitations_are_for_owners(bob, viewer, zoo):
    for person in (bob, viewer):
        assert found(person.api, "zebra@") == []
        problem(person.api.get(SEARCH, {"q": "zebra@", "kind": "invitation"}), 403, "forbidden")


@pytest.mark.parametrize(
    ("scopes", "kinds"),
    [
        (["topics"], {"instance", "topic", "group"}),
        (["access"], {"instance", "user", "acl", "route", "address", "token_issuer"}),
        (["billing"], {"instance", "invoice", "credit_note", "budget", "month"}),
        (["alarms"], {"instance", "alarm", "receiver"}),
        (["messages"], {"instance", "lake_load"}),
        (["members"], {"member", "invitation"}),
        (
            ["read"],
            {"instance", "topic", "group", "user", "acl", "route", "address", "alarm", "operation", *MORE_OF_READ},
        ),
    ],
)
def test_a_key_with_scopes_finds_what_it_may_look_at(alice, zoo, scopes, kinds):
    api = limited(alice, scopes=scopes)
    assert {each["kind"] for each in looked(api, "zebra")["kinds"]} == kinds
    assert {kind for kind, _ in found(api, "zebra")} <= kinds
    for kind in {kind.name for kind in KINDS} - kinds:
        assert api.get(SEARCH, {"q": "zebra", "kind": kind}).status_code == 403, kind


def test_a_key_of_some_instances_finds_these_alone(alice, zoo):
    other = instance_row(alice.organisation, "ins-zebra000")
    group_row(other.id, "zebra-others")
    api = limited(alice, instances=[other.id])
    assert found(api, "zebra") == [("instance", "events"), ("group", "zebra-others")]
    assert {each["kind"] for each in looked(api, "zebra")["kinds"]} & {"invoice", "member", "api_key", "month"} == set()
    assert found(api, "instance.create") == []


def test_a_role_of_some_instances_finds_these_alone(alice, bob, zoo):
    other = instance_row(alice.organisation, "ins-zebra000")
    given_to(alice, bob, role_of(alice, scopes={"read": "look", "billing": "look"}, instances=[other.id]))
    assert found(bob.api, "zebra") == [("instance", "events")]


def test_a_role_finds_its_own_keys_alone(alice, bob, zoo):
    given_to(alice, bob, role_of(alice, scopes={"billing": "look"}))
    assert found(bob.api, "zebra key") == []
    assert found(bob.api, "test", kind="api_key") == [("api_key", "test")]
    assert bob.api.get(SEARCH, {"q": "zebra", "kind": "topic"}).status_code == 403


def test_nobody_is_nobody(client, zoo):
    assert client.get(SEARCH, {"q": "zebra"}).status_code == 401


# --- what it costs ----------------------------------------------------------------------------------------------------------


def test_it_asks_a_dozen_questions_whatever_there_is(alice, zoo):
    for number in range(20):
        instance_row(alice.organisation, f"ins-many{number:04}")
    with CaptureQueriesContext(connection) as asked:
        looked(alice.api, "zebra")
    of_authentication = 3
    assert len(asked) <= 14 + of_authentication, [each["sql"][:80] for each in asked]
