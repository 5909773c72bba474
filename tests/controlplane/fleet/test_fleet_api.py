"""What operators list over all organisations by REST: narrowed, sorted, page by page; for nobody else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.billing.pricing.rating import Month
from controlplane.billing.waiting import Waiting
from controlplane.clusters.models import Broker, BrokerAbsence
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, Operation
from controlplane.core.staff_views import VIEWED
from controlplane.fleet import broker_state, listing, problems
from controlplane.fleet.models import BrokerSample
from controlplane.instances.models import Instance
from controlplane.metering.models import Loss
from controlplane.tenants.models import Organisation
from tests.controlplane.conftest import WANTED
from tests.controlplane.test_instances_api import problem

FLEET = "/api/v1/fleet"
LISTS = ("instances", "organisations", "operations", "brokers", "heat", "problems")
FLOWING = {
    "produce": {
        "limit": 5,
        "branch": "proportional",
        "brokers": [{"broker": 1, "flow": 1000}, {"broker": 2, "flow": 500}],
    },
    "storage_used_bytes": 70,
    "connections": 3,
}


@pytest.fixture
def operator(charlie):
    charlie.user.is_staff = True
    charlie.user.save()
    return charlie


@pytest.fixture
def other(bob_of_another):
    """An instance of a second organisation."""
    answer = bob_of_another.api.post("/api/v1/instances", {**WANTED, "name": "metrics"})
    return Instance.objects.unscoped("a test").get(pk=answer.json()["id"])


@pytest.fixture
def bob_of_another(operator):
    """Whoever has the second organisation: here the operator's own."""
    return operator


def listed(operator, path, member="id", **query):
    answer = operator.api.get(f"{FLEET}/{path}", query)
    assert answer.status_code == 200, answer.content
    return [item[member] for item in answer.json()["items"]]


@pytest.mark.parametrize("path", [*LISTS, "instances/ins-00000000"])
def test_nobody_but_operators_is_answered(alice, viewer, instance, path):
    for person in (alice, viewer):
        refused = problem(person.api.get(f"{FLEET}/{path}"), 403, "forbidden")
        assert instance.id not in str(refused)


def test_an_instance_of_ones_own_is_refused_like_one_that_is_not_there(alice, instance):
    own, none = (
        problem(alice.api.get(f"{FLEET}/instances/{name}"), 403, "forbidden") for name in (instance.id, "ins-00000000")
    )
    assert own["detail"] == none["detail"]


class TestInstances:
    def test_of_all_organisations(self, operator, instance, other):
        assert set(listed(operator, "instances")) == {instance.id, other.id}

    def test_narrowed(self, operator, alice, instance, other):
        assert listed(operator, "instances", organisation_id=alice.organisation.id) == [instance.id]
        assert listed(operator, "instances", prefix="metr") == [other.id]
        assert listed(operator, "instances", search="alice") == [instance.id]
        assert listed(operator, "instances", search=other.id[4:]) == [other.id]
        assert listed(operator, "instances", cluster="elsewhere") == []
        assert set(listed(operator, "instances", cluster="default")) == {instance.id, other.id}
        problem(operator.api.get(f"{FLEET}/instances", {"state": "deleted"}), 400, "invalid")

    def test_sorted_and_page_by_page(self, operator, instance, other):
        Instance.objects.unscoped("a test").filter(pk=other.pk).update(storage_gib=500)
        assert listed(operator, "instances", sort="-storage_gib") == [other.id, instance.id]
        first = operator.api.get(f"{FLEET}/instances", {"sort": "organisation_name", "limit": 1}).json()
        assert [each["id"] for each in first["items"]] == [instance.id]
        assert listed(operator, "instances", sort="organisation_name", limit=1, cursor=first["next"]) == [other.id]

    def test_with_what_flows_now(self, operator, instance, flow_master):
        shown = operator.api.get(f"{FLEET}/instances").json()["items"][0]
        assert (shown["produce_bytes_per_s"], shown["storage_used_bytes"]) == (None, None)
        flow_master.answers[instance.id] = FLOWING
        shown = operator.api.get(f"{FLEET}/instances").json()["items"][0]
        assert (shown["produce_bytes_per_s"], shown["consume_bytes_per_s"]) == (1500, 0)
        assert (shown["storage_used_bytes"], shown["connections"], shown["cluster"]) == (70, 3, "default")

    def test_one_with_its_shares_and_its_organisation_is_told(self, operator, alice, instance, flow_master):
        flow_master.answers[instance.id] = FLOWING
        shown = operator.api.get(f"{FLEET}/instances/{instance.id}").json()
        assert shown["allocation"]["produce"] == FLOWING["produce"]
        assert "topics" in shown["limits"]
        entry = AuditEntry.objects.for_organisation(alice.organisation).order_by("-pk").first()
        assert (entry.target, entry.actor) == (instance.id, "charlie@example.com")

    def test_one_that_is_not_there(self, operator):
        problem(operator.api.get(f"{FLEET}/instances/ins-00000000"), 404, "not_found")


class TestOrganisations:
    def test_with_what_their_instances_have(self, operator, alice, instance):
        (found,) = operator.api.get(f"{FLEET}/organisations", {"search": "alice"}).json()["items"]
        assert (found["id"], found["state"], found["instances"]) == (alice.organisation.id, "in_use", 1)
        assert (found["bandwidth_mib_per_s"], found["storage_gib"], found["partitions"]) == (5, 10, 60)

    def test_by_state_and_name(self, operator, alice):
        now = SYSTEM_CLOCK.now()
        marked = Organisation.objects.create(
            id="org-marked000001",
            name="marked",
            created_at=now,
            deletion_asked_at=now,
            deletes_at=now + timedelta(days=7),
        )
        assert listed(operator, "organisations", state="marked") == [marked.id]
        assert marked.id not in listed(operator, "organisations", state="in_use")
        assert listed(operator, "organisations", state="deleted") == []
        names = listed(operator, "organisations", "name", sort="-name")
        assert names == sorted(names, reverse=True)
        assert listed(operator, "organisations", prefix="mark") == [marked.id]


class TestOperations:
    def test_of_everybody_and_of_the_service(self, operator, alice, instance):
        now = SYSTEM_CLOCK.now()
        own = Operation(id="op-oftheservice", kind="rebalance", target="reb-1", created_at=now, runnable_at=now)
        own.save(force_insert=True)
        items = operator.api.get(f"{FLEET}/operations", {"sort": "-created_at"}).json()["items"]
        assert items[0]["id"] == own.id
        assert {each["organisation_id"] for each in items} == {None, alice.organisation.id}
        assert listed(operator, "operations", "target", organisation_id=alice.organisation.id) == [instance.id]
        assert listed(operator, "operations", kind="rebal") == [own.id]
        assert listed(operator, "operations", target=instance.id, state="failed") == []


class TestBrokers:
    @pytest.mark.parametrize(
        ("registered", "reporting", "state"),
        [
            (True, True, "reporting"),
            (True, False, "silent"),
            (True, None, "registered"),
            (False, True, "away"),
            (False, False, "away"),
            (None, True, "reporting"),
            (None, None, "unknown"),
        ],
    )
    def test_how_one_is(self, registered, reporting, state):
        assert listing.broker_state(is_registered=registered, is_reporting=reporting) == state

    def test_what_each_carries(self, operator, instance, flow_master):
        Broker.objects.create(cluster=instance.cluster, broker_id=9, host="kafka-9", port=9092)
        flow = {"produce": {"flow": 5, "allocation": 7}, "consume": {"flow": 1, "allocation": 2}}
        flow_master.broker_rows = [{"broker": 9, "reporting": True, "leaders": 4, "instances": 1, **flow}]
        (nine,) = [each for each in operator.api.get(f"{FLEET}/brokers").json()["items"] if each["broker"] == 9]
        assert (nine["host"], nine["leaders"], nine["produce_flow_bytes_per_s"]) == ("kafka-9", 4, 5)
        assert (nine["state"], nine["missing"]) == ("away", None)
        assert 9 in listed(operator, "brokers", "broker", state="away", cluster="default")
        assert listed(operator, "brokers", "broker", sort="-leaders")[0] == 9
        problem(operator.api.get(f"{FLEET}/brokers", {"cluster": "elsewhere"}), 404, "not_found")

    def test_one_with_its_absences(self, operator, instance):
        Broker.objects.create(cluster=instance.cluster, broker_id=9, host="kafka-9", port=9092)
        began = datetime(2026, 11, 21, 9, tzinfo=UTC)
        BrokerAbsence.objects.create(cluster=instance.cluster, broker_id=9, began_at=began)
        shown = operator.api.get("/api/v1/clusters/default/brokers/9").json()
        assert shown["absences"] == [{"began_at": "2026-11-21T09:00:00Z", "ended_at": None}]
        problem(operator.api.get("/api/v1/clusters/default/brokers/77"), 404, "not_found")


class TestHeat:
    def test_numbers_of_brokers_over_time(self, operator, instance):
        at = int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60
        flow = dict.fromkeys(
            (
                "produce_bytes_per_s", "produce_allocated_bytes_per_s", "consume_bytes_per_s",
                "consume_allocated_bytes_per_s", "instances",
            ),
            1,
        )  # fmt: skip
        BrokerSample.objects.create(cluster=instance.cluster.pk, broker=1, at=at, reporting=True, leaders=12, **flow)
        shown = operator.api.get(f"{FLEET}/heat", {"measure": "leaders"}).json()
        assert (shown["unit"], len(shown["columns"]), shown["rows"][0]["id"]) == ("count", 60, "1")
        assert 12 in shown["rows"][0]["values"]

    def test_what_does_not_go_together_is_refused(self, operator, instance):
        for query in (
            {"of": "now", "range": "1h"},
            {"of": "instances", "measure": "isr"},
            {"of": "instances", "range": "6h"},
        ):
            problem(operator.api.get(f"{FLEET}/heat", query), 400, "invalid")


def looks_at(organisation) -> list[tuple[str, str]]:
    """What operators have looked at, as its audit log says, and who."""
    rows = AuditEntry.objects.for_organisation(organisation).filter(action=VIEWED).order_by("pk")
    return list(rows.values_list("target", "actor"))


class TestListsOfOneOrganisation:
    """They are no way round the entry that a look at one of its things has."""

    @pytest.mark.parametrize("path", ["fleet/instances", "fleet/operations", "taxes"])
    def test_it_is_told_of_a_list_that_is_narrowed_to_it(self, operator, alice, instance, path):
        operator.api.get(f"/api/v1/{path}")
        assert looks_at(alice.organisation) == []
        operator.api.get(f"/api/v1/{path}", {"organisation_id": alice.organisation.id})
        name = path.rpartition("/")[2]
        assert looks_at(alice.organisation) == [(f"{alice.organisation.id}/{name}", "charlie@example.com")]

    def test_it_is_told_of_operations_on_something_that_is_its_own(self, operator, alice, instance):
        operator.api.get(f"{FLEET}/operations", {"target": instance.id})
        assert looks_at(alice.organisation) == [(instance.id, "charlie@example.com")]

    @pytest.mark.parametrize("path", ["fleet/instances", "fleet/operations", "taxes"])
    def test_one_that_there_is_not_has_nothing(self, operator, path):
        answer = operator.api.get(f"/api/v1/{path}", {"organisation_id": "org-000000000000"})
        assert answer.json()["items"] == []


class TestProblems:
    def test_a_cluster_that_does_not_answer_is_one_however_many_brokers_nobody_knows(self, operator, instance, tree):
        for number in (8, 9):
            Broker.objects.create(cluster=instance.cluster, broker_id=number, host=f"kafka-{number}", port=9092)
        tree.away = True
        (found,) = operator.api.get(f"{FLEET}/problems", {"cluster": "default"}).json()["items"]
        assert (found["id"], found["kind"], found["broker"]) == ("cluster:default", "cluster", None)
        assert "ZooKeeper) does not answer" in found["detail"]
        assert set(listed(operator, "brokers", "state", cluster="default")) == {"unknown"}

    def test_so_is_one_whose_flow_master_is_away(self, operator, instance):
        (found,) = operator.api.get(f"{FLEET}/problems", {"kind": "cluster"}).json()["items"]
        assert (found["cluster"], found["detail"]) == ("default", "no flow master is active")

    def test_while_both_answer_it_is_none(self, operator, instance, brokers, flow_master):
        flow_master.broker_rows = [{"broker": 1, "reporting": True}]
        assert listed(operator, "problems", kind="cluster") == []

    @pytest.mark.parametrize(("reports", "why"), [(True, broker_state.CUT_OFF), (False, broker_state.AWAY)])
    def test_of_a_broker_that_is_not_registered_it_is_said_whether_it_serves_on(
        self, operator, instance, flow_master, reports, why
    ):
        Broker.objects.create(cluster=instance.cluster, broker_id=9, host="kafka-9", port=9092)
        flow_master.broker_rows = [{"broker": 9, "reporting": reports}]
        items = operator.api.get(f"{FLEET}/problems", {"kind": "broker"}).json()["items"]
        assert [each["detail"] for each in items if each["broker"] == 9] == [why]

    @pytest.mark.parametrize(
        ("invoices", "said"), [(1, "1 invoice of 2026-05 waits: why"), (3, "3 invoices of 2026-05 wait: why")]
    )
    def test_invoices_that_wait_are_counted_in_words(self, operator, monkeypatch, invoices, said):
        monkeypatch.setattr(problems, "waiting", lambda _now: [Waiting(Month(2026, 5), "why", invoices)])
        assert listed(operator, "problems", "detail", kind="invoices_wait") == [said]

    def test_a_broker_that_is_away_and_a_loss(self, operator, instance):
        Broker.objects.create(
            cluster=instance.cluster,
            broker_id=9,
            host="kafka-9",
            port=9092,
            away_since=datetime(2026, 11, 21, tzinfo=UTC),
        )
        loss_row()
        found = {each["kind"]: each for each in operator.api.get(f"{FLEET}/problems").json()["items"]}
        assert (found["broker"]["broker"], found["broker"]["since"]) == (9, "2026-11-21T00:00:00Z")
        assert found["usage_lost"]["detail"] == "offsets 5 to 9 are gone"
        assert listed(operator, "problems", "kind", kind="usage_lost") == ["usage_lost"]
        assert listed(operator, "problems", cluster="elsewhere") == []

    def test_page_by_page(self, operator, instance):
        for _ in range(3):
            loss_row()
        first = operator.api.get(f"{FLEET}/problems", {"kind": "usage_lost", "limit": 2}).json()
        second = operator.api.get(f"{FLEET}/problems", {"kind": "usage_lost", "cursor": first["next"]}).json()
        assert len({each["id"] for each in first["items"] + second["items"]}) == 3
        assert second["next"] is None


def loss_row():
    return Loss.objects.create(
        kind="gone",
        partition=0,
        start_offset=5,
        end_offset=9,
        topic_id="t",
        sentence="offsets 5 to 9 are gone",
        found_at_ms=0,
    )


class TestLosses:
    URL = "/api/v1/metering/losses"

    def test_usage_waits_until_one_is_settled(self, operator):
        loss = loss_row()
        assert [each["id"] for each in operator.api.get(self.URL, {"settled": "false"}).json()["items"]] == [loss.pk]
        foretold = operator.api.post(f"{self.URL}/{loss.pk}/settle?dry_run=true").json()
        assert foretold["changes"]["settled_by"] == ["", "charlie@example.com"]
        loss.refresh_from_db()
        assert loss.settled_at is None
        done = operator.api.post(f"{self.URL}/{loss.pk}/settle").json()
        assert done["settled_by"] == "charlie@example.com"
        assert operator.api.get(self.URL, {"settled": "false"}).json()["items"] == []
        assert len(operator.api.get(self.URL, {"settled": "true", "cluster": "default"}).json()["items"]) == 1

    def test_the_first_one_stands(self, operator):
        loss = loss_row()
        Loss.objects.filter(pk=loss.pk).update(settled_at=SYSTEM_CLOCK.now(), settled_by="ann@example.com")
        assert operator.api.post(f"{self.URL}/{loss.pk}/settle?dry_run=true").json()["plan"] == []
        assert operator.api.post(f"{self.URL}/{loss.pk}/settle").json()["settled_by"] == "ann@example.com"

    @pytest.mark.parametrize("name", ["77", str(2**63), "9" * 40])
    def test_one_that_is_not_there(self, operator, name):
        problem(operator.api.post(f"{self.URL}/{name}/settle"), 404, "not_found")

    def test_nobody_but_operators(self, alice):
        loss = loss_row()
        problem(alice.api.get(self.URL), 403, "forbidden")
        problem(alice.api.post(f"{self.URL}/{loss.pk}/settle"), 403, "forbidden")


def test_taxes(operator, alice):
    problem(alice.api.get("/api/v1/taxes"), 403, "forbidden")
    assert operator.api.get("/api/v1/taxes").json() == {"items": [], "next": None}
