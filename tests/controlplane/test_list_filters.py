"""Lists by state, name, target and prefix, by REST: what fits and nothing else, page by page; what cannot be is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import Operation, WorkerPulse
from controlplane.instances import services
from tests.controlplane.fakes import FakeGroup

from .conftest import WANTED
from .rows import reason_row
from .test_instances_api import URL, problem

OPERATIONS = "/api/v1/operations"


def found(person, url, field="id", **query):
    answer = person.api.get(url, query)
    assert answer.status_code == 200, answer.content
    return [row[field] for row in answer.json()["items"]]


@pytest.fixture
def coming(alice, instance):
    """A second instance, which is being made."""
    made, _ = services.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "orders"})
    return made


def test_instances_by_state_and_by_name(alice, charlie, instance, coming):
    assert found(alice, URL) == [instance.id, coming.id]
    assert found(alice, URL, state="running") == [instance.id]
    assert found(alice, URL, state="creating") == [coming.id]
    assert found(alice, URL, state="failed") == []
    assert found(alice, URL, name="orders") == [coming.id]
    assert found(alice, URL, name="order") == [], "a name is whole"
    assert found(alice, URL, name="orders", state="running") == []
    assert found(charlie, URL, name="orders") == []


def test_instances_by_the_health_that_was_last_seen(alice, charlie, instance, coming):
    assert found(alice, URL, health="healthy") == [instance.id], "one that is being made has no health"
    reason_row(instance.id, "storage_full", "critical")
    reason_row(instance.id, "flow_unknown", "degraded")
    assert found(alice, URL, health="critical") == [instance.id]
    assert found(alice, URL, health="degraded") == found(alice, URL, health="healthy") == []
    assert found(alice, URL, health="critical", name="orders") == found(charlie, URL, health="critical") == []
    body = problem(alice.api.get(URL, {"health": "Critical"}), 400, "invalid")
    assert body["errors"] == [{"field": "health", "detail": "must be one of healthy, degraded, critical"}]


def test_while_no_worker_is_there_nothing_is_called_healthy(alice, instance):
    WorkerPulse.objects.create(pk=1, seen_at=SYSTEM_CLOCK.now() - timedelta(minutes=1))
    assert found(alice, URL, health="degraded") == [instance.id]
    assert found(alice, URL, health="healthy") == []


def test_operations_come_oldest_first_or_newest_first(alice, instance, coming):
    oldest = [each["id"] for each in alice.api.get(OPERATIONS).json()["items"]]
    assert len(oldest) > 1
    assert [each["id"] for each in alice.api.get(f"{OPERATIONS}?order=oldest").json()["items"]] == oldest
    found, query = [], "?order=newest&limit=1"
    while query:
        page = alice.api.get(f"{OPERATIONS}{query}").json()
        found += [each["id"] for each in page["items"]]
        query = page["next"] and f"?order=newest&limit=1&cursor={page['next']}"
    assert found == oldest[::-1]
    assert alice.api.get(f"{OPERATIONS}?order=random").status_code == 400


def test_operations_by_state_and_by_target(alice, charlie, instance, coming):
    made, making = Operation.objects.for_organisation(alice.organisation).order_by("created_at")
    assert found(alice, OPERATIONS) == [made.id, making.id]
    assert found(alice, OPERATIONS, state="succeeded") == [made.id]
    assert found(alice, OPERATIONS, state="running") == [making.id]
    assert found(alice, OPERATIONS, target=instance.id) == [made.id]
    assert found(alice, OPERATIONS, target=instance.id, state="running") == []
    assert found(charlie, OPERATIONS, target=instance.id) == []


def test_topics_by_the_beginning_of_their_names(alice, instance):
    url = f"{URL}/{instance.id}/topics"
    for name in ("orders", "orders-late", "clicks", "Orders"):
        assert alice.api.post(url, {"name": name, "partitions": 1}).status_code == 201
    assert found(alice, url, "name", prefix="orders") == ["orders", "orders-late"]
    assert found(alice, url, "name", prefix="late") == []
    assert len(found(alice, url, "name", prefix="")) == 4
    page = alice.api.get(url, {"prefix": "orders", "limit": 1}).json()
    assert found(alice, url, "name", prefix="orders", limit=1, cursor=page["next"]) == ["orders-late"]


def test_groups_by_the_beginning_of_their_names(alice, instance, admin):
    key = instance.id.removeprefix("ins-")
    for name in ("billing", "billing late", "audit"):
        admin.groups.found[f"{key}.{name}"] = FakeGroup()
    url = f"{URL}/{instance.id}/groups"
    assert found(alice, url, "name", prefix="billing") == ["billing", "billing late"]
    assert found(alice, url, "name", prefix=key) == []


@pytest.mark.parametrize(
    ("url", "word", "words"),
    [
        (URL, "gone", "creating, running, failed, isolated, restoring, deleting"),
        (URL, "deleted", "creating, running, failed, isolated, restoring, deleting"),
        (URL, "", "creating, running, failed, isolated, restoring, deleting"),
        (OPERATIONS, "Running", "running, succeeded, failed"),
    ],
)
def test_a_state_that_does_not_exist_is_refused_with_those_that_do(alice, url, word, words):
    body = problem(alice.api.get(url, {"state": word}), 400, "invalid")
    assert body["errors"] == [{"field": "state", "detail": f"must be one of {words}"}]


@pytest.mark.parametrize(("url", "field"), [(URL, "name"), (OPERATIONS, "target")])
def test_what_no_database_takes_is_refused(alice, url, field):
    assert problem(alice.api.get(url, {field: "a\0b"}), 400, "invalid")["errors"][0]["field"] == field


def test_a_prefix_that_is_no_text_is_refused(alice, instance):
    for kind in ("topics", "groups"):
        answer = alice.api.get(f"{URL}/{instance.id}/{kind}", {"prefix": "a\0"})
        assert problem(answer, 400, "invalid")["errors"][0]["field"] == "prefix"
