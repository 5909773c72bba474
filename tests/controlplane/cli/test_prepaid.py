"""`sluice prepaid`: what it costs, buying months, renewing them, what becomes of it at the end."""

from __future__ import annotations


def test_what_months_of_a_size_cost(ok):
    found = ok(
        "prepaid", "price", "--bandwidth", "20", "--storage", "100", "--partitions", "400", "--months", "3", "-o", "json"
    ).json  # fmt: skip
    assert (found["amount"], found["per_month"]) == ("3150.00", "1050.00")


def test_a_whole_account(ok, as_alice, instance):
    assert ok("prepaid", "show", instance.name, "-o", "json").json["state"] == "postpaid"
    assert as_alice("prepaid", "renew", instance.name).status == 2
    said = ok("prepaid", "begin", instance.name, "--months", "2", "--dry-run", "-o", "json").json
    assert said["price"]["at_once"] == "2100.00"
    ok("prepaid", "begin", instance.name, "--months", "2", "--at-end", "renew")
    found = ok("prepaid", "show", instance.name, "-o", "json").json
    assert (found["state"], found["at_end"], found["renew_months"]) == ("prepaid", "renew", 1)
    ok("prepaid", "renew", instance.name, "--ends-at", found["ends_at"])
    ok("prepaid", "renew", instance.name, "--ends-at", found["ends_at"])
    again = ok("prepaid", "show", instance.name, "-o", "json").json
    assert [term["months"] for term in again["terms"]] == [2, 1]
    ok("prepaid", "renew", instance.name, "--months", "3")
    changed = ok("prepaid", "set", instance.name, "--at-end", "postpaid", "--renew-months", "6", "-o", "json").json
    assert (changed["at_end"], changed["renew_months"]) == ("postpaid", 6)
    assert as_alice("prepaid", "set", instance.name).status == 2


def test_an_instance_is_bought_in_advance(ok, brokers):
    made = ok(
        "instance", "create", "ahead", "--bandwidth", "5", "--storage", "10", "--partitions", "60",
        "--prepaid-months", "1", "--prepaid-at-end", "postpaid", "-o", "json",
    ).json  # fmt: skip
    found = ok("prepaid", "show", made["id"], "-o", "json").json
    assert (found["state"], found["at_end"]) == ("prepaid", "postpaid")
