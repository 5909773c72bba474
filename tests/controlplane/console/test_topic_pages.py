"""Topics in the console: list, create, look at, restrict, delete; and a cluster that is away."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.history.models import RequestDay
from controlplane.instances.models import Instance
from tests.controlplane.alarms.rows import throttled
from tests.controlplane.history.test_topics import keep_topics, window

from .conftest import problem_beside, text_of

TOPIC = {"name": "orders", "partitions": "6", "replication_factor": "3", "retention_h": "", "cleanup_policy": "delete"}


@pytest.fixture
def topics(at_alice, instance):
    """Where alice's topics are; `orders` is among them."""
    path = f"instances/{instance.id}"
    answer = at_alice.post(f"{path}/new-topic", TOPIC)
    assert answer["Location"] == at_alice.address(f"{path}/topics/orders")
    return path


def test_an_empty_list_says_what_to_do_next(at_alice, instance):
    text = text_of(at_alice.get(f"instances/{instance.id}/topics"))
    assert "No topic yet" in text
    assert "Create your first topic" in text


def test_a_new_topic_is_shown_with_leader_replicas_and_in_sync_replicas(at_alice, topics):
    text = text_of(at_alice.get(f"{topics}/topics/orders"))
    assert "Topic orders is ready." in text
    assert "18 partitions" in text
    assert "0 broker 1 1, 2, 3 1, 2, 3" in text
    text = text_of(at_alice.get(f"{topics}/topics"))
    assert "18 of 60 partitions used, replicas included" in text
    assert "orders 6 3 All as the instance" in text


def test_retention_and_compaction_are_set_in_kafkas_words(at_alice, instance, admin):
    at_alice.post(f"instances/{instance.id}/new-topic", TOPIC | {"retention_h": "48", "cleanup_policy": "compact"})
    (config,) = admin.configs.values()
    assert config == {"retention.ms": "172800000", "cleanup.policy": "compact"}
    text = text_of(at_alice.get(f"instances/{instance.id}/topics/orders"))
    assert "172800000 2 days" in text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "This field is required."),
        ("name", "or ders", "The topic name may hold only letters, digits"),
        ("name", "__orders", "Topic names that begin with &#x27;__&#x27; are reserved."),
        ("partitions", "0", "Ensure this value is greater than or equal to 1."),
        ("partitions", "21", "The instance has 60 partitions, replicas included: 0 are used and 63 more are asked for"),
        ("replication_factor", "4", "More replicas than brokers."),
        ("retention_h", "soon", "Enter a whole number."),
        ("cleanup_policy", "burn", "Select a valid choice."),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, instance, admin, field, value, said):
    page = at_alice.post(f"instances/{instance.id}/new-topic", TOPIC | {field: value})
    assert page.status_code == 422
    assert problem_beside(page, field).startswith(said)
    assert admin.topics == {}


def test_a_name_that_is_taken_is_said_beside_it(at_alice, topics):
    page = at_alice.post(f"{topics}/new-topic", TOPIC)
    assert problem_beside(page, "name").startswith("There is a topic orders.")


def test_whoever_wants_to_send_a_message_is_led_there_from_the_instances_page(at_alice, at_viewer, instance):
    new = f"instances/{instance.id}/new-topic"
    assert at_alice.address(new) in at_alice.get(f"instances/{instance.id}").content.decode()
    assert at_alice.address(new) not in at_viewer.get(f"instances/{instance.id}").content.decode()
    answer = at_alice.post(new, TOPIC | {"then": "message"})
    assert answer["Location"] == at_alice.address(f"instances/{instance.id}/topics/orders/messages/new")
    text = text_of(at_alice.get(f"instances/{instance.id}/topics/orders/messages/new"))
    assert "Topic orders is ready." in text
    assert "Send a message to orders" in text


def test_replicas_that_are_behind_are_marked(at_alice, topics, admin):
    (name,) = admin.topics
    layout = admin.topics[name]
    behind = replace(layout.partitions[0], isr=(1,), leader=None)
    admin.topics[name] = replace(layout, partitions=(behind, *layout.partitions[1:]))
    assert "1 without a leader" in text_of(at_alice.get(f"{topics}/topics"))
    assert "0 None 1, 2, 3 1 1 broker 1" in text_of(at_alice.get(f"{topics}/topics/orders"))
    admin.topics[name] = replace(layout, partitions=(replace(behind, leader=1), *layout.partitions[1:]))
    assert "1 behind" in text_of(at_alice.get(f"{topics}/topics"))


def test_topics_are_searched(at_alice, topics):
    assert "orders" in text_of(at_alice.get(f"{topics}/topics?q=ORD", headers={"HX-Request": "true"}))
    page = at_alice.get(f"{topics}/topics?q=nothing", headers={"HX-Request": "true"})
    assert "No topic matches “nothing”" in text_of(page)


def test_a_topic_is_narrowed_and_widened_again(at_alice, topics, instance):
    address = f"{topics}/topics/orders/access"
    answer = at_alice.post(address, {"scope": "own", "cidrs": "127.0.0.9"}, follow=True)
    assert "Who may use orders was changed." in text_of(answer)
    assert "127.0.0.9/32" in text_of(answer)
    page = at_alice.post(address, {"scope": "own", "cidrs": "somewhere"})
    assert problem_beside(page, "cidrs").startswith("Line 1: ")
    at_alice.post(address, {"scope": "own", "cidrs": ""})
    assert "nobody" in text_of(at_alice.get(f"{topics}/topics"))
    at_alice.post(address, {"scope": "instance", "cidrs": ""})
    instance.refresh_from_db()
    assert instance.topic_whitelists == {}


def test_deleting_needs_the_very_name(at_alice, topics, admin):
    address = f"{topics}/topics/orders/delete"
    page = at_alice.post(address, {"confirmation": "order"})
    assert problem_beside(page, "confirmation") == "This is not the name. Nothing was deleted."
    assert len(admin.topics) == 1
    answer = at_alice.post(address, {"confirmation": "orders"}, follow=True)
    assert "Topic orders was deleted." in text_of(answer)
    assert admin.topics == {}
    actions = AuditEntry.objects.for_organisation(at_alice.organisation).values_list("action", "actor")
    assert ("topic.delete", "alice@example.com") in list(actions)


def test_a_cluster_that_is_away_is_one_calm_sentence(at_alice, topics, admin):
    admin.away = True
    for path in ("topics", "topics/orders", "topics/orders/delete", "topics/orders/access"):
        page = at_alice.get(f"{topics}/{path}")
        assert page.status_code == 503, path
        assert "The cluster does not answer. Try again in a minute; your data is safe" in text_of(page), path
    page = at_alice.post(f"{topics}/new-topic", TOPIC | {"name": "more"})
    assert page.status_code == 422
    assert "The cluster does not answer. Try again in a minute" in text_of(page)
    assert 'value="more"' in page.content.decode(), "what was typed stays"


def test_a_name_that_markup_would_read_is_shown_as_it_is(at_alice, instance, admin):
    page = at_alice.get(f"instances/{instance.id}/topics?q=<script>alert(1)</script>")
    assert b"<script>alert" not in page.content
    assert at_alice.get(f"instances/{instance.id}/topics/<b>").status_code == 404


def test_what_it_took_in_and_gave_out_is_charts_with_a_table_behind_each(at_alice, topics, instance):
    last = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 60
    keep_topics(instance, {last: window({"orders": (10 * 3 * 2**20, 10 * 2**20)})}, last + 10)
    text = text_of(at_alice.get(f"{topics}/topics/orders"))
    assert "Produced and consumed, the last hour" in text
    assert "Produced as a table" in text
    assert "Consumed as a table" in text
    assert "3 MiB/s" in text
    assert at_alice.get(f"{topics}/topics/orders?range=7d").status_code == 200
    assert at_alice.get(f"{topics}/topics/orders?since=2026-01-02T00:00&until=2026-01-01T00:00").status_code == 422
    assert at_alice.get(f"{topics}/topics/orders?range=2h").status_code == 404


@pytest.fixture
def moved(topics, instance):
    """What `orders` moved a minute ago."""
    last = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 60
    keep_topics(instance, {last: window({"orders": (10 * 3 * 2**20, 10 * 2**20)})}, last + 10)


def test_what_it_took_in_is_there_when_the_cluster_is_not_with_its_note(at_alice, topics, moved, admin):
    at_alice.post(f"{topics}/topics/orders/note", {"note": "every order", "tags": "sales"})
    admin.away = True
    answer = at_alice.get(f"{topics}/topics/orders")
    text = text_of(answer)
    assert answer.status_code == 503
    assert "The cluster does not answer." in text
    assert "every order" in text
    assert "sales" in text
    assert "Produced as a table" in text
    assert "Partitions of orders" not in text


def test_a_topic_that_is_gone_shows_its_history_and_says_so(at_alice, topics, moved, admin):
    admin.topics.clear()
    for query in ("", "?range=400d", "?since=2026-01-01T00:00&until=2026-01-02T00:00"):
        answer = at_alice.get(f"{topics}/topics/orders{query}")
        assert answer.status_code == 200, query
        assert "There is no such topic now. This is its history." in text_of(answer)
    text = text_of(at_alice.get(f"{topics}/topics/orders"))
    assert "Produced as a table" in text
    assert "Change" not in text
    assert at_alice.get(f"{topics}/topics/never").status_code == 404


def test_so_does_one_that_went_long_ago(at_alice, topics, instance):
    day = int(SYSTEM_CLOCK.now().timestamp()) // 86_400 * 86_400 - 20 * 86_400
    RequestDay.objects.create(instance=instance.pk, at=day, windows=1, counts="{}", topics='{"past":[5,6]}')
    keep_topics(instance, {}, day + 20 * 86_400)
    assert "There is no such topic now." in text_of(at_alice.get(f"{topics}/topics/past"))
    assert at_alice.get(f"{topics}/topics/never").status_code == 404


def test_records_that_were_produced_are_a_chart_where_brokers_tell_them(at_alice, topics, instance):
    last = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 60
    keep_topics(instance, {last: window({"orders": (10 * 3 * 2**20, 0, 25)})}, last + 10)
    text = text_of(at_alice.get(f"{topics}/topics/orders"))
    assert "Records written as a table" in text
    assert "2.5/s" in text
    assert "Storage as a table" not in text, "nobody meters it"


def test_charts_of_a_topic_have_marks_of_what_happened_to_its_instance(at_alice, topics, instance):
    last = int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 60
    keep_topics(instance, {last: window({"orders": (10 * 3 * 2**20, 10 * 2**20)})}, last + 10)
    Instance.objects.unscoped("a test").update(created_at=SYSTEM_CLOCK.now() - timedelta(hours=1))
    throttled(instance, datetime.fromtimestamp(last - 60, UTC), datetime.fromtimestamp(last - 30, UTC))
    body = at_alice.get(f"{topics}/topics/orders").content.decode()
    assert body.count("Producers throttled") >= 2 * 2, "in the data and in the table of each"


def test_a_topic_of_which_nothing_is_recorded_says_so(at_alice, topics):
    assert "Nothing is recorded of this time." in text_of(at_alice.get(f"{topics}/topics/orders"))
