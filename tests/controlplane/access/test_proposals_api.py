"""A change of who may do what, tried before it is put in force: by REST, with what brokers write of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.access import proposals
from controlplane.clusters import coordination
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.models import AuditEntry
from controlplane.instances.lifecycle import instance_delete
from controlplane.instances.models import Instance
from controlplane.instances.tasks import proposals_expire
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_from_json, acls_path
from quota.contracts.proposals import Cut, Findings, Proposal, Seen, findings_path, proposal_path
from quota.steps import run_through
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.test_instances_api import URL, problem

READ = {
    "principal": "User:ann",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
}
ORDERS = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", "*", AclOperation.READ, Permission.ALLOW)
CUT = Cut("User:bob", "10.0.0.7", "default", "WRITE", "TOPIC:orders")


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}/proposal"


def stored(tree, instance):
    node = tree.get(proposal_path(instance.id))
    return None if node is None else Proposal.from_json(node[0])


def tell(tree, instance, broker, proposal_id, *, connections=0, requests=0, left_out=0, since_ms=1_000, cuts=()):
    """What a broker has seen."""
    findings = Findings(proposal_id, since_ms, connections, requests, left_out, dict(cuts))
    tree.put(findings_path(instance.id, broker), run_through(findings.to_json()))


def in_force(tree, instance):
    return acls_from_json(coordination.beside_read(tree, acls_path(instance.id))).items


def actions(alice):
    rows = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="proposal.")
    return [(row.action, row.actor, row.detail["id"]) for row in rows.order_by("pk")]


def test_without_one_there_is_none(alice, url):
    for answer in (
        alice.api.get(url),
        alice.api.delete(url),
        alice.api.post(f"{url}/prp-000000000000/in-force"),
    ):
        problem(answer, 404, "proposal_not_found")


def test_a_proposal_is_what_brokers_read_and_changes_nothing_that_is_in_force(alice, instance, url, tree):
    before, changes = tree.spec(instance.id), len(tree.children("/sluice/changes"))
    wanted = {
        "whitelist": ["10.0.0.0/8"],
        "route_whitelists": {"default": []},
        "acls_added": [READ],
        "acls_removed": [{**READ, "operation": "WRITE"}],
        "allow_everyone_if_no_acl_found": False,
        "lasts_s": 3600,
    }
    answer = alice.api.put(url, wanted)
    assert answer.status_code == 200
    body = answer.json()
    proposal = stored(tree, instance)
    assert (proposal.id, proposal.whitelist, proposal.route_whitelists) == (
        body["id"],
        ("10.0.0.0/8",),
        {"default": ()},
    )
    assert (proposal.acls_added, proposal.allow_everyone) == ((ORDERS,), False)
    assert proposal.ends_at_ms - proposal.made_at_ms == 3_600_000
    assert {name: body[name] for name in wanted if name != "lasts_s"} == {
        name: value for name, value in wanted.items() if name != "lasts_s"
    }
    assert body["silent_brokers"] == [1, 2, 3]
    assert tree.spec(instance.id) == before
    assert len(tree.children("/sluice/changes")) == changes + 1
    assert alice.api.get(url).json() == body
    assert actions(alice) == [("proposal.create", "alice@example.com", body["id"])]


def test_by_default_it_lasts_a_day_and_another_one_takes_its_place(alice, instance, url, tree):
    first = alice.api.put(url, {"whitelist": []}).json()
    tell(tree, instance, 1, first["id"], connections=5)
    second = alice.api.put(url, {"allow_everyone_if_no_acl_found": False}).json()
    assert second["id"] != first["id"]
    assert (second["whitelist"], second["judged_connections"]) == (None, 0)
    lasts = datetime.fromisoformat(second["ends_at"]) - datetime.fromisoformat(second["made_at"])
    assert lasts.total_seconds() == 86_400
    assert tree.children(proposal_path(instance.id)) == []


def test_it_shows_what_all_brokers_have_found_the_most_frequent_first(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": []}).json()
    rare = Cut("User:ann", "10.0.0.9", "default", "CONNECT", "")
    tell(
        tree,
        instance,
        1,
        made["id"],
        connections=2,
        requests=40,
        cuts={CUT: Seen(3, 5_000, 9_000), rare: Seen(1, 7_000, 7_000)},
    )
    tell(tree, instance, 3, made["id"], connections=1, requests=2, left_out=4, cuts={CUT: Seen(2, 4_000, 8_000)})
    body = alice.api.get(url).json()
    assert body["would_cut_off"] == [
        {
            "principal": "User:bob",
            "source": "10.0.0.7",
            "route": "default",
            "operation": "WRITE",
            "resource": "TOPIC:orders",
            "count": 5,
            "first": "1970-01-01T00:00:04Z",
            "last": "1970-01-01T00:00:09Z",
        },
        {
            "principal": "User:ann",
            "source": "10.0.0.9",
            "route": "default",
            "operation": "CONNECT",
            "resource": "",
            "count": 1,
            "first": "1970-01-01T00:00:07Z",
            "last": "1970-01-01T00:00:07Z",
        },
    ]
    assert (body["judged_connections"], body["judged_requests"], body["left_out"]) == (3, 42, 4)
    assert body["silent_brokers"] == [2]
    assert [row["broker"] for row in body["brokers"]] == [1, 3]


def test_what_is_of_another_proposal_or_not_legible_is_left_out(alice, instance, url, tree):
    alice.api.put(url, {"whitelist": []})
    tell(tree, instance, 1, "prp-ofbefore0000", connections=5)
    tree.put(findings_path(instance.id, 2), b"nothing")
    body = alice.api.get(url).json()
    assert (body["judged_connections"], body["silent_brokers"]) == (0, [1, 2, 3])


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"whitelist": ["ten"]}, "whitelist.0"),
        ({"route_whitelists": {"r9": []}}, "route_whitelists.r9"),
        ({"route_whitelists": {"default": ["10.0.0.1/8"]}}, "route_whitelists.default.0"),
        ({"acls_added": [{**READ, "principal": "ann"}]}, "acls_added.0.principal"),
        ({"acls_removed": [READ, {**READ, "host": "nowhere"}]}, "acls_removed.1.host"),  # nobody could read it again
        ({"whitelist": [], "lasts_s": 59}, "lasts_s"),
        ({"whitelist": [], "lasts_s": 604_801}, "lasts_s"),
        ({"whitelist": [], "for": "ever"}, "for"),
    ],
)
def test_what_cannot_be_is_named(alice, instance, url, tree, wanted, field):
    assert [each["field"] for each in problem(alice.api.put(url, wanted), 400, "invalid")["errors"]] == [field]
    assert stored(tree, instance) is None


@pytest.mark.parametrize("wanted", [{}, {"lasts_s": 3600}, {"acls_added": []}])
def test_nothing_is_no_proposal(alice, url, wanted):
    problem(alice.api.put(url, wanted), 400, "invalid")


def test_a_viewer_looks_and_does_not_change_and_a_stranger_finds_nothing(alice, viewer, charlie, instance, url, tree):
    made = alice.api.put(url, {"whitelist": []}).json()
    assert viewer.api.get(url).json()["id"] == made["id"]
    for person, status, code in ((viewer, 403, "forbidden"), (charlie, 404, "not_found")):
        problem(person.api.put(url, {"whitelist": []}), status, code)
        problem(person.api.delete(url), status, code)
        problem(person.api.post(f"{url}/{made['id']}/in-force"), status, code)
    problem(charlie.api.get(url), 404, "not_found")
    assert stored(tree, instance).id == made["id"]


def test_discarded_it_is_gone_with_what_was_found(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": []}).json()
    tell(tree, instance, 1, made["id"], connections=5)
    assert alice.api.delete(url).status_code == 204
    assert not [path for path in tree.nodes if path.startswith(proposal_path(instance.id))]
    assert [action for action, *_ in actions(alice)] == ["proposal.create", "proposal.discard"]


def test_in_force_it_is_what_each_part_would_be_at_once(alice, instance, url, tree):
    alice.api.post(f"{URL}/{instance.id}/acls", {**READ, "operation": "WRITE"})
    wanted = {
        "whitelist": ["10.0.0.0/8"],
        "route_whitelists": {"default": ["10.1.0.0/16"]},
        "acls_added": [READ],
        "acls_removed": [{**READ, "operation": "WRITE"}],
        "allow_everyone_if_no_acl_found": False,
    }
    made = alice.api.put(url, wanted).json()
    tell(tree, instance, 2, made["id"], connections=5)
    generation, writes = tree.spec(instance.id).generation, []
    tree.after_write = lambda: writes.append(tree.spec(instance.id).generation)
    assert alice.api.post(f"{url}/{made['id']}/in-force").status_code == 204
    assert writes == [generation + 1]  # one transaction
    spec = tree.spec(instance.id)
    assert (spec.whitelist, spec.routes[0].whitelist) == (("10.0.0.0/8",), ("10.1.0.0/16",))
    assert spec.authorizer.allow_everyone_if_no_acl_found is False
    assert in_force(tree, instance) == (ORDERS,)
    assert not [path for path in tree.nodes if path.startswith(proposal_path(instance.id))]
    shown = alice.api.get(f"{URL}/{instance.id}").json()
    assert shown["whitelist"] == ["10.0.0.0/8"]
    assert shown["routes"][0]["whitelist"] == ["10.1.0.0/16"]
    assert shown["config"]["allow_everyone_if_no_acl_found"] is False
    assert actions(alice)[-1] == ("proposal.put_in_force", "alice@example.com", made["id"])


def test_acls_alone_raise_no_generation(alice, instance, url, tree):
    made = alice.api.put(url, {"acls_added": [READ]}).json()
    before = tree.spec(instance.id)
    assert alice.api.post(f"{url}/{made['id']}/in-force").status_code == 204
    assert tree.spec(instance.id) == before
    assert in_force(tree, instance) == (ORDERS,)


def test_only_the_one_that_was_looked_at_is_put_in_force(alice, instance, url, tree):
    first = alice.api.put(url, {"whitelist": []}).json()
    second = alice.api.put(url, {"whitelist": ["10.0.0.0/8"]}).json()
    problem(alice.api.post(f"{url}/{first['id']}/in-force"), 404, "proposal_not_found")
    assert stored(tree, instance).id == second["id"]
    assert tree.spec(instance.id).whitelist == tuple(WANTED["whitelist"])


def test_where_zookeeper_refuses_nothing_has_happened(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": [], "acls_added": [READ]}).json()

    def away():
        raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer")

    tree.before_write = away
    problem(alice.api.post(f"{url}/{made['id']}/in-force"), 503, "cluster_unavailable")
    tree.before_write = lambda: None
    row = Instance.objects.unscoped("a test").get(pk=instance.pk)
    assert (row.whitelist, row.generation) == (WANTED["whitelist"], instance.generation)
    assert in_force(tree, instance) == ()
    assert alice.api.post(f"{url}/{made['id']}/in-force").status_code == 204


def test_a_broker_that_writes_meanwhile_stands_in_nobodys_way(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": []}).json()
    times = []

    def told():
        if not times:
            times.append(1)
            tell(tree, instance, 3, made["id"], connections=1)

    tree.before_write = told
    assert alice.api.delete(url).status_code == 204
    assert not [path for path in tree.nodes if path.startswith(proposal_path(instance.id))]


def test_a_route_that_is_gone_meanwhile_is_said(alice, instance, url, tree, brokers):
    route = alice.api.post(f"{URL}/{instance.id}/routes", {"security": "plaintext"}).json()
    run_to_the_end(route["operation_id"])
    made = alice.api.put(url, {"whitelist": [], "route_whitelists": {route["id"]: []}}).json()
    run_to_the_end(alice.api.delete(f"{URL}/{instance.id}/routes/{route['id']}").json()["operation_id"])
    problem(alice.api.post(f"{url}/{made['id']}/in-force"), 409, "route_not_found")
    assert tree.spec(instance.id).whitelist == tuple(WANTED["whitelist"])


def test_more_acls_than_there_may_be_are_refused_before_they_are_tried(alice, instance, url, tree):
    many = tuple(
        Acl(ResourceType.TOPIC, PatternType.LITERAL, f"t{n}", "User:ann", "*", AclOperation.READ, Permission.ALLOW)
        for n in range(5_000)
    )
    tree.put(acls_path(instance.id), AclSet(1, many).to_json())
    problem(alice.api.put(url, {"acls_added": [READ]}), 409, "too_many_acls")
    assert stored(tree, instance) is None


class Later:
    def __init__(self, seconds):
        self.seconds = seconds

    def now(self):
        return datetime.fromtimestamp(datetime.now(UTC).timestamp() + self.seconds, UTC)


def test_when_its_time_is_over_whoever_looks_discards_it(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": [], "lasts_s": 60}).json()
    place = {"organisation": alice.organisation, "instance_id": instance.id}
    with pytest.raises(proposals.NotFound):
        proposals.proposal_get(**place, clock=Later(61))
    assert stored(tree, instance) is None
    assert actions(alice)[-1] == ("proposal.expire", "system", made["id"])


def test_when_its_time_is_over_the_clock_discards_it(alice, instance, url, tree, monkeypatch):
    made = alice.api.put(url, {"whitelist": [], "lasts_s": 60}).json()
    tell(tree, instance, 1, made["id"])
    proposals_expire()
    assert stored(tree, instance) is not None
    monkeypatch.setattr("controlplane.instances.tasks.SYSTEM_CLOCK", Later(61))
    proposals_expire()
    assert not [path for path in tree.nodes if path.startswith(proposal_path(instance.id))]
    assert actions(alice)[-1] == ("proposal.expire", "system", made["id"])


def test_it_goes_with_its_instance(alice, instance, url, tree):
    made = alice.api.put(url, {"whitelist": []}).json()
    tell(tree, instance, 1, made["id"])
    operation = instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert not [path for path in tree.nodes if path.startswith(proposal_path(instance.id))]
