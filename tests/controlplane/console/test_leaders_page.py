"""Spreading an instance's leaders on a page: seen first, done by a button, and calm where there is nothing to do."""

from __future__ import annotations

import pytest

from controlplane.kafka.client import Layout, Partition
from tests.controlplane.conftest import run_to_the_end

from .conftest import text_of

MIB = 2**20


@pytest.fixture
def topic(instance, admin, flow_master):
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    admin.topics[physical] = Layout(physical, tuple(Partition(n, 1, (1, 2, 3), (1, 2, 3)) for n in range(3)))
    rows = {"brokers": [{"broker": 1, "leaders": 3, "flow": 9 * MIB}]}
    flow_master.answers[instance.id] = {"produce": rows, "consume": {"brokers": []}}
    return physical


def test_it_shows_what_would_move_and_what_each_broker_would_carry(at_alice, instance, topic, admin):
    text = text_of(at_alice.get(f"instances/{instance.id}/leaders/spread"))
    assert "1 3 1 9 MiB/s 3 MiB/s" in text
    assert "2 0 1 0 B/s 3 MiB/s" in text
    assert "2 partitions get another leader" in text
    assert "orders 0 1 2 orders 1 1 3" in text
    assert "Spread them" in text
    assert [each.leader for each in admin.topics[topic].partitions] == [1, 1, 1]


def test_the_button_begins_the_operation(at_alice, instance, topic, admin):
    answer = at_alice.post(f"instances/{instance.id}/leaders/spread")
    assert answer.status_code == 302
    run_to_the_end(answer["Location"].rpartition("/")[2])
    assert [each.leader for each in admin.topics[topic].partitions] == [2, 3, 1]
    assert "Spread leaders" in text_of(at_alice.client.get(answer["Location"]))
    again = at_alice.post(f"instances/{instance.id}/leaders/spread")
    assert again.status_code == 429
    assert "once in five minutes" in text_of(again)


def test_where_there_is_nothing_to_do_or_nobody_to_ask_it_says_so(at_alice, instance, admin):
    page = at_alice.get(f"instances/{instance.id}/leaders/spread")
    assert page.status_code == 200
    assert "Leaders are spread as evenly as replicas in sync allow." in text_of(page)
    assert "Spread them" not in text_of(page)
    admin.away = True
    assert "The cluster does not answer" in text_of(at_alice.get(f"instances/{instance.id}/leaders/spread"))


def test_a_viewer_looks_and_does_not_touch(at_viewer, instance, topic, admin):
    assert "Spread them" not in text_of(at_viewer.get(f"instances/{instance.id}/leaders/spread"))
    assert at_viewer.post(f"instances/{instance.id}/leaders/spread").status_code == 403
    assert [each.leader for each in admin.topics[topic].partitions] == [1, 1, 1]


def test_what_moved_since_it_was_seen_is_worked_out_anew(at_alice, instance, topic, admin):
    at_alice.get(f"instances/{instance.id}/leaders/spread")
    admin.topics[topic] = Layout(topic, tuple(Partition(n, n + 1, (n + 1, 1), (n + 1, 1)) for n in range(3)))
    assert at_alice.post(f"instances/{instance.id}/leaders/spread").status_code == 409
