"""Dry runs say who else is touched: alarms of a receiver, instances of a cluster that is drained or of partitions that move.

Of a route and of a user it is the clients that are connected at this moment, and would be cut off. Whose invoices a waiver of
metering touches stands in billing/test_closing_waits.py.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.access.acls import acls_create
from controlplane.alarms.models import Alarm, Receiver
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.rebalancing.models import Rebalance, RebalanceMove

from .alarms.rows import alarm_row, receiver_row
from .connections.conftest import connection, hers  # noqa: F401  # hers is a fixture
from .console.test_cut_off import acl
from .rebalancing.rows import rebalance_row
from .test_instances_api import URL

CLUSTER = "/api/v1/clusters/default"


@pytest.fixture
def operator(charlie):
    charlie.user.is_staff = True
    charlie.user.save()
    return charlie


def affected(answer):
    assert answer.status_code == 200, answer.content
    return {each["who"]: each["names"] for each in answer.json()["affected"]}


def test_deleting_a_receiver_names_the_alarms_that_tell_it(alice, instance):
    receiver = receiver_row(instance)
    told = alarm_row(instance, "alm-000000000001", receivers=[receiver.pk])
    alarm_row(instance, "alm-000000000002", name="other", receivers=[])
    url = f"{URL}/{instance.id}/receivers/{receiver.pk}"
    assert affected(alice.api.delete(f"{url}?dry_run=true")) == {"alarms": [told.pk]}
    assert Receiver.objects.unscoped("a test").filter(pk=receiver.pk).exists()
    assert Alarm.objects.unscoped("a test").get(pk=told.pk).receivers == [receiver.pk]


def test_draining_a_cluster_names_what_has_to_leave(operator, instance):
    body = {"state": "draining", "reason": "old machines"}
    assert affected(operator.api.patch(f"{CLUSTER}?dry_run=true", body)) == {"instances": [instance.id]}
    assert affected(operator.api.patch(f"{CLUSTER}?dry_run=true", {**body, "state": "cordoned"})) == {}
    assert affected(operator.api.patch(f"{CLUSTER}?dry_run=true", {"capacity": 70, "reason": "more"})) == {}


def test_carrying_out_a_rebalance_names_whose_partitions_move(operator, instance):
    row = rebalance_row(instance.cluster, moves=3)
    RebalanceMove.objects.filter(rebalance=row).update(instance=instance.id)
    Rebalance.objects.filter(pk=row.pk).update(expires_at=SYSTEM_CLOCK.now() + timedelta(hours=1))
    url = f"/api/v1/rebalances/{row.id}/actions?dry_run=true"
    assert affected(operator.api.post(url, {"action": "carry_out"})) == {"instances": [instance.id]}
    assert affected(operator.api.post(url, {"action": "cancel"})) == {}
    assert Rebalance.objects.get().state == row.state


# --- clients that are connected -----------------------------------------------------------------------------------------------


def told(answer):
    assert answer.status_code == 200, answer.content
    return [
        (each["count"], each["names"], each["effect"]) for each in answer.json()["affected"] if each["who"] == "clients"
    ]


@pytest.fixture
def connected(hers):  # noqa: F811
    """On two brokers: ann by two routes, from one client twice, and shop, who writes to orders."""
    hers.say(
        1,
        connections=(
            connection("till-1", "10.0.0.7", route_id="r2"),
            connection("till-1", "10.0.0.7", route_id="r2"),
            connection("", "10.0.0.8", principal="User:shop"),
        ),
        talkers=(hers.talker("", produces=100, address="10.0.0.8"),),
    )
    hers.say(2, connections=(connection("till-2", "10.0.0.9", route_id="r2"), connection("till-3", "10.0.0.9")))
    return hers


def test_deleting_a_route_names_the_clients_that_are_connected_by_it(alice, instance, connected):
    url = f"{URL}/{instance.id}/routes"
    for _ in "23":
        alice.api.post(url, {"security": "ssl"})
    names = ["till-1 (10.0.0.7)", "till-2 (10.0.0.9)"]
    assert told(alice.api.delete(f"{url}/r2?dry_run=true")) == [
        (2, names, "are connected by this route: they are cut off")
    ]
    assert told(alice.api.delete(f"{url}/r3?dry_run=true")) == []
    assert alice.api.get(f"{url}/r2").status_code == 200


LOGS_IN_NO_MORE = "are connected as User:ann: they are cut off, and log in no more"
HERS = (3, ["till-1 (10.0.0.7)", "till-2 (10.0.0.9)", "till-3 (10.0.0.9)"], LOGS_IN_NO_MORE)


@pytest.fixture
def deletes(alice, instance):
    """Who would be told of by a dry run of deleting a user, by either of its addresses."""
    users = f"{URL}/{instance.id}/users"

    def delete(name, *, with_acls=False):
        by_name = alice.api.delete(f"{users}/{name}?dry_run=true&with_acls={str(with_acls).lower()}")
        by_body = alice.api.delete(f"{users}?dry_run=true", {"name": name, "with_acls": with_acls})
        assert by_name.json() == by_body.json()
        return told(by_name)

    for name in ("ann", "idle"):
        assert alice.api.post(users, {"name": name}).status_code == 201
    return delete


def test_deleting_a_user_names_the_clients_that_are_connected_so(deletes, connected):
    assert deletes("ann") == [HERS]
    assert deletes("idle") == []


def test_with_acls_those_are_named_as_well_who_are_let_in_without_them(alice, instance, deletes, connected):
    acls_create(organisation=alice.organisation, actor="a", instance_id=instance.id, acls=[acl("User:ann")])
    assert deletes("ann") == [HERS], "his ACLs stay"
    cut, *let_in = deletes("ann", with_acls=True)
    assert cut == HERS
    assert let_in == [
        (1, ["- (10.0.0.8)"], f"are connected as User:shop: {operation} of topic orders would be open to them")
        for operation in ("READ", "WRITE")
    ]


def test_of_acls_without_a_user_those_are_named_who_are_refused_without_them(alice, instance, deletes, connected):
    acls = [acl("User:shop"), acl("User:other")]
    acls_create(organisation=alice.organisation, actor="a", instance_id=instance.id, acls=acls)
    refused = "use topic orders now as User:shop: WRITE would be refused to them"
    assert deletes("shop", with_acls=True) == [(1, ["- (10.0.0.8)"], refused)], (
        "whoever came by a certificate stays connected"
    )


def test_where_no_broker_answers_nobody_is_named(alice, instance, deletes, connected):
    alice.api.post(f"{URL}/{instance.id}/routes", {"security": "ssl"})
    connected.door.away = {1, 2}
    assert deletes("ann") == []
    assert told(alice.api.delete(f"{URL}/{instance.id}/routes/r2?dry_run=true")) == []
