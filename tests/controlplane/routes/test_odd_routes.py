"""What a tenant can ask of routes that nobody thought of: hosts that are none, and ends that leave no way in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.certificates import keys
from controlplane.clusters.models import PortAllocation
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Unavailable
from controlplane.instances import reconcile
from controlplane.instances.models import Route
from tests.controlplane.conftest import run_to_the_end


@pytest.mark.parametrize(
    "host", ["\N{KELVIN SIGN}afka.example", "\N{LATIN SMALL LETTER LONG S}luice.example", "fe80::1%\n", "fe80::1%eth0"]
)
def test_what_is_no_host_for_a_certificate_is_none_for_a_route(alice, url, host):
    for members in ({"advertised_host": host}, {"advertised_hosts": {"1": host}}):
        answer = alice.api.post(url, {"security": "ssl", **members})
        assert answer.status_code == 400, answer.content


def test_a_route_whose_end_has_come_is_no_other_way_in(alice, url, opened):
    route = opened(closes_at=(SYSTEM_CLOCK.now() + timedelta(hours=1)).isoformat())
    rows = Route.objects.unscoped("a test").filter(key=route["id"])
    rows.update(closes_at=SYSTEM_CLOCK.now() - timedelta(seconds=1))
    answer = alice.api.delete(f"{url}/default")
    assert (answer.status_code, answer.json()["code"]) == (409, "last_route")
    assert alice.api.delete(f"{url}/{route['id']}").status_code == 202


def test_a_change_that_is_stored_is_answered_as_one(alice, url, opened, monkeypatch):
    route = opened(advertised_host="kafka.example.com")

    def away():
        raise Unavailable("no secret")

    monkeypatch.setattr(keys, "cluster_secret", away)
    assert alice.api.patch(f"{url}/{route['id']}", {"security": "ssl"}).status_code == 202


@pytest.mark.parametrize(
    "end", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z"]
)
def test_ends_at_the_edge_of_time(alice, url, end):
    assert alice.api.post(url, {"security": "plaintext", "closes_at": end}).status_code in (202, 400)


@pytest.mark.parametrize("of", ["route", "instance"])
def test_what_goes_while_ports_are_given_out_leaves_none(alice, instance, url, opened, monkeypatch, of):
    opened()
    going = f"{url}/r2" if of == "route" else url.removesuffix("/routes")
    wanted = reconcile.routes_wanted

    def slow(instance_id):
        found = wanted(instance_id)
        monkeypatch.setattr(reconcile, "routes_wanted", wanted)
        assert run_to_the_end(alice.api.delete(going).json()["operation_id"]).state == "succeeded"
        return found

    monkeypatch.setattr(reconcile, "routes_wanted", slow)
    reconcile.addresses_allocate(instance)
    held = PortAllocation.objects.filter(owner=instance.id, state="held").values_list("route", flat=True)
    assert set(held) == ({"default"} if of == "route" else set())
