"""`sluice bill plan` and `choose-plan`."""

from __future__ import annotations


def test_a_plan_is_shown_and_another_one_chosen(ok, as_alice, instance):
    assert ok("bill", "plan", "-o", "json").json["plan"]["name"] == "pro"
    refused = as_alice("bill", "choose-plan", "pro-usd")
    assert refused.status == 1
    assert "choose it for the next month" in refused.err
    ok("bill", "choose-plan", "pro-usd", "--when", "next_month")
    following = ok("bill", "plan", "-o", "json").json["next"]
    assert (following["name"], following["currency"]) == ("pro-usd", "USD")
