"""`sluice policy`: what an instance does when its disk fills up."""

from __future__ import annotations

from tests.controlplane.policies.conftest import DAY_S, world  # noqa: F401  # a fixture


def test_the_life_of_a_policy(ok, world):  # noqa: F811
    name = world.instance.name
    made = ok(
        "policy", "disk", name, "retention", "--level", "80", "--step", "20", "--floor-minutes", "90", "--spare-unread",
        "-o", "json",
    ).json  # fmt: skip
    assert (made["policy"], made["level_percent"], made["step_percent"]) == ("retention", 80, 20)
    assert (made["floor_minutes"], made["spare_unread"]) == (90, True)
    assert ok("policy", "show", name, "-o", "json").json == {"disk": made}
    assert ok("policy", "disk", name, "none", "-o", "json").json["policy"] == "none"


def test_a_dry_run_says_who_would_lose_what(ok, world):  # noqa: F811
    world.topic("orders", [6.5 * DAY_S, 60])
    world.group("billing", orders=0)
    said = ok("policy", "disk", world.instance.id, "retention", "--dry-run", "-o", "json").json
    assert said["dry_run"] is True
    assert any("group billing would lose" in problem for problem in said["problems"])
    assert ok("policy", "show", world.instance.id, "-o", "json").json["disk"]["policy"] == "none"


def test_buying_names_the_most(ok, sluice, world):  # noqa: F811
    refused = sluice("policy", "disk", world.instance.id, "expansion")
    assert refused.status == 1
    assert "max_storage_gib" in refused.err
    made = ok(
        "policy", "disk", world.instance.id, "expansion", "--max-storage", "20", "--confirm-price", "-o", "json"
    ).json
    assert made["max_storage_gib"] == 20
