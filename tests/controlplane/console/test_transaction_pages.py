"""Transactions in the console: what is open, who waits for it, ending one."""

from __future__ import annotations

import pytest

from tests.controlplane.transactions.conftest import hers  # noqa: F401  # a fixture

from .conftest import problem_beside, text_of


@pytest.fixture
def at(hers):  # noqa: F811
    """Where her instance is."""
    return f"instances/{hers.instance_id}"


def test_an_empty_list_says_how_one_comes_into_being(at_alice, instance):
    assert "No transaction yet" in text_of(at_alice.get(f"instances/{instance.id}/transactions"))


def test_the_list_says_what_is_open_and_what_that_means(at_alice, at):
    text = text_of(at_alice.get(f"{at}/transactions"))
    assert "copier Open 1 min" in text
    assert "readers at read_committed stand still" in text
    assert "No transaction matches" in text_of(at_alice.get(f"{at}/transactions?q=zzz"))


def test_one_says_which_partitions_readers_wait(at_alice, at, hers):  # noqa: F811
    hers.begin("first", 1, at=3)
    text = text_of(at_alice.get(f"{at}/transactions/copier"))
    assert "orders 0 7 wait for it" in text
    assert "orders 1 7 wait for one that began before it" in text


def test_ending_asks_for_the_id(at_alice, at, hers):  # noqa: F811
    path = f"{at}/transaction-end/copier"
    refused = at_alice.post(path, {"confirmation": "other"})
    assert refused.status_code == 422
    assert "Nothing was ended" in problem_beside(refused, "confirmation")
    assert hers.now("copier").state == "Ongoing"
    assert at_alice.post(path, {"confirmation": "copier"}).status_code == 302
    assert hers.now("copier").state == "Empty"
    assert "The transaction of copier was ended." in text_of(at_alice.get(f"{at}/transactions/copier"))


def test_what_is_not_open_is_not_ended_and_the_page_says_why(at_alice, at, hers):  # noqa: F811
    hers.state(f"{hers.key}.copier", "CompleteCommit")
    assert "End…" not in text_of(at_alice.get(f"{at}/transactions/copier"))
    refused = at_alice.post(f"{at}/transaction-end/copier", {"confirmation": "copier"})
    assert refused.status_code == 422
    assert "only one that is Ongoing can be ended" in text_of(refused)


def test_a_cluster_that_is_away_is_said(at_alice, at, admin):
    admin.away = True
    for path in ("transactions", "transactions/copier"):
        assert at_alice.get(f"{at}/{path}").status_code == 503


# --- what hangs -------------------------------------------------------------------------------------------------------


def test_what_hangs_is_looked_for_on_a_page_of_its_own(at_alice, at, hers):  # noqa: F811
    assert "Look for hanging transactions" in text_of(at_alice.get(f"{at}/transactions"))
    assert "No hanging transaction" in text_of(at_alice.get(f"{at}/hanging-transactions"))
    hers.transactions.hang((f"{hers.key}.orders", 1), at=3, producer_id=77)
    hers.transactions.silent.add((f"{hers.key}.orders", 0))
    text = text_of(at_alice.get(f"{at}/hanging-transactions"))
    assert "orders 1 3 77, 3" in text
    assert "wait for it End…" in text
    assert "1 partition could not be looked at" in text


def test_where_there_is_no_transaction_at_all_something_may_hang_too(at_alice, instance):
    assert "Look for hanging transactions" in text_of(at_alice.get(f"instances/{instance.id}/transactions"))


def test_ending_what_hangs_asks_for_the_topic(at_alice, at, hers):  # noqa: F811
    place = (f"{hers.key}.orders", 1)
    hers.transactions.hang(place, at=3)
    path = f"{at}/hanging-transactions/orders/1/3/end"
    assert "End the hanging transaction in partition 1 of orders ?" in text_of(at_alice.get(path))
    refused = at_alice.post(path, {"confirmation": "other"})
    assert refused.status_code == 422
    assert "Nothing was ended" in problem_beside(refused, "confirmation")
    assert hers.transactions.hanging[place]
    assert at_alice.post(path, {"confirmation": "orders"}).status_code == 302
    assert not hers.transactions.hanging[place]
    assert "What hung in partition 1 of orders was ended." in text_of(at_alice.get(f"{at}/hanging-transactions"))
    assert at_alice.get(path).status_code == 404


def test_a_cluster_that_is_away_is_said_there_too(at_alice, at, admin):
    admin.away = True
    assert at_alice.get(f"{at}/hanging-transactions").status_code == 503
