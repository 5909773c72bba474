"""Operations in the console: the list, and one with its live steps."""

from __future__ import annotations

from controlplane.core import operations
from controlplane.core.models import Operation
from tests.controlplane.conftest import run_to_the_end

from .conftest import text_of
from .test_instance_pages import SIZES, fail_the

POLLS = 'hx-trigger="every 1s"'


def test_an_empty_list_says_what_to_do(at_alice):
    assert "Nothing has happened yet" in text_of(at_alice.get("operations"))


def test_steps_come_again_until_the_operation_is_over(at_alice, brokers, clock):
    brokers.paused = {2}
    at_alice.post("instances/new", SIZES | {"whitelist": ""})
    operation = Operation.objects.for_organisation(at_alice.organisation).get()
    clock.time = operation.runnable_at
    operations.run(operation.id, clock=clock)
    part = at_alice.get(f"operations/{operation.id}/steps", headers={"HX-Request": "true"})
    assert POLLS in part.content.decode()
    text = text_of(part)
    assert "Running 50 % Allocate addresses succeeded" in text
    assert "Wait for brokers running broker 2 has not seen it" in text
    assert "Open for use pending" in text
    brokers.paused = set()
    brokers.apply()
    run_to_the_end(operation.id, clock)
    part = at_alice.get(f"operations/{operation.id}/steps", headers={"HX-Request": "true"})
    assert POLLS not in part.content.decode()
    assert "Succeeded 100 %" in text_of(part)


def test_an_operation_names_who_asked_for_it(at_alice, at_bob, bob, instance):
    at_bob.post(f"instances/{instance.id}/settings", {**SIZES, "name": "renamed"})
    operation = Operation.objects.for_organisation(at_alice.organisation).get(kind="instance.update")
    assert operation.actor == "bob@example.com"
    assert "bob@example.com" in text_of(at_alice.get("operations"))
    assert "bob@example.com" in text_of(at_alice.get(f"operations/{operation.id}"))
    assert bob.api.get(f"/api/v1/operations/{operation.id}").json()["actor"] == "bob@example.com"


def test_an_operation_from_before_was_the_systems(at_alice, instance):
    rows = Operation.objects.for_organisation(at_alice.organisation)
    rows.update(actor="")
    assert at_alice.get("operations").status_code == 200
    assert "By \N{EN DASH}" in text_of(at_alice.get(f"operations/{rows.get().id}"))


def test_one_that_failed_says_why_and_what_to_do(at_alice, brokers):
    at_alice.post("instances/new", SIZES | {"whitelist": ""})
    operation = fail_the("instance.create", at_alice.organisation)
    text = text_of(at_alice.get(f"operations/{operation.id}"))
    assert "Gave up after 120 s: broker 2 has not seen it. The service goes on trying by itself" in text


def test_the_list_is_searched_by_the_instances_name_and_comes_again_while_one_runs(at_alice, instance):
    page = at_alice.get("operations?q=event")
    assert "Create an instance" in text_of(page)
    assert 'hx-trigger="every 2s"' not in page.content.decode()
    assert "No operation matches" in text_of(at_alice.get("operations?q=x-y"))
    at_alice.post(f"instances/{instance.id}/delete", {"confirmation": "events"})
    assert 'hx-trigger="every 2s"' in at_alice.get("operations").content.decode()
