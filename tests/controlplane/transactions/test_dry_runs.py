"""Dry runs of ending transactions: producers are not fenced, nothing is aborted, and who would be touched is said."""

from __future__ import annotations

from copy import deepcopy

import pytest

from controlplane.core.models import AuditEntry
from controlplane.kafka import client, patience
from tests.controlplane.test_instances_api import problem

DRY = "?dry_run=true"


def asked(person, hers, url):
    """The answer of a dry run, which has changed nothing."""
    before = deepcopy((hers.transactions.found, hers.transactions.starts, hers.transactions.hanging))
    answer = person.api.delete(f"{url}{DRY}")
    assert answer.status_code == 200, answer.content
    assert (hers.transactions.found, hers.transactions.starts, hers.transactions.hanging) == before
    assert not AuditEntry.objects.unscoped("a test").filter(action__startswith="transaction.").exists()
    return answer.json()


def test_an_open_transaction_would_be_aborted_and_its_producer_fenced(alice, hers):
    shown = alice.api.get(f"{hers.url}/copier").json()
    said = asked(alice, hers, f"{hers.url}/copier")
    assert said["changes"]["state"] == ["Ongoing", "Empty"]
    assert said["changes"]["partitions"] == [shown["partitions"], []]
    assert said["changes"]["open_seconds"][1] is None
    assert said["problems"] == ["what the transaction has written to 2 partitions would not be read at read_committed"]
    assert [(each["who"], each["names"]) for each in said["affected"]] == [
        ("producers", [str(shown["producer_id"])]),
        ("partitions", ["orders 0", "orders 1"]),
    ]
    assert alice.api.delete(f"{hers.url}/copier").status_code == 204
    after = alice.api.get(f"{hers.url}/copier").json()
    told = {name: pair[1] for name, pair in said["changes"].items()}
    assert told == {name: after[name] for name in told}


@pytest.mark.parametrize("state", ["Empty", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"])
def test_what_is_not_open_is_refused_as_the_call_is(alice, hers, state):
    hers.state(f"{hers.key}.copier", state)
    url = f"{hers.url}/copier"
    refused = problem(alice.api.delete(f"{url}{DRY}"), 409, "transaction_not_open")
    assert refused == problem(alice.api.delete(url), 409, "transaction_not_open")


@pytest.mark.parametrize(("failures", "status"), [(4, 200), (1000, 503)], ids=["changing", "gone"])
def test_a_coordinator_that_is_changing_is_waited_for_as_the_call_does(alice, hers, monkeypatch, failures, status):
    asks, asked = hers.transactions.described, []
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(patience, "LONGEST_PAUSE_S", 0.001)
    monkeypatch.setattr(patience, "PATIENCE_S", 0.2 if failures > 4 else 15.0)

    def described(names):
        asked.append(names)
        if len(asked) <= failures:
            raise client.ClusterChanging("the broker that coordinates the transaction is changing")
        return asks(names)

    monkeypatch.setattr(hers.transactions, "described", described)
    assert alice.api.delete(f"{hers.url}/copier{DRY}").status_code == status
    assert len(asked) > 2


def test_an_id_that_is_not_there_is_not_made(alice, hers):
    for path in ("nobody", "x" * 2000):
        problem(alice.api.delete(f"{hers.url}/{path}{DRY}"), 404, "transaction_not_found")
    assert list(hers.transactions.found) == [f"{hers.key}.copier"]


def test_one_that_hangs_would_be_gone(alice, hers):
    place = (f"{hers.key}.orders", 0)
    hers.transactions.starts.clear()
    hers.transactions.hang(place, at=3)
    url = hers.url.replace("transactions", "hanging-transactions") + "/orders/0"
    said = asked(alice, hers, f"{url}/3")
    assert said["changes"]["first_offset"] == [3, None]
    assert ("partitions", ["orders 0"]) in [(each["who"], each["names"]) for each in said["affected"]]
    for other in (f"{url}/4", f"{url[:-1]}7/3"):
        refused = problem(alice.api.delete(f"{other}{DRY}"), 404, "hanging_transaction_not_found")
        assert refused == problem(alice.api.delete(other), 404, "hanging_transaction_not_found")


def test_viewers_and_strangers_are_told_nothing(viewer, charlie, hers):
    problem(viewer.api.delete(f"{hers.url}/copier{DRY}"), 403, "forbidden")
    problem(charlie.api.delete(f"{hers.url}/copier{DRY}"), 404, "not_found")
