"""Connections that were not taken: counted by address, route and reason, in a table that strangers cannot fill for good."""

from __future__ import annotations

from dataplane.tenancy.refused_here import MOST, MOST_NAME, RefusedHere, RefusedRow
from quota.contracts.refused import Refused


def test_the_latest_comes_first_with_how_many_there_were():
    refused = RefusedHere()
    refused.add("192.0.2.1", "default", Refused.WHITELIST, 1)
    refused.add("192.0.2.2", "default", Refused.SASL, 2)
    refused.add("192.0.2.1", "default", Refused.WHITELIST, 3)
    refused.add("192.0.2.1", "public", Refused.WHITELIST, 2)
    assert refused.rows() == [
        RefusedRow("192.0.2.1", "public", Refused.WHITELIST, 1, 2),
        RefusedRow("192.0.2.1", "default", Refused.WHITELIST, 2, 3),
        RefusedRow("192.0.2.2", "default", Refused.SASL, 1, 2),
    ]


def test_a_row_names_the_user_and_the_client_that_the_last_of_them_said_to_be():
    refused = RefusedHere()
    refused.add("192.0.2.1", "default", Refused.SASL, 1, user="ann", client_id="shop")
    refused.add("192.0.2.1", "default", Refused.SASL, 2, user="bob", client_id="till")
    assert refused.rows() == [RefusedRow("192.0.2.1", "default", Refused.SASL, 2, 2, "bob", "till")]


def test_one_address_that_tries_many_users_has_one_row_and_no_name_is_long():
    refused = RefusedHere()
    refused.add("192.0.2.7", "default", Refused.WHITELIST, 0)
    for number in range(10 * MOST):
        refused.add("192.0.2.1", "default", Refused.SASL, number, user=f"{number}" * 1_000, client_id="c" * 30_000)
    row, other = refused.rows()
    assert (row.times, len(row.user), len(row.client_id)) == (10 * MOST, MOST_NAME, MOST_NAME)
    assert other.address == "192.0.2.7"


def test_a_flood_from_everywhere_holds_so_many_rows_and_the_rest_is_counted():
    refused = RefusedHere()
    for number in range(10 * MOST):
        refused.add(f"10.0.{number // 256}.{number % 256}", "default", Refused.WHITELIST, number)
    refused.add("192.0.2.1", "default", Refused.SASL, 9_999)
    rows = refused.rows()
    assert len(rows) == MOST
    assert rows[0].address == "192.0.2.1"
    assert sum(row.times for row in rows) + refused.forgotten == 10 * MOST + 1
