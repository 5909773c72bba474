"""`sluice elastic`: on up to a cap, with a budget, and off."""

from __future__ import annotations


def test_on_and_off(ok, as_alice, instance):
    assert ok("elastic", "show", instance.name, "-o", "json").json["state"] == "off"
    ok("elastic", "set", instance.name, "--cap", "8", "--budget", "50.00")
    found = ok("elastic", "show", instance.name, "-o", "json").json
    assert (found["state"], found["cap_mib_per_s"], found["budget_per_month"]) == ("on", 8, "50.00")
    ok("elastic", "set", instance.name, "--cap", "9")
    found = ok("elastic", "show", instance.name, "-o", "json").json
    assert (found["cap_mib_per_s"], found["budget_per_month"]) == (9, "50.00"), "a budget stays where none is named"
    assert as_alice("elastic", "set", instance.name, "--cap", "9", "--budget", "1", "--no-budget").status == 2
    ok("elastic", "set", instance.name, "--cap", "9", "--no-budget")
    assert ok("elastic", "show", instance.name, "-o", "json").json["budget_per_month"] is None
    ok("elastic", "off", instance.name)
    assert ok("elastic", "show", instance.name, "-o", "json").json["state"] == "off"
    refused = as_alice("elastic", "set", instance.name, "--cap", "80")
    assert refused.status == 1
    assert "at most 10" in refused.err
