"""Dry runs say who else is touched: alarms of a receiver, instances of a cluster that is drained or of partitions that move."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.alarms.models import Alarm, Receiver
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.rebalancing.models import Rebalance, RebalanceMove

from .alarms.rows import alarm_row, receiver_row
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
