"""`group_consumer_migration_policy` of a broker: which of the two changes live groups make."""

import pytest

from dataplane.config import ConfigError, settings_from
from dataplane.groups.settings import group_settings


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [("bidirectional", True, True), ("upgrade", True, False), ("downgrade", False, True), ("disabled", False, False)],
)
def test_what_a_policy_allows(policy, upgrades, downgrades):
    rules = group_settings(settings_from({"group_consumer_migration_policy": policy})).consumer
    assert (rules.upgrades, rules.downgrades) == (upgrades, downgrades)


def test_both_are_allowed_as_in_kafka():
    rules = group_settings(settings_from({})).consumer
    assert (rules.upgrades, rules.downgrades) == (True, True)


def test_another_policy_is_none():
    with pytest.raises(ConfigError, match="bidirectional, upgrade, downgrade, disabled"):
        settings_from({"group_consumer_migration_policy": "sometimes"})
