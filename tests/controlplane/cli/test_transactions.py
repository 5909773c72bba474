"""Transactions that hang, and limits of transactions, on the command line."""

from __future__ import annotations

import pytest

from controlplane.accounts.models import User

from .test_whole_life import WANTED


@pytest.fixture
def place(ok, brokers, admin):
    """A partition of alice's, in which a transaction hangs from offset 3 on."""
    instance_id = ok("instance", "create", "events", *WANTED, "-o", "json").json["id"]
    ok("topic", "create", "events", "orders", "--partitions", 2)
    found = f"{instance_id.removeprefix('ins-')}.orders", 1
    admin.transactions.hang(found, at=3, producer_id=77)
    return found


def test_what_hangs_is_listed_and_ended_by_where_it_begins(ok, as_alice, place, admin):
    (row,) = ok("transactions", "hanging", "events", "-o", "json").json["items"]
    assert (row["topic"], row["partition"], row["first_offset"], row["producer_id"]) == ("orders", 1, 3, 77)
    assert "orders" in ok("transactions", "hanging", "events", "--idle-seconds", 60).out
    refused = as_alice("transactions", "end-hanging", "events", "orders", 1, 3, stdin="other\n")
    assert refused.status != 0
    assert admin.transactions.hanging[place]
    ok("transactions", "end-hanging", "events", "orders", 1, 3, stdin="orders\n")
    assert not admin.transactions.hanging[place]
    assert as_alice("transactions", "end-hanging", "events", "orders", 1, 3, "--yes").status != 0
    assert ok("transactions", "hanging", "events", "-o", "json").json["items"] == []


def test_an_operator_sets_limits_of_transactions(ok, alice, brokers):
    ok("instance", "create", "events", *WANTED)
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    ok(
        "instance",
        "limits",
        "events",
        "--open-transactions",
        7,
        "--transactional-ids",
        "null",
        "--transaction-timeout-ms",
        1000,
    )
    limits = ok("instance", "limits", "events", "-o", "json").json
    assert (limits["open_transactions"], limits["transactional_ids"], limits["transaction_timeout_ms"]) == (
        7,
        None,
        1000,
    )
