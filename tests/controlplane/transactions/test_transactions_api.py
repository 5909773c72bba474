"""Transactions by REST, over coordinators in memory."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from controlplane.core.models import AuditEntry
from controlplane.kafka import patience
from tests.controlplane.test_instances_api import problem


def names(answer):
    return [row["transactional_id"] for row in answer.json()["items"]]


def test_a_list_says_what_is_open_since_when_and_only_ones_own(alice, hers, his):
    his.begin("secret", 0)
    hers.transactions.begin("of-the-cluster")
    (row,) = alice.api.get(hers.url).json()["items"]
    assert (row["transactional_id"], row["state"], row["timeout_ms"]) == ("copier", "Ongoing", 60_000)
    assert (row["producer_id"], row["producer_epoch"]) == (hers.now("copier").producer_id, 0)
    assert row["open_seconds"] == pytest.approx(60, abs=5)
    assert row["started_at"].endswith("Z")


def test_a_list_comes_in_pages(alice, hers):
    hers.begin("archiver", 0)
    first = alice.api.get(hers.url, {"limit": 1})
    second = alice.api.get(hers.url, {"limit": 1, "cursor": first.json()["next"]})
    assert (names(first), names(second), second.json()["next"]) == (["archiver"], ["copier"], None)


def test_a_list_is_filtered_by_state_and_by_how_long_it_is_open(alice, hers):
    hers.begin("young", 0, age_s=5)
    hers.begin("done", 0, age_s=300)
    hers.begin("ending", 0, age_s=300)
    hers.state(f"{hers.key}.done", "CompleteCommit")
    hers.state(f"{hers.key}.ending", "PrepareAbort")
    assert names(alice.api.get(hers.url)) == ["copier", "done", "ending", "young"]
    assert names(alice.api.get(hers.url, {"state": "Ongoing"})) == ["copier", "young"]
    assert names(alice.api.get(hers.url, {"open_seconds": 30})) == ["copier", "ending"]
    assert names(alice.api.get(hers.url, {"open_seconds": 30, "state": "Ongoing"})) == ["copier"]
    assert names(alice.api.get(hers.url, {"open_seconds": 30, "state": "CompleteCommit"})) == []


@pytest.mark.parametrize("query", [{"state": "Open"}, {"open_seconds": -1}, {"open_seconds": "x"}, {"id": "copier"}])
def test_a_filter_that_means_nothing_is_refused(alice, hers, query):
    problem(alice.api.get(hers.url, query), 400, "invalid")


def test_one_says_where_it_begins_and_whether_readers_wait_for_it(alice, hers):
    first = hers.begin("first", 1, at=3)
    hers.transactions.starts[f"{hers.key}.orders", 0].clear()  # nothing is written there yet
    shown = alice.api.get(f"{hers.url}/copier").json()
    assert shown["partitions"] == [
        {"topic": "orders", "partition": 0, "first_offset": None, "holds_back": False},
        {"topic": "orders", "partition": 1, "first_offset": 7, "holds_back": False},
    ]
    assert first.partitions == ((f"{hers.key}.orders", 1),)
    shown = alice.api.get(f"{hers.url}/first").json()
    assert shown["partitions"] == [{"topic": "orders", "partition": 1, "first_offset": 3, "holds_back": True}]


def test_a_partition_whose_leader_does_not_say_is_not_known(alice, hers):
    del hers.transactions.starts[f"{hers.key}.orders", 1]
    unknown = alice.api.get(f"{hers.url}/copier").json()["partitions"][1]
    assert (unknown["first_offset"], unknown["holds_back"]) == (None, None)


def test_partitions_that_are_not_the_tenants_are_left_out(alice, hers):
    hers.transactions.begin(f"{hers.key}.grouped", ("__consumer_offsets", 4), (f"{hers.key}.orders", 0))
    shown = alice.api.get(f"{hers.url}/grouped").json()
    assert [(row["topic"], row["partition"]) for row in shown["partitions"]] == [("orders", 0)]


def test_ending_aborts_fences_and_is_audited(alice, hers, his):
    before = hers.now("copier")
    assert alice.api.delete(f"{hers.url}/copier").status_code == 204
    after = hers.now("copier")
    assert (after.state, after.producer_epoch) == ("Empty", before.producer_epoch + 1)
    assert his.now("copier").state == "Ongoing"
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="transaction.end")
    assert (entry.actor, entry.target) == ("alice@example.com", f"{hers.instance_id}/transactions/copier")
    assert entry.detail == {
        "transactional_id": "copier",
        "producer_id": before.producer_id,
        "producer_epoch": before.producer_epoch,
        "partitions": 2,
    }


def test_the_same_request_twice_ends_one_transaction(alice, hers):
    key = {"HTTP_IDEMPOTENCY_KEY": "end-1"}
    assert alice.api.delete(f"{hers.url}/copier", **key).status_code == 204
    hers.begin("copier", 0)
    assert alice.api.delete(f"{hers.url}/copier", **key).status_code == 204
    assert hers.now("copier").state == "Ongoing"


@pytest.mark.parametrize("state", ["Empty", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"])
def test_what_is_not_open_is_not_ended(alice, hers, state):
    hers.state(f"{hers.key}.copier", state)
    before = hers.now("copier")
    problem(alice.api.delete(f"{hers.url}/copier"), 409, "transaction_not_open")
    assert hers.now("copier") == before


def test_an_id_that_is_not_there_is_not_made_by_ending_it(alice, hers):
    for path in ("nobody", "x" * 2000, quote("a/b\n")):
        problem(alice.api.get(f"{hers.url}/{path}"), 404, "transaction_not_found")
        problem(alice.api.delete(f"{hers.url}/{path}"), 404, "transaction_not_found")
    assert list(hers.transactions.found) == [f"{hers.key}.copier"]


def test_an_answer_that_is_lost_is_asked_for_again(alice, hers, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.0)
    hers.transactions.lost_answers = 1
    assert alice.api.delete(f"{hers.url}/copier").status_code == 204
    assert hers.now("copier").producer_epoch == 1


def test_any_name_has_an_address(alice, hers):
    hers.begin("a/b c", 0)
    assert alice.api.get(f"{hers.url}/{quote('a/b c', safe='')}").json()["transactional_id"] == "a/b c"


def test_a_cluster_that_is_away_is_said(alice, hers, admin):
    admin.away = True
    for path in (hers.url, f"{hers.url}/copier"):
        problem(alice.api.get(path), 503, "cluster_unavailable")
