"""``?dry_run=true`` says what a change would do, is refused as the change would be, and leaves nothing behind."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.apps import apps

from controlplane.billing import selectors as billing
from controlplane.clusters.models import PhysicalCluster
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.idempotency.models import RepeatableCall
from controlplane.instances.models import Instance, InstanceState
from controlplane.topics import services as topics

from .admission.conftest import installed  # noqa: F401  # a fixture
from .conftest import WANTED, run_to_the_end
from .test_instances_api import URL, problem

GIB = 2**30
DRY = "?dry_run=true"
DEAR = {**WANTED, "bandwidth_mib_per_s": 240, "storage_gib": 1000, "partitions": 1700}
KEY = {"HTTP_IDEMPOTENCY_KEY": "dry"}


def rows():
    """All rows of all tables, the audit trail among them; but for API keys, which say when they were used."""
    models = [model for model in apps.get_models() if model._meta.label != "accounts.ApiKey"]
    return {model._meta.label: sorted(map(repr, model._base_manager.values())) for model in models}


@pytest.fixture
def unwritten(tree, admin, wakeups):
    """Asserts that nothing at all was written, whatever the test asks for."""

    def everything():
        return rows(), dict(tree.nodes), dict(admin.topics), repr(admin.configs), list(wakeups)

    class Watch:
        def __enter__(self):
            self.before = everything()

        def __exit__(self, *error):
            if error[0] is None:
                assert everything() == self.before

    return Watch()


def price(alice, **sizes):
    plan = billing.plan_of(organisation=alice.organisation, at=SYSTEM_CLOCK.now())
    return str(billing.estimate(plan=plan, **sizes).per_month)


SIZES = {name: WANTED[name] for name in ("bandwidth_mib_per_s", "storage_gib", "partitions")}


def test_buying(alice, brokers, unwritten, django_capture_on_commit_callbacks):
    alice.api.get(URL)
    with unwritten, django_capture_on_commit_callbacks() as awaited:
        answer = alice.api.post(URL + DRY, {**WANTED, "config": {"default_partitions": 7}})
    assert (answer.status_code, awaited) == (200, [])
    said = answer.json()
    contract = {"plan", "price_change", "bytes_to_move", "seconds"}
    assert set(said) == {"dry_run", *contract, "changes", "price", "problems", "affected"}
    assert (said["dry_run"], said["problems"]) == (True, [])
    after = price(alice, **SIZES)
    assert said["price"] == {"per_month_before": None, "per_month_after": after, "at_once": None, "currency": "CNY"}
    assert {name: value[1] for name, value in said["changes"].items() if name in WANTED} == WANTED
    assert {value[0] for value in said["changes"].values()} == {None}
    assert said["changes"]["config.default_partitions"] == [None, 7]
    assert alice.api.get(URL).json()["items"] == []


def test_buying_says_what_was_wished_of_the_place(alice, instance, unwritten):
    PhysicalCluster.objects.update(zones=["a"])
    with unwritten:
        answer = alice.api.post(URL + DRY, {**WANTED, "placement": {"zones": ["a"]}})
    assert answer.json()["changes"]["placement.zones"] == [None, ["a"]]
    with unwritten:
        problem(alice.api.post(URL + DRY, {**WANTED, "placement": {"apart_from": [instance.id]}}), 409, "no_place")


def test_changing_sizes(alice, instance, unwritten):
    with unwritten:
        answer = alice.api.patch(f"{URL}/{instance.id}{DRY}", {"bandwidth_mib_per_s": 7.5, "partitions": 60})
    assert answer.status_code == 200
    before, after = price(alice, **SIZES), price(alice, **SIZES | {"bandwidth_mib_per_s": 7.5})
    steps = ["write specification", "wait for brokers"]
    assert answer.json() == {
        "dry_run": True,
        "plan": [
            {"name": name, "detail": f"{name}: step {at} of 2 of the operation instance.update"}
            for at, name in enumerate(steps, start=1)
        ],
        "price_change": str(Decimal(after) - Decimal(before)),
        "bytes_to_move": 0,
        "seconds": 2,
        "changes": {"bandwidth_mib_per_s": [5, 7.5]},
        "price": {
            "per_month_before": before,
            "per_month_after": after,
            "at_once": None,
            "currency": "CNY",
        },
        "problems": [],
        "affected": [],
    }


def test_changing_name_and_config(alice, instance, unwritten):
    body = {"name": "orders", "config": {"auto_create_topics": True, "default_partitions": 7}}
    with unwritten:
        said = alice.api.patch(f"{URL}/{instance.id}{DRY}", body).json()
    shown = alice.api.get(f"{URL}/{instance.id}").json()
    assert shown["name"] == "events"
    assert said["changes"]["name"] == ["events", "orders"]
    assert said["changes"]["config.default_partitions"] == [shown["config"]["default_partitions"], 7]
    assert said["price"]["per_month_before"] == said["price"]["per_month_after"] == price(alice, **SIZES)


def test_deleting(alice, instance, flow_master, unwritten):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    with unwritten:
        said = alice.api.delete(f"{URL}/{instance.id}{DRY}").json()
    assert said["changes"] == {"state": ["running", "deleting"]}
    assert (said["price"]["per_month_before"], said["price"]["per_month_after"]) == (price(alice, **SIZES), None)
    assert said["problems"] == ["all topics and records (6 GiB on disk) would be deleted for good"]


def test_deleting_what_is_being_deleted(alice, instance, unwritten):
    begun = alice.api.delete(f"{URL}/{instance.id}").json()
    with unwritten:
        said = alice.api.delete(f"{URL}/{instance.id}{DRY}").json()
    assert (said["changes"], said["price"]) == ({}, None)
    assert said["problems"] == ["it is being deleted already"]
    assert run_to_the_end(begun["operation_id"]).state == "succeeded"


def test_a_smaller_storage_that_is_accepted_is_said_to_be_full(alice, instance, flow_master, unwritten):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    body = {"storage_gib": 5, "accept_full_storage": True}
    with unwritten:
        said = alice.api.patch(f"{URL}/{instance.id}{DRY}", body).json()
    assert said["changes"] == {"storage_gib": [10, 5]}
    assert said["problems"] == [
        "6 GiB are used: with 5 GiB producing would be refused at once, until topics are deleted or records expire"
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("post", "", {**WANTED, "partitions": 0}, "invalid"),
        ("post", "", {**WANTED, "surplus": 1}, "invalid"),
        ("post", "", {**WANTED, "whitelist": ["10.0.0.1/8"]}, "invalid"),
        ("post", "", {**WANTED, "bandwidth_mib_per_s": 401, "confirm_price": True}, "organisation_cap"),
        ("post", "", DEAR, "price_unconfirmed"),
        ("patch", "/{id}", {}, "invalid"),
        ("patch", "/{id}", {"confirm_price": True}, "invalid"),
        ("patch", "/{id}", {"storage_gib": 6}, "storage_below_use"),
        ("patch", "/{id}", {"bandwidth_mib_per_s": 401}, "organisation_cap"),
        ("patch", "/{id}", {"config": {"default_replication_factor": 9}}, "invalid"),
        ("patch", "/ins-00000000", {"name": "other"}, "not_found"),
        ("delete", "/ins-00000000", None, "not_found"),
    ],
)  # fmt: skip
def test_a_refusal_is_that_of_the_call_itself(alice, instance, flow_master, unwritten, method, path, body, code):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}
    url = URL + path.format(id=instance.id)
    alice.api.get(URL)
    with unwritten:
        tried = getattr(alice.api, method)(url + DRY, body)
    done = getattr(alice.api, method)(url, body)
    assert done.json()["code"] == code
    assert (tried.status_code, tried.content) == (done.status_code, done.content)
    headers = [
        {name: text for name, text in each.items() if name != "X-Request-Id" and not name.startswith("RateLimit")}
        for each in (tried, done)
    ]
    assert headers[0] == headers[1]


def test_a_full_cluster_refuses(alice, instance, installed, unwritten):  # noqa: F811
    installed(room={"bandwidth_mib_per_s": (2, 1)})
    for call, url, body in (
        (alice.api.post, URL, WANTED),
        (alice.api.patch, f"{URL}/{instance.id}", {"bandwidth_mib_per_s": 9}),
    ):
        with unwritten:
            tried = call(url + DRY, body)
        assert problem(tried, 409, "cluster_full") == call(url, body).json()


def test_one_that_is_being_deleted_is_not_changed(alice, instance, unwritten):
    Instance.objects.unscoped("a test").update(state=InstanceState.DELETING)
    url = f"{URL}/{instance.id}"
    with unwritten:
        tried = alice.api.patch(url + DRY, {"name": "other"})
    assert problem(tried, 409, "instance_deleting") == alice.api.patch(url, {"name": "other"}).json()


def test_strangers_viewers_and_those_without_a_key_are_refused_alike(charlie, viewer, client, instance, unwritten):
    url = f"{URL}/{instance.id}"
    for api, status in ((charlie.api, 404), (viewer.api, 403), (client, 401)):
        api.get(URL)
        for method in ("patch", "delete"):
            body = {"name": "mine"} if api is not client else None
            if api is not client:
                getattr(api, method)(url + DRY, body)  # the first refusal of an hour goes on record, and no other
            with unwritten:
                tried = (
                    getattr(api, method)(url + DRY, body, content_type="application/json")
                    if api is client
                    else (getattr(api, method)(url + DRY, body))
                )
            assert tried.status_code == status


def test_what_was_tried_can_be_done(alice, brokers):
    assert alice.api.post(URL + DRY, WANTED).status_code == 200
    made = alice.api.post(URL, WANTED)
    assert made.status_code == 202
    assert run_to_the_end(made.json()["operation_id"]).state == "succeeded"


def test_false_does_it(alice, brokers):
    assert alice.api.post(f"{URL}?dry_run=false", WANTED).status_code == 202


@pytest.mark.parametrize("query", ["nonsense", "True", "1", "", "true&dry_run=nonsense", "true&dry_run=false"])
def test_what_is_neither_true_nor_false_is_refused(alice, instance, unwritten, query):
    alice.api.get(URL)
    for method, url, body in (
        ("post", URL, WANTED),
        ("patch", f"{URL}/{instance.id}", {"name": "other"}),
        ("delete", f"{URL}/{instance.id}", None),
        ("post", f"{URL}/{instance.id}/topics", {"name": "orders"}),
    ):
        with unwritten:
            refused = problem(getattr(alice.api, method)(f"{url}?dry_run={query}", body), 400, "invalid")
        assert refused["errors"][0]["field"] == "dry_run"
        assert refused["errors"][0]["detail"] in ("must be true or false", "must be said once")


def test_a_change_that_has_no_dry_run_says_so_and_is_not_made(alice, instance, unwritten):
    alice.api.get(URL)
    with unwritten:
        refused = problem(alice.api.post(f"{URL}/{instance.id}/access-check{DRY}", {}), 400, "invalid")
    assert refused["detail"] == "dry_run: this call has no dry run; nothing was changed"


def test_a_key_is_neither_kept_nor_answered_from(alice, brokers):
    keys = RepeatableCall.objects.unscoped("a test")
    assert [alice.api.post(URL + DRY, WANTED, **KEY).status_code for _ in range(2)] == [200, 200]
    assert not keys.exists()
    assert alice.api.post(URL, WANTED, **KEY).status_code == 202
    again = alice.api.post(URL + DRY, WANTED, **KEY)
    assert again.status_code == 200
    assert "Idempotency-Replayed" not in again
    assert keys.count() == 1


def test_a_key_that_cannot_be_one_is_refused_alike(alice, brokers, unwritten):
    bad = {"HTTP_IDEMPOTENCY_KEY": "two words"}
    alice.api.get(URL)
    with unwritten:
        tried = problem(alice.api.post(URL + DRY, WANTED, **bad), 400, "invalid")
    assert tried == alice.api.post(URL, WANTED, **bad).json()


class TestTopics:
    """The brokers are asked to look only (validate_only)."""

    @pytest.fixture
    def url(self, alice, instance):
        url = f"{URL}/{instance.id}/topics"
        body = {"name": "orders", "partitions": 2, "config": {"retention.ms": "60000"}}
        assert alice.api.post(url, body).status_code == 201
        return url

    def test_creating(self, alice, url, unwritten):
        body = {"name": "paid", "partitions": 3, "replication_factor": 2, "config": {"retention.ms": "60000"}}
        with unwritten:
            answer = alice.api.post(url + DRY, body)
        assert answer.status_code == 200
        assert answer.json() == {
            "dry_run": True,
            "plan": [
                {
                    "name": "create",
                    "detail": "create it with name paid, partitions 3, replication_factor 2, config.retention.ms 60000",
                }
            ],
            "price_change": None,
            "bytes_to_move": 0,
            "seconds": 0,
            "changes": {
                "name": [None, "paid"],
                "partitions": [None, 3],
                "replication_factor": [None, 2],
                "config.retention.ms": [None, "60000"],
            },
            "price": None,
            "problems": [],
            "affected": [],
        }

    def test_changing(self, alice, url, unwritten):
        body = {"partitions": 3, "config": {"retention.ms": None, "retention.bytes": "5"}}
        with unwritten:
            answer = alice.api.patch(f"{url}/orders{DRY}", body)
        assert answer.status_code == 200
        assert answer.json()["changes"] == {
            "partitions": [2, 3],
            "config.retention.ms": ["60000", None],
            "config.retention.bytes": [None, "5"],
        }

    def test_deleting(self, alice, url, unwritten):
        alice.api.put(f"{url}/orders/whitelist", {"cidrs": ["10.0.0.0/8"]})
        with unwritten:
            answer = alice.api.delete(f"{url}/orders{DRY}")
        assert answer.status_code == 200
        assert answer.json()["changes"] == {
            "name": ["orders", None],
            "partitions": [2, None],
            "replication_factor": [3, None],
            "whitelist": [["10.0.0.0/8"], None],
        }
        assert answer.json()["problems"] == ["its records would be deleted for good"]

    @pytest.mark.parametrize(
        ("method", "path", "body", "code"),
        [
            ("post", "", {"name": "orders"}, "topic_exists"),
            ("post", "", {"name": "a", "partitions": 1000}, "limit_reached"),
            ("post", "", {"name": "a", "partitions": 1, "replication_factor": 4}, "invalid_replication_factor"),
            ("post", "", {"name": "a/b"}, "invalid"),
            ("patch", "/orders", {}, "invalid"),
            ("patch", "/orders", {"partitions": 1}, "invalid"),
            ("patch", "/orders", {"partitions": 1000}, "limit_reached"),
            ("patch", "/nothing", {"partitions": 5}, "topic_not_found"),
            ("patch", "/__sluice_audit", {"partitions": 5}, "topic_reserved"),
            ("delete", "/nothing", None, "topic_not_found"),
            ("delete", "/__sluice_audit", None, "topic_reserved"),
        ],
    )
    def test_a_refusal_is_that_of_the_call_itself(self, alice, url, unwritten, method, path, body, code):
        with unwritten:
            tried = getattr(alice.api, method)(f"{url}{path}{DRY}", body)
        done = getattr(alice.api, method)(f"{url}{path}", body)
        assert done.json()["code"] == code
        assert (tried.status_code, tried.content) == (done.status_code, done.content)

    def test_what_only_the_brokers_refuse_is_refused(self, alice, instance, url, admin, monkeypatch):
        asked = []
        monkeypatch.setattr(admin, "config_set", lambda _name, changes, **how: asked.append((changes, how)))
        topics.topic_update_check(
            organisation=alice.organisation, instance_id=instance.id, name="orders", config={"retention.ms": "1"}
        )
        assert asked == [({"retention.ms": "1"}, {"validate_only": True})]


def test_a_method_that_there_is_not_is_said_to_be_none(alice, instance):
    """Whatever else is asked for with it: that the call has no dry run is said of calls that there are."""
    url = f"/api/v1/instances/{instance.id}/topic-configs"
    assert alice.api.generic("TRACE", f"{url}{DRY}").status_code == 405
    problem(alice.api.post(f"/api/v1/instances/{instance.id}/groups{DRY}", {"name": "new"}), 400, "invalid")
