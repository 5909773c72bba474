"""Instances in the console: the list, creating, the page of one, changing, deleting."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.admission.models import ScheduledChange
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances.models import Instance
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_custom_roles import given_to, role_of

from .conftest import problem_beside, shown_by, text_of

SIZES = {"name": "events", "bandwidth_mib_per_s": "2.5", "storage_gib": "10", "partitions": "60"}
MIB = 2**20


def share(broker, flow, allocation):
    return {
        "broker": broker,
        "leaders": 1,
        "initial_share": MIB,
        "flow": flow,
        "allocation": allocation,
        "branch": "headroom",
        "explanation": f"broker {broker} carries what it can",
    }


def flowing(produce=4 * MIB):
    return {
        "produce": {"limit": 5 * MIB, "branch": "headroom", "flow": produce, "brokers": [share(1, produce, 5 * MIB)]},
        "consume": {"limit": 5 * MIB, "branch": "initial", "flow": 0, "brokers": [share(1, 0, 5 * MIB)]},
        "storage_used_bytes": 3 * 2**30,
        "storage_full": False,
        "partitions_without_leader": 0,
        "partitions_under_replicated": 0,
        "connections": 7,
    }


def newest(organisation) -> Instance:
    return Instance.objects.for_organisation(organisation).order_by("-created_at").first()


def test_creating_shows_every_step_and_then_the_address(at_alice, brokers):
    answer = at_alice.post("instances/new", SIZES | {"whitelist": "10.0.0.0/8\n127.0.0.1, ::1"})
    made = newest(at_alice.organisation)
    assert answer["Location"] == at_alice.address(f"instances/{made.id}/new-topic"), "the first one leads on"
    assert (made.name, made.bandwidth_mib_per_s, made.whitelist) == (
        "events", 2.5, ["10.0.0.0/8", "127.0.0.1/32", "::1/128"],
    )  # fmt: skip
    page = at_alice.client.get(answer["Location"])
    assert "Being created" in text_of(page)
    assert "Wait for brokers" in text_of(page)
    run_to_the_end(Operation.objects.for_organisation(at_alice.organisation).get().id)
    status = at_alice.get(f"instances/{made.id}/status", headers={"HX-Request": "true"})
    assert status["HX-Refresh"] == "true"
    page = at_alice.client.get(answer["Location"])
    assert "Being created" not in text_of(page)
    assert 'name="partitions"' in page.content.decode(), "the form of the first topic"
    page = at_alice.get(f"instances/{made.id}")
    assert "Being created" not in text_of(page)
    assert "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102" in text_of(page)
    assert "security.protocol=PLAINTEXT" in text_of(page)
    assert "kcat -b 127.0.0.1:20100," in text_of(page)
    entry = AuditEntry.objects.for_organisation(at_alice.organisation).get(action="instance.create")
    assert entry.actor == "alice@example.com"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "This field is required."),
        ("bandwidth_mib_per_s", "0", "Must be more than 0 and at most 100000."),
        ("bandwidth_mib_per_s", "nan", "Enter a number."),
        ("bandwidth_mib_per_s", "much", "Enter a number."),
        ("storage_gib", "-1", "Must be more than 0 and at most 1000000."),
        ("partitions", "1.5", "Enter a whole number."),
        ("partitions", "40001", "Must be more than 0 and at most 40000."),
        ("whitelist", "10.0.0.1/8", "Line 1: &#x27;10.0.0.1/8&#x27; has bits set beyond its prefix; did you mean 10.0.0.0/8?"),
        ("whitelist", "10.0.0.0/8\nhome", "Line 2: &#x27;home&#x27; is neither an IPv4 nor an IPv6 block"),
    ],
)  # fmt: skip
def test_what_is_wrong_stands_beside_its_field_and_nothing_is_made(at_alice, brokers, field, value, said):
    page = at_alice.post("instances/new", SIZES | {"whitelist": "", field: value})
    assert page.status_code == 422
    assert problem_beside(page, field) == said
    assert newest(at_alice.organisation) is None
    assert 'value="2.5"' in page.content.decode() or field == "bandwidth_mib_per_s", "what was typed stays"


def test_where_there_is_no_instance_the_list_has_the_form_of_one(at_alice, at_viewer):
    page = at_alice.get()
    assert "Create your first instance" in text_of(page)
    assert f'action="{at_alice.address("instances/new")}"' in page.content.decode()
    assert "a month" in text_of(page), "the price of what stands in it"
    assert 'name="bandwidth_mib_per_s"' not in at_viewer.get().content.decode()
    assert 'name="bandwidth_mib_per_s"' not in at_alice.get("instances?q=x").content.decode()


def test_the_second_instance_leads_to_its_page(at_alice, instance):
    answer = at_alice.post("instances/new", SIZES | {"name": "second", "whitelist": ""})
    assert answer["Location"] == at_alice.address(f"instances/{newest(at_alice.organisation).id}")


def test_a_health_that_no_instance_has_leaves_the_button_of_a_new_one(at_alice, instance):
    page = at_alice.get("instances?health=critical").content.decode()
    assert "No instance is so now" in page
    assert f'href="{at_alice.address("instances/new")}"' in page


def test_whoever_sees_topics_alone_is_shown_the_form_and_no_steps_that_they_may_not_ask_for(
    alice, bob, at_bob, at_alice, brokers
):
    at_alice.post("instances/new", SIZES | {"whitelist": ""})
    given_to(alice, bob, role_of(alice, scopes={"topics": "change"}))
    made = newest(alice.organisation)
    page = at_bob.get(f"instances/{made.id}/new-topic")
    assert page.status_code == 200
    assert at_bob.address(f"instances/{made.id}/status") not in page.content.decode()
    assert 'name="partitions"' in page.content.decode()


@pytest.mark.parametrize("state", ["creating", "failed"])
def test_a_first_instance_that_could_not_be_created_is_said_on_its_page(at_alice, brokers, state):
    answer = at_alice.post("instances/new", SIZES | {"whitelist": ""})
    assert "Once it is there, you make your first topic here." in text_of(at_alice.client.get(answer["Location"]))
    fail_the("instance.create", at_alice.organisation)
    Instance.objects.unscoped("a test").update(state=state)
    page = at_alice.client.get(answer["Location"], follow=True)
    assert page.redirect_chain[-1][0] == at_alice.address(f"instances/{newest(at_alice.organisation).id}")
    assert "Creating this instance gave up" in text_of(page)


def test_the_list_shows_state_flow_and_size(at_alice, at_bob, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    for visitor in (at_alice, at_bob):
        text = text_of(visitor.get())
        assert "events" in text
        assert "4 MiB/s" in text
        assert "3 GiB of 10 GiB" in text


def test_the_list_is_searched_by_name_and_id(at_alice, instance):
    assert instance.id in text_of(at_alice.get("instances?q=EVEN"))
    assert instance.id in text_of(at_alice.get(f"instances?q={instance.id}"))
    page = at_alice.get("instances?q=nothing")
    assert instance.id not in text_of(page)
    assert "No instance matches “nothing”" in text_of(page)
    part = at_alice.get("instances?q=even", headers={"HX-Request": "true"})
    assert b"<html" not in part.content
    assert instance.id in part.content.decode()


def test_a_list_without_a_master_says_so_and_shows_the_rest(at_alice, instance):
    text = text_of(at_alice.get())
    assert "No flow master is active. The figures come back by themselves" in text
    assert "5 MiB/s" in text


def test_the_page_of_one_shows_the_limits_of_transactions_with_what_is_used_where_it_is_known(
    at_alice, instance, flow_master
):
    flow_master.answers[instance.id] = flowing()
    text = text_of(at_alice.get(f"instances/{instance.id}"))
    assert "Open transactions 250 " in text
    assert "Longest transaction time-out 15 min " in text
    counts = {"open": 3, "open_limit": 250, "ids": 40, "ids_limit": 10_000}
    flow_master.answers[instance.id] = flowing() | {"transactions": counts}
    text = text_of(at_alice.get(f"instances/{instance.id}"))
    assert "Open transactions 3 of 250 " in text
    assert "Transactional ids 40 of 10" in text


def test_the_page_of_one_shows_use_against_limits_and_the_rule_in_words(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    page = at_alice.get(f"instances/{instance.id}")
    text = text_of(page)
    assert "4 MiB/s of 5 MiB/s" in text
    assert "3 GiB of 10 GiB" in text
    assert "Traffic is uneven, so busy brokers are given more" in text
    assert 'aria-label="Produce: 80.0 percent used"' in page.content.decode()
    flow_master.answers[instance.id] = flowing(produce=5 * MIB) | {
        "storage_used_bytes": 10 * 2**30,
        "storage_full": True,
    }
    body = at_alice.get(f"instances/{instance.id}").content.decode()
    assert 'class="bar near" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="Produce' in body
    assert 'class="bar full" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="Storage' in body


@pytest.mark.parametrize(
    ("used_mib", "is_full", "level"),
    [(7679, False, "ok"), (7680, False, "near"), (10_200, False, "near"), (10_240, True, "full")],
)
def test_the_bar_of_storage_has_the_colour_of_the_health(at_alice, instance, flow_master, used_mib, is_full, level):
    flow_master.answers[instance.id] = flowing() | {"storage_used_bytes": used_mib * MIB, "storage_full": is_full}
    body = at_alice.get(f"instances/{instance.id}").content.decode()
    assert re.search(r'class="bar (\w+)"[^>]*aria-label="Storage', body)[1] == level
    assert ("Storage is" in body) == (level != "ok")
    assert at_alice.get(f"instances/{instance.id}/live").json()["storage"]["level"] == level


def test_the_live_endpoint_gives_what_the_chart_draws(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    document = at_alice.get(f"instances/{instance.id}/live").json()
    assert document["known"] is True
    assert document["produce"]["bar"] == {
        "used": 4 * MIB,
        "limit": 5 * MIB,
        "percent": 80.0,
        "fills": False,
        "level": "ok",
    }
    assert document["produce"]["brokers"] == [share(1, 4 * MIB, 5 * MIB)]
    assert document["storage"]["percent"] == 30.0
    assert document["connections"] == 7


def test_the_live_endpoint_says_why_nothing_is_known(at_alice, instance):
    document = at_alice.get(f"instances/{instance.id}/live").json()
    assert document["known"] is False
    assert document["why"].startswith("No flow master is active.")


def test_an_empty_whitelist_is_pointed_at(at_alice, brokers):
    at_alice.post("instances/new", SIZES | {"whitelist": ""})
    run_to_the_end(Operation.objects.for_organisation(at_alice.organisation).get().id)
    page = at_alice.get(f"instances/{newest(at_alice.organisation).id}")
    assert "The whitelist is empty, so nobody can connect." in text_of(page)


def test_settings_send_on_what_was_changed_and_nothing_else(at_alice, instance):
    answer = at_alice.post(f"instances/{instance.id}/settings", SIZES | {"bandwidth_mib_per_s": "7.5"})
    assert answer["Location"] == at_alice.address(f"instances/{instance.id}")
    entry = AuditEntry.objects.for_organisation(at_alice.organisation).get(action="instance.update")
    assert entry.detail == {"bandwidth_mib_per_s": {"from": 5, "to": 7.5}}
    assert "A change is on its way" in text_of(at_alice.client.get(answer["Location"]))


def test_a_page_that_was_opened_earlier_takes_nothing_back(at_alice, alice, instance):
    """In another tab the storage was enlarged meanwhile; here only the name is changed."""
    path = f"instances/{instance.id}/settings"
    shown = shown_by(at_alice.get(path))
    larger = instance.storage_gib + 4
    assert alice.api.patch(f"/api/v1/instances/{instance.id}", {"storage_gib": larger}).status_code == 202
    saved = at_alice.post(path, SIZES | {"name": "renamed", "bandwidth_mib_per_s": "5"} | shown)
    assert saved.status_code == 302
    instance.refresh_from_db()
    assert (instance.name, instance.storage_gib) == ("renamed", larger)


@pytest.mark.parametrize(
    "shown",
    [
        *("", "{", "[]", '{"name": 5, "other": "x"}', '{"name": "{"}', '{"name": "[]"}'),
        pytest.param('{"name": "' + "[" * 99_999 + '"}', id="deep"),
    ],
)
def test_what_a_page_is_said_to_have_shown_may_be_anything(at_alice, instance, shown):
    saved = at_alice.post(f"instances/{instance.id}/settings", SIZES | {"name": "renamed", "shown": shown})
    assert saved.status_code == 302
    instance.refresh_from_db()
    assert instance.name == "renamed"


def test_saving_settings_unchanged_starts_nothing(at_alice, instance):
    before = Operation.objects.for_organisation(at_alice.organisation).count()
    same = SIZES | {"bandwidth_mib_per_s": "5"}
    answer = at_alice.post(f"instances/{instance.id}/settings", same, follow=True)
    assert "Nothing was changed." in text_of(answer)
    assert Operation.objects.for_organisation(at_alice.organisation).count() == before


def test_bad_settings_are_said_beside_the_field(at_alice, instance):
    page = at_alice.post(f"instances/{instance.id}/settings", SIZES | {"partitions": "0"})
    assert problem_beside(page, "partitions") == "Must be more than 0 and at most 40000."


def test_deleting_needs_the_very_name(at_alice, instance):
    address = f"instances/{instance.id}/delete"
    for typed in ("", "Events", instance.id):
        page = at_alice.post(address, {"confirmation": typed})
        assert page.status_code == 422
        assert problem_beside(page, "confirmation")
    instance.refresh_from_db()
    assert instance.state == "running"


def test_a_deleted_instance_leaves_the_list_and_its_page(at_alice, instance):
    answer = at_alice.post(f"instances/{instance.id}/delete", {"confirmation": "events"})
    page = at_alice.client.get(answer["Location"])
    assert "Being deleted" in text_of(page)
    settings = at_alice.get(f"instances/{instance.id}/settings")
    assert "can no longer be changed" in text_of(settings)
    deletion = Operation.objects.for_organisation(at_alice.organisation).get(kind="instance.delete")
    run_to_the_end(deletion.id)
    status = at_alice.get(f"instances/{instance.id}/status", headers={"HX-Request": "true"})
    assert status["HX-Redirect"] == at_alice.address()
    page = at_alice.get()
    assert "events was deleted." in text_of(page)
    assert "No instance yet" in text_of(page)
    assert at_alice.get(f"instances/{instance.id}").status_code == 404


def test_a_deleted_one_shows_until_when_and_is_restored(grace, at_alice, instance):
    page = text_of(at_alice.get(f"instances/{instance.id}/delete"))
    assert "until then it can be restored at the same addresses" in page
    at_alice.post(f"instances/{instance.id}/delete", {"confirmation": "events"})
    assert "Being isolated" in text_of(at_alice.get(f"instances/{instance.id}"))
    run_to_the_end(Operation.objects.for_organisation(at_alice.organisation).get(kind="instance.isolate").id)
    instance.refresh_from_db()
    text = text_of(at_alice.get(f"instances/{instance.id}"))
    assert f"At {instance.destroys_at:%Y-%m-%d %H:%M} UTC its data are deleted for good." in text
    assert "Bootstrap servers" not in text
    assert "Isolated" in text_of(at_alice.get())
    for part in ("settings", "config", "acl-rules"):
        assert "it can be changed once it is restored" in text_of(at_alice.get(f"instances/{instance.id}/{part}"))

    answer = at_alice.post(f"instances/{instance.id}/restoration", follow=True)
    assert "Being restored" in text_of(answer)
    run_to_the_end(Operation.objects.for_organisation(at_alice.organisation).get(kind="instance.restore").id)
    assert "127.0.0.1:20100" in text_of(at_alice.get(f"instances/{instance.id}"))


def test_restoring_what_is_not_isolated_is_one_calm_sentence(at_alice, instance):
    answer = at_alice.post(f"instances/{instance.id}/restoration", follow=True)
    assert "The instance is running: there is nothing to restore." in text_of(answer)


@pytest.mark.parametrize("first", ["isolated", "running"])
def test_owners_delete_the_data_at_once(grace, at_alice, instance, first):
    address = f"instances/{instance.id}/delete"
    if first == "isolated":
        at_alice.post(address, {"confirmation": "events"})
        assert "Delete its data now" in text_of(at_alice.get(address))
        assert 'name="at_once"' not in at_alice.get(address).content.decode()
    at_alice.post(address, {"confirmation": "events", "at_once": "on"})
    instance.refresh_from_db()
    assert instance.state == "deleting"


def test_members_delete_for_the_grace_period_only(grace, at_bob, instance):
    address = f"instances/{instance.id}/delete"
    assert 'name="at_once"' not in at_bob.get(address).content.decode()
    at_bob.post(address, {"confirmation": "events", "at_once": "on"})
    instance.refresh_from_db()
    assert instance.state == "isolated"
    page = at_bob.get(address)
    assert "Only owners delete them before." in text_of(page)
    assert 'name="confirmation"' not in page.content.decode()
    assert at_bob.post(address, {"confirmation": "events"}).status_code == 422
    instance.refresh_from_db()
    assert instance.state == "isolated"
    assert "Delete its data now" not in text_of(at_bob.get(f"instances/{instance.id}"))


def test_a_viewer_sees_that_it_is_isolated_and_no_button(grace, at_alice, at_viewer, instance):
    at_alice.post(f"instances/{instance.id}/delete", {"confirmation": "events"})
    page = at_viewer.get(f"instances/{instance.id}")
    assert "This instance was deleted at" in text_of(page)
    assert at_viewer.address(f"instances/{instance.id}/restoration") not in page.content.decode()


def test_an_isolation_that_failed_is_said(grace, at_alice, instance):
    at_alice.post(f"instances/{instance.id}/delete", {"confirmation": "events"})
    fail_the("instance.isolate", at_alice.organisation)
    page = text_of(at_alice.get(f"instances/{instance.id}"))
    assert "Not every broker has closed this instance yet: Gave up after 120 s: broker 2 has not seen it." in page


WINDOW = {"window_day": "sunday", "window_hour_utc": "3", "window_length_hours": "2"}


def test_its_maintenance_window_is_set_shown_and_used(at_alice, instance):
    address, same = f"instances/{instance.id}", SIZES | {"bandwidth_mib_per_s": "5"}
    assert "Maintenance window none" in text_of(at_alice.get(address))
    assert 'name="in_next_window"' not in at_alice.get(f"{address}/settings").content.decode()
    at_alice.post(f"{address}/settings", same | WINDOW)
    instance.refresh_from_db()
    assert instance.maintenance_window == {"day": "sunday", "hour_utc": 3, "length_hours": 2}
    assert "Maintenance window Sunday, 03:00-05:00 UTC" in text_of(at_alice.get(address))
    assert 'name="in_next_window"' in at_alice.get(f"{address}/settings").content.decode()
    at_alice.post(f"{address}/settings", same | WINDOW | {"bandwidth_mib_per_s": "6", "in_next_window": "on"})
    change = ScheduledChange.objects.unscoped("a test").get()
    assert (change.at.weekday(), change.at.hour, change.changes) == (6, 3, {"bandwidth_mib_per_s": 6})
    assert change.in_window
    at_alice.post(f"{address}/settings", same | WINDOW | {"window_day": ""})
    instance.refresh_from_db()
    assert instance.maintenance_window is None


def test_a_part_of_a_window_is_said_beside_its_field(at_alice, instance):
    asked = SIZES | {"bandwidth_mib_per_s": "5"} | WINDOW | {"window_hour_utc": ""}
    page = at_alice.post(f"instances/{instance.id}/settings", asked)
    assert page.status_code == 422
    assert "A maintenance window has a day, a beginning and a length." in text_of(page)
    instance.refresh_from_db()
    assert instance.maintenance_window is None


def test_a_protected_one_shows_no_way_to_delete_it_and_refuses_the_form(at_alice, instance):
    at_alice.post(
        f"instances/{instance.id}/settings", SIZES | {"bandwidth_mib_per_s": "5", "deletion_protection": "on"}
    )
    instance.refresh_from_db()
    assert instance.deletion_protection is True
    assert "Deletion protection on" in text_of(at_alice.get(f"instances/{instance.id}"))
    settings = at_alice.get(f"instances/{instance.id}/settings")
    assert "Who really wants to delete it switches the protection off above first." in text_of(settings)
    address = f"instances/{instance.id}/delete"
    assert at_alice.address(address) not in settings.content.decode()
    assert 'name="confirmation"' not in at_alice.get(address).content.decode()
    page = at_alice.post(address, {"confirmation": "events"})
    assert page.status_code == 422
    assert "is protected against deletion" in text_of(page)
    instance.refresh_from_db()
    assert instance.state == "running"
    at_alice.post(f"instances/{instance.id}/settings", SIZES | {"bandwidth_mib_per_s": "5"})
    assert at_alice.post(address, {"confirmation": "events"}).status_code == 302


def test_a_full_cluster_is_one_calm_sentence(at_alice, instance):
    instance.cluster.capacity = 1
    instance.cluster.save()
    page = at_alice.post("instances/new", SIZES | {"whitelist": ""})
    assert "The cluster has its 1 instances. Ask the operators of this service for more room." in text_of(page)


def test_the_whitelist_is_edited_and_in_force_at_once(at_alice, instance, tree):
    page = at_alice.get(f"instances/{instance.id}/access")
    assert "which is on the list" in text_of(page)
    answer = at_alice.post(f"instances/{instance.id}/access", {"cidrs": "10.1.0.0/16"}, follow=True)
    assert "The whitelist was changed. It is in force within 2 seconds" in text_of(answer)
    assert "which is not on the list" in text_of(answer)
    instance.refresh_from_db()
    assert instance.whitelist == ["10.1.0.0/16"]
    assert tree.spec(instance.id).whitelist == ("10.1.0.0/16",)


def test_a_wrong_block_stands_beside_the_editor_with_what_was_typed(at_alice, instance):
    page = at_alice.post(f"instances/{instance.id}/access", {"cidrs": "10.1.0.0/16\n10.1.0.0/33"})
    assert problem_beside(page, "cidrs").startswith("Line 2: ")
    assert "10.1.0.0/33" in page.content.decode()


@pytest.mark.parametrize(
    ("address", "added"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("2001:db8::7", "2001:db8::7/128"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("fe80::7%eth0", "fe80::7/128"),
    ],
)
def test_ones_own_address_is_added_to_what_is_on_the_list(at_alice, instance, tree, address, added):
    path = f"instances/{instance.id}/access"
    assert 'name="add"' in at_alice.get(path, REMOTE_ADDR=address).content.decode()
    answer = at_alice.post(path, {"add": "1"}, REMOTE_ADDR=address, follow=True)
    assert "The whitelist was changed." in text_of(answer)
    assert tree.spec(instance.id).whitelist == ("127.0.0.0/8", added)
    assert 'name="add"' not in at_alice.get(path, REMOTE_ADDR=address).content.decode()


def test_an_address_that_is_on_the_list_cannot_be_added_and_the_list_stays(at_alice, instance, tree):
    path = f"instances/{instance.id}/access"
    assert 'name="add"' not in at_alice.get(path).content.decode()
    assert "on the list already" in text_of(at_alice.post(path, {"add": "1"}, follow=True))
    assert tree.spec(instance.id).whitelist == ("127.0.0.0/8",)


def test_a_viewer_adds_no_address(at_viewer, instance, tree):
    path = f"instances/{instance.id}/access"
    assert 'name="add"' not in at_viewer.get(path, REMOTE_ADDR="192.0.2.7").content.decode()
    assert at_viewer.post(path, {"add": "1"}, REMOTE_ADDR="192.0.2.7").status_code == 403
    assert tree.spec(instance.id).whitelist == ("127.0.0.0/8",)


def test_a_list_that_is_full_takes_no_address(at_alice, instance):
    path = f"instances/{instance.id}/access"
    at_alice.post(path, {"cidrs": "\n".join(f"10.0.{number // 256}.{number % 256}" for number in range(512))})
    page = at_alice.post(path, {"add": "1"}, REMOTE_ADDR="192.0.2.7")
    assert page.status_code == 422
    assert "513 entries" in problem_beside(page, "cidrs")


def test_a_whitelist_while_the_cluster_is_away_is_stored_and_said(at_alice, instance, tree):
    tree.away = True
    page = at_alice.post(f"instances/{instance.id}/access", {"cidrs": "10.1.0.0/16"})
    assert page.status_code == 422
    assert "The change is stored and comes into force as soon as it can" in text_of(page)
    instance.refresh_from_db()
    assert instance.whitelist == ["10.1.0.0/16"]


def fail_the(kind, organisation):
    rows = Operation.objects.for_organisation(organisation).filter(kind=kind)
    rows.update(state="failed", error="gave up after 120 s: broker 2 has not seen it")
    return rows.get()


def test_a_change_that_failed_is_said_with_the_way_to_its_steps(at_alice, instance):
    at_alice.post(f"instances/{instance.id}/settings", SIZES | {"bandwidth_mib_per_s": "7.5"})
    operation = fail_the("instance.update", at_alice.organisation)
    page = at_alice.get(f"instances/{instance.id}")
    assert "The last change did not reach every broker: Gave up after 120 s: broker 2" in text_of(page)
    assert at_alice.address(f"operations/{operation.id}") in page.content.decode()


def test_a_deletion_that_failed_can_be_asked_for_again(at_alice, instance):
    address = f"instances/{instance.id}/delete"
    at_alice.post(address, {"confirmation": "events"})
    fail_the("instance.delete", at_alice.organisation)
    page = at_alice.get(f"instances/{instance.id}")
    assert f'<a href="{at_alice.address(address)}">Ask for it again</a>' in page.content.decode()
    at_alice.post(address, {"confirmation": "events"})
    states = Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.delete")
    assert sorted(states.values_list("state", flat=True)) == ["failed", "running"]


def test_what_keeps_a_change_from_being_in_force_is_said_and_which_limits_there_are(at_alice, at_staff, instance):
    quiet = text_of(at_alice.get(f"instances/{instance.id}"))
    assert "not in force" not in quiet
    assert "Broker time, all brokers 600 ms/s" in quiet
    instance.problem, instance.operators_limits = "the whitelists may take 900000 bytes, not 1060586", {"topics": 7}
    instance.save()
    for page in (at_alice.get(f"instances/{instance.id}"), at_staff.get(f"/fleet/instances/{instance.id}")):
        text = text_of(page)
        assert "not in force yet: the whitelists may take 900000 bytes, not 1060586." in text
        assert "Topics 7" in text


def later(days=3):
    return datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=days)


def test_a_size_for_later_is_scheduled_listed_and_cancelled(at_alice, at_viewer, instance):
    at, settings = later(), f"instances/{instance.id}/settings"
    answer = at_alice.post(settings, SIZES | {"bandwidth_mib_per_s": "7.5", "at": f"{at:%Y-%m-%dT%H:%M}"}, follow=True)
    assert f"The change is scheduled for {at:%Y-%m-%d %H:%M} UTC." in text_of(answer)
    row = ScheduledChange.objects.for_organisation(at_alice.organisation).get()
    assert (row.changes, row.at, row.state) == ({"bandwidth_mib_per_s": 7.5}, at, "waiting")
    assert f"At {at:%Y-%m-%d %H:%M} UTC it is changed to 7.5 MiB/s" in text_of(at_alice.get(f"instances/{instance.id}"))
    cancel = f"instances/{instance.id}/scheduled-changes/{row.id}/cancellation"
    assert at_alice.address(cancel) in at_alice.get(settings).content.decode()
    seen = at_viewer.get(settings)
    assert "7.5 MiB/s" in text_of(seen)
    assert at_viewer.address(cancel) not in seen.content.decode()

    assert "The change is cancelled." in text_of(at_alice.post(cancel, follow=True))
    row.refresh_from_db()
    assert row.state == "cancelled"
    assert "it is changed to" not in text_of(at_alice.get(f"instances/{instance.id}"))
    row.state = "begun"
    row.save()
    assert "The change was begun already." in text_of(at_alice.post(cancel, follow=True))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"at": "2020-01-01T00:00"}, "Must be to come, and within 30 days."),
        ({"at": "soon"}, "Enter a valid date/time."),
        ({"name": "other"}, "Only sizes are changed later: change name, protection and window without it."),
    ],
)
def test_a_moment_that_cannot_be_is_said_beside_it(at_alice, instance, typed, said):
    asked = SIZES | {"at": f"{later():%Y-%m-%dT%H:%M}"} | typed
    page = at_alice.post(f"instances/{instance.id}/settings", asked)
    assert (page.status_code, problem_beside(page, "at")) == (422, said)
    assert not ScheduledChange.objects.for_organisation(at_alice.organisation).exists()


def test_whoever_makes_an_instance_behind_a_proxy_is_told_their_own_address(at_alice, settings):
    """What is told here is what people put on the whitelist: the proxy's address would lock them out."""
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, tls=True)
    page = at_alice.get(
        "instances/new", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.9, 192.0.2.7", secure=True
    )
    assert "192.0.2.7" in text_of(page)
    assert "10.0.0.1" not in text_of(page)
