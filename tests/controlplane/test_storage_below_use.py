"""Less storage than is used would refuse producers at once: it is refused, or asked for with open eyes."""

from __future__ import annotations

import pytest

from controlplane.instances.models import Instance

from .test_instances_api import URL, problem

GIB = 2**30


@pytest.fixture
def used(instance, flow_master):
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * GIB, "storage_full": False}


def storage_of(instance) -> float:
    return Instance.objects.unscoped("a test").get(pk=instance.pk).storage_gib


@pytest.mark.parametrize("gib", [5, 6])
def test_less_than_is_used_is_refused_with_the_figures(alice, instance, used, gib):
    refused = problem(alice.api.patch(f"{URL}/{instance.id}", {"storage_gib": gib}), 409, "storage_below_use")
    assert "6 GiB" in refused["detail"]
    assert "accept_full_storage" in refused["detail"]
    assert [each["field"] for each in refused["errors"]] == ["storage_gib"]
    assert storage_of(instance) == 10


def test_it_is_done_when_it_is_accepted(alice, instance, used):
    body = {"storage_gib": 5, "accept_full_storage": True}
    assert alice.api.patch(f"{URL}/{instance.id}", body).status_code == 202
    assert storage_of(instance) == 5


def test_more_than_is_used_and_other_changes_need_nothing(alice, instance, used):
    assert alice.api.patch(f"{URL}/{instance.id}", {"storage_gib": 7}).status_code == 202
    assert alice.api.patch(f"{URL}/{instance.id}", {"name": "other"}).status_code == 202


def test_enlarging_a_full_instance_by_less_than_it_needs_is_not_refused(alice, instance, flow_master):
    flow_master.answers[instance.id] = {"storage_used_bytes": 12 * GIB, "storage_full": True}
    assert alice.api.patch(f"{URL}/{instance.id}", {"storage_gib": 11}).status_code == 202


def test_accepting_alone_is_no_change(alice, instance):
    problem(alice.api.patch(f"{URL}/{instance.id}", {"accept_full_storage": True}), 400, "invalid")
