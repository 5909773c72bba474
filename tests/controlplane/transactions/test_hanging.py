"""Transactions that no coordinator knows: found among all that is open in partitions, and ended there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.core.models import AuditEntry
from controlplane.kafka import patience
from controlplane.kafka.transaction_door import EndedMeanwhile
from tests.controlplane.test_instances_api import problem


@pytest.fixture
def url(hers):
    return f"/api/v1/instances/{hers.instance_id}/hanging-transactions"


def place(given, partition=0):
    return f"{given.key}.orders", partition


def found(answer):
    return [(row["topic"], row["partition"], row["first_offset"]) for row in answer.json()["items"]]


def test_what_is_open_in_a_partition_and_has_no_coordinator_hangs(alice, hers, his, url):
    hers.transactions.hang(place(hers), at=3, producer_id=77, idle_s=1800)
    hers.transactions.hang(place(his), at=3, producer_id=78)
    answer = alice.api.get(url).json()
    (row,) = answer["items"]
    assert row["idle_seconds"] == pytest.approx(1800, abs=5)
    assert row["written_at"].endswith("Z")
    assert (row["topic"], row["partition"], row["first_offset"], row["holds_back"]) == ("orders", 0, 3, True)
    assert (row["producer_id"], row["producer_epoch"]) == (77, 3)
    assert answer["unknown_partitions"] == 0


def test_one_that_begins_behind_another_that_is_open_holds_nobody_back(alice, hers, url):
    hers.transactions.hang(place(hers), at=8)  # copier's begins at 7
    (row,) = alice.api.get(url).json()["items"]
    assert row["holds_back"] is False


def test_what_a_coordinator_knows_does_not_hang_however_long_it_is_idle(alice, hers, url):
    hers.transactions.wrote_s[hers.now("copier").producer_id] = 3600
    assert found(alice.api.get(url)) == []
    hers.state(f"{hers.key}.copier", "PrepareAbort")  # markers are on their way
    assert found(alice.api.get(url)) == []


@pytest.mark.parametrize("change", ["another partition", "another producer id", "ended"])
def test_what_a_coordinator_says_of_something_else_counts_for_nothing(alice, hers, url, change):
    number = hers.now("copier").producer_id
    hers.transactions.wrote_s[number] = 3600
    if change == "another partition":
        hers.transactions.found[f"{hers.key}.copier"] = replace(hers.now("copier"), partitions=(place(hers, 1),))
    elif change == "another producer id":
        hers.transactions.starts[place(hers)] = {number + 500: 7}
        hers.transactions.wrote_s[number + 500] = 3600
    else:
        hers.state(f"{hers.key}.copier", "CompleteCommit")
    assert ("orders", 0, 7) in found(alice.api.get(url))


def test_what_moves_from_one_coordinator_to_another_meanwhile_is_not_taken_for_unknown(alice, hers, url, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    hers.transactions.hang(place(hers), at=3)
    for leaders in ([(1, 2), (1, 1)], [(1, 1), (1, 2), (2, 2)]):
        hers.transactions.leaders = leaders
        problem(alice.api.delete(f"{url}/orders/0/3"), 503, "cluster_unavailable")
    hers.transactions.leaders = [(1, 2), (1, 1)]
    assert found(alice.api.get(url)) == [("orders", 0, 3)], "a list is looked for twice"


def test_one_that_has_written_lately_may_be_ending_and_is_not_told(alice, hers, url):
    hers.transactions.hang(place(hers), idle_s=800)
    assert found(alice.api.get(url)) == []
    assert found(alice.api.get(url, {"idle_seconds": 700})) == [("orders", 0, 7)]
    refusal = problem(alice.api.delete(f"{url}/orders/0/7"), 404, "hanging_transaction_not_found")
    assert "15 minutes" in refusal["detail"]


def test_the_topic_of_another_instance_is_not_looked_at(alice, hers, his, url):
    hers.transactions.hang(place(his))
    assert found(alice.api.get(url)) == []


def test_they_come_in_pages_in_the_order_of_partitions(alice, hers, url):
    for partition, at in ((1, 2), (0, 12), (0, 5)):
        hers.transactions.hang(place(hers, partition), at=at, producer_id=100 + at)
    first = alice.api.get(url, {"limit": 2})
    second = alice.api.get(url, {"limit": 2, "cursor": first.json()["next"]})
    assert found(first) + found(second) == [("orders", 0, 5), ("orders", 0, 12), ("orders", 1, 2)]
    assert second.json()["next"] is None


def test_a_partition_whose_leader_does_not_say_is_counted(alice, hers, url):
    hers.transactions.silent.add(place(hers, 1))
    assert alice.api.get(url).json()["unknown_partitions"] == 1


@pytest.mark.parametrize("query", [{"idle_seconds": 59}, {"idle_seconds": "x"}, {"state": "Ongoing"}])
def test_a_filter_that_means_nothing_is_refused(alice, hers, url, query):
    problem(alice.api.get(url, query), 400, "invalid")


def test_ending_aborts_what_hangs_and_is_audited(alice, hers, url):
    hers.transactions.hang(place(hers), at=3, producer_id=77)
    hers.transactions.hang(place(hers), at=9, producer_id=78)
    assert alice.api.delete(f"{url}/orders/0/3").status_code == 204
    assert found(alice.api.get(url)) == [("orders", 0, 9)]
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="transaction.end_hanging")
    assert (entry.actor, entry.target) == ("alice@example.com", f"{hers.instance_id}/topics/orders")
    assert entry.detail == {
        "topic": "orders",
        "partition": 0,
        "first_offset": 3,
        "producer_id": 77,
        "producer_epoch": 3,
    }


def test_what_a_coordinator_knows_is_not_torn_apart(alice, hers, url):
    hers.transactions.wrote_s[hers.now("copier").producer_id] = 3600
    problem(alice.api.delete(f"{url}/orders/0/7"), 404, "hanging_transaction_not_found")
    assert hers.now("copier").state == "Ongoing"


@pytest.mark.parametrize(
    "path", ["orders/0/4", "orders/9/3", "absent/0/3", f"orders/0/{2**63}", f"orders/{2**31}/3", "a b/0/3"]
)
def test_where_nothing_hangs_nothing_is_ended(alice, hers, url, path):
    hers.transactions.hang(place(hers), at=3)
    problem(alice.api.delete(f"{url}/{path}"), 404, "hanging_transaction_not_found")
    assert found(alice.api.get(url)) == [("orders", 0, 3)]


def test_a_partition_whose_leader_does_not_say_is_no_place_where_nothing_hangs(alice, hers, url, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
    hers.transactions.silent.add(place(hers))
    problem(alice.api.delete(f"{url}/orders/0/3"), 503, "cluster_unavailable")


def test_an_answer_that_is_lost_is_asked_for_again(alice, hers, url, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.0)
    hers.transactions.hang(place(hers), at=3)
    hers.transactions.lost_answers = 1
    assert alice.api.delete(f"{url}/orders/0/3").status_code == 204
    assert found(alice.api.get(url)) == []


def test_what_somebody_else_ended_meanwhile_was_not_ended_by_us(alice, hers, url, monkeypatch):
    """Perhaps it was committed: nothing that a person may be told, or that is on record, says that it was aborted."""
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.0)
    hers.transactions.hang(place(hers), at=3)

    def abort(where, producer):
        hers.transactions.hanging[where].remove(producer)
        raise EndedMeanwhile("look again")

    monkeypatch.setattr(hers.transactions, "abort", abort)
    problem(alice.api.delete(f"{url}/orders/0/3"), 404, "hanging_transaction_not_found")
    entries = AuditEntry.objects.for_organisation(alice.organisation)
    assert not entries.filter(action="transaction.end_hanging").exists()


def test_a_cluster_that_is_away_is_said(alice, hers, url, admin):
    admin.away = True
    problem(alice.api.get(url), 503, "cluster_unavailable")
